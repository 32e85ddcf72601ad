"""What one stream has cost so far, in its method's words: `usage`, `wasted`, `heard`, what was cut.

While a stream runs its items are counted as they come out of the engine, and its audio as it goes
in; the engine's own account replaces that at the end. Does NOT know credit, times or terminals.
"""

from __future__ import annotations

import msgspec

from plait.engines.base import Item, Prepared, Usage
from plait.sessions.spoken import Spoken
from plait.wire.frames import BinaryFlags
from plait.wire.messages import (
    UNIT,
    EmbedParams,
    Format,
    Params,
    SynthesizeParams,
    TranscribeParams,
)

MAX_TRUNCATED_LISTED = 1000

EMPTY_USAGE: dict[str, Usage] = {
    "chat": {"prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0},
    "transcribe": {"audio_ms": 0},
    "synthesize": {"characters": 0, "audio_ms": 0},
    "embed": {"texts": 0, "tokens": 0},
}


class Account:
    """Of a method without rules of its own; the others are below."""

    def __init__(self, method: str) -> None:
        self._method = method
        self.usage = dict(EMPTY_USAGE[method])

    @property
    def truncated(self) -> list[int] | None:
        """Indexes of texts that were cut, the first ones; None: none was, or no such thing."""
        return None

    def begin(self, prepared: Prepared, format: Format | None) -> Format | None:
        """It holds a slot. The engine's format as this stream's client gets it."""
        return format

    def take(self, item: Item) -> bool:
        """Count it. False where it is for us only and the client does not get it."""
        return True

    def consume(self, input_bytes: int) -> None:
        """The engine has taken so much of its input in all."""

    def settle(self, usage: Usage) -> None:
        """The engine's own account, with zeros for what it does not mention."""
        self.usage = EMPTY_USAGE[self._method] | usage

    def wasted(self, units: int | None) -> Usage | None:
        return None if units is None else {UNIT[self._method]: units}

    def heard(self, heard_ms: float, media_bytes: int) -> str | None:
        """The text of the first `heard_ms` of what was sent, `media_bytes`; None: no such thing."""
        return None


class ChatAccount(Account):
    def begin(self, prepared: Prepared, format: Format | None) -> Format | None:
        self.usage["prompt_tokens"] = prepared.prompt_tokens
        return format

    def take(self, item: Item) -> bool:
        self.usage["completion_tokens"] += item.units
        return True


class ListeningAccount(Account):
    """Audio costs by its length, also where nothing was said."""

    def __init__(self, method: str, bytes_per_second: int) -> None:
        super().__init__(method)
        self._bytes_per_second = bytes_per_second

    def consume(self, input_bytes: int) -> None:
        self.usage["audio_ms"] = input_bytes * 1000 // self._bytes_per_second


class SpeechAccount(Account):
    """Keeps the marks, which the engine always sends, for `heard`."""

    def __init__(self, method: str, *, marks: bool) -> None:
        super().__init__(method)
        self._marks = marks
        self._spoken = Spoken()
        self._bytes_per_ms = 1.0

    def begin(self, prepared: Prepared, format: Format | None) -> Format:
        assert format is not None, "a speech engine says in which format it speaks"
        assert format.sample_rate is not None
        self._bytes_per_ms = 2 * format.sample_rate * (format.channels or 1) / 1000
        return format

    def take(self, item: Item) -> bool:
        if item.kind:
            self.usage["audio_ms"] += item.units
            return True
        self._spoken.add(item.data)
        self.usage["characters"] = self._spoken.characters
        return self._marks

    def heard(self, heard_ms: float, media_bytes: int) -> str | None:
        return self._spoken.until(min(heard_ms, media_bytes / self._bytes_per_ms))


class _Answer(msgspec.Struct):
    """Of an embedding's JSON item only whether the text has no vector."""

    error: msgspec.Raw = msgspec.Raw(b"")


_answer = msgspec.json.Decoder(_Answer)


class EmbedAccount(Account):
    """Texts as they are answered; tokens are known to the engine alone, which tells them last."""

    def __init__(self, method: str, *, rows: bool) -> None:
        """`rows`: vectors come as binary frames, and a JSON item is a text without one."""
        super().__init__(method)
        self._rows = rows
        self._truncated: list[int] = []

    @property
    def truncated(self) -> list[int] | None:
        return self._truncated or None

    def begin(self, prepared: Prepared, format: Format | None) -> Format:
        assert format is not None, "an embedding engine says how large its vectors are"
        return format if self._rows else msgspec.structs.replace(format, encoding="json")

    def take(self, item: Item) -> bool:
        self.usage["texts"] += item.units
        if item.flags & BinaryFlags.TRUNCATED:
            self._count("truncated", item.units)
            room = MAX_TRUNCATED_LISTED - len(self._truncated)
            self._truncated += range(item.aux, item.aux + min(item.units, room))
        if not item.kind and (self._rows or _answer.decode(item.data).error):
            self._count("failed", item.units)
        return True

    def _count(self, what: str, texts: int) -> None:
        self.usage[what] = self.usage.get(what, 0) + texts


def account_for(method: str, params: Params) -> Account:
    if method == "chat":
        return ChatAccount(method)
    if isinstance(params, SynthesizeParams):
        return SpeechAccount(method, marks=params.marks)
    if isinstance(params, TranscribeParams):
        return ListeningAccount(method, params.bytes_per_second)
    if isinstance(params, EmbedParams):
        return EmbedAccount(method, rows=params.encoding == "f32")
    return Account(method)
