"""What a text to embed counts for, and what is said of one that has no vector.

Does NOT know how a text is read or computed.
"""

from __future__ import annotations

from plait.errors import GenerationFailed, InputTooLong

TEXT_CREDIT_BYTES = 16  # what a text counts for beside its characters


def credit_of(text: str) -> int:
    """What a text counts for in the upload window (PROTOCOL.md §5), in bytes."""
    return len(text.encode(errors="surrogatepass")) + TEXT_CREDIT_BYTES


def too_long(index: int, tokens: int, limit: int) -> InputTooLong:
    return InputTooLong(
        f"Text {index} has {tokens} tokens and the model reads {limit}; shorten it,"
        " or send truncate: true.",
        data={"index": index, "tokens": tokens, "limit": limit},
    )


def no_vector(index: int, why: str) -> GenerationFailed:
    return GenerationFailed(
        f"Text {index} has no vector: the model {why}. Change the text or choose another model.",
        data={"index": index},
    )
