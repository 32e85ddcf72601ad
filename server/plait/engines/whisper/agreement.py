"""LocalAgreement-2: the words two decodes in a row agree on, from the beginning, are settled.

After Liu et al. 2020 and whisper_streaming; compared without case and punctuation. A hint, not a
promise: one word in eight was still rewritten later. Does NOT know time or audio.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.engines.whisper.words import Word, plain

SENTENCE_ENDS = (".", "?", "!", "\u3002", "\uff1f", "\uff01")  # the last three are full-width
QUOTES = "\"')\u201d\u2019"


def agreed_words(words: Sequence[Word], before: Sequence[Word]) -> int:
    """How many words at the beginning of both are the same."""
    count = 0
    for one, other in zip(words, before, strict=False):
        if plain(one.text) != plain(other.text):
            break
        count += 1
    return count


def ends_sentence(words: Sequence[Word]) -> bool:
    text = words[-1].text.rstrip(QUOTES) if words else ""
    return text.endswith(SENTENCE_ENDS) and not text.endswith("...")


def split_after(words: Sequence[Word], agreed: int) -> int:
    """How many of the `agreed` (>= 1) words make the segment that is split off, at least one.

    To the end of a sentence if there is one in the last two thirds of them, else all but the
    last: the one most likely cut by the window that agreed on it.
    """
    for count in range(agreed, agreed // 3, -1):
        if ends_sentence(words[:count]):
            return count
    return max(1, agreed - 1)


def without_overlap(words: Sequence[Word], said: Sequence[str], longest: int = 4) -> list[Word]:
    """`words` without a beginning that repeats the end of what was `said` (plain words)."""
    plains = [plain(word.text) for word in words[:longest]]
    for size in range(min(longest, len(plains), len(said)), 0, -1):
        if plains[:size] == list(said[-size:]):
            return list(words[size:])
    return list(words)
