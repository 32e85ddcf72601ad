"""Texts of a chat that wait together become one item (PROTOCOL.md §3), without loss or change.

Works on encoded items: what stands between a JSON string's quotes, or a list's brackets, is put
behind what stands between another's, so every escape stays as it was. Does NOT know which items
wait, nor why.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Text(msgspec.Struct, forbid_unknown_fields=True):
    """An item that holds nothing but `content` (and `logprobs`), each as it is encoded."""

    content: msgspec.Raw
    logprobs: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(Text)


def read_text(data: bytes) -> Text | None:
    """None for an item that holds anything else, and so must stay by itself."""
    try:
        text = _decoder.decode(data)
    except msgspec.DecodeError:
        return None
    logprobs = bytes(text.logprobs)
    readable = bytes(text.content).startswith(b'"') and (not logprobs or logprobs[:1] == b"[")
    return text if readable else None


def join_texts(texts: Sequence[Text]) -> bytes:
    """One item of at least one: contents and logprobs in order."""
    content = b"".join([bytes(text.content)[1:-1] for text in texts])
    entries = [bytes(text.logprobs)[1:-1].strip() for text in texts]
    if not any(text.logprobs for text in texts):
        return b'{"content":"%b"}' % content
    return b'{"content":"%b","logprobs":[%b]}' % (content, b",".join(filter(None, entries)))
