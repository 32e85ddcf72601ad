"""What a stream sends: revisions of one segment after another, and speech events, as JSON.

One `SegmentWriter` numbers the segments of one stream, so that indexes are dense, revisions count
from 1, a final never changes and times never run backwards, whatever the decoder says. Interims
go out only where their text changed. Does NOT know windows or agreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from plait.engines.whisper.words import SAMPLE_RATE, Word, text_of


@dataclass(frozen=True, slots=True)
class Heard:
    """One item. `data`: the JSON of its `data` member; `revises`: index + 1 of its segment, 0 for
    an event; `units`: milliseconds of audio decoded for it."""

    data: bytes
    revises: int = 0
    units: int = 0


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a segment lies, in samples from the stream's beginning, and how late it is."""

    start: int
    end: int
    lag_seconds: float


class SegmentWriter:
    def __init__(self, *, interim: bool, words: bool) -> None:
        self._interim = interim
        self._words = words
        self.index = 0
        """Of the segment being written: how many are final."""
        self.language: str | None = None
        """Told with every segment, where it was detected."""
        self._revision = 0
        self._shown = ""
        self._decoded_ms = 0
        self._final_to_ms = 0

    def decoded(self, samples: int) -> None:
        """So many new samples were decoded; told with the next item."""
        self._decoded_ms += samples * 1000 // SAMPLE_RATE

    def interim(self, words: Sequence[Word], agreed: int, extent: Extent) -> list[Heard]:
        """`words` in absolute seconds, the first `agreed` of them settled."""
        text = text_of(words)
        if not self._interim or not text or text == self._shown:
            return []
        self._shown = text
        stable = text_of(words[:agreed])
        return [self._item(words, extent, {"stable": stable, "is_final": False})]

    def final(self, words: Sequence[Word], extent: Extent) -> list[Heard]:
        """The segment's last revision, and on to the next; nothing if there was nothing to say."""
        if not text_of(words) and not self._shown:
            return []
        item = self._item(words, extent, {"is_final": True})
        self._final_to_ms = max(self._final_to_ms, _milliseconds(extent.end))
        self.index += 1
        self._revision, self._shown = 0, ""
        return [item]

    def event(self, kind: str, at: int) -> Heard:
        """`speech_started` or `speech_stopped` at that sample."""
        return Heard(msgspec.json.encode({"event": kind, "at": _milliseconds(at) / 1000}))

    def _item(self, words: Sequence[Word], extent: Extent, state: dict[str, Any]) -> Heard:
        self._revision += 1
        start = max(self._final_to_ms, _milliseconds(extent.start))
        end = max(start, _milliseconds(extent.end))
        segment: dict[str, Any] = {
            "index": self.index,
            "revision": self._revision,
            "text": text_of(words),
            "start": start / 1000,
            "end": end / 1000,
            **state,
            "lag_ms": round(max(0.0, extent.lag_seconds) * 1000, 1),
        }
        if self._words:
            segment["words"] = _timed(words, start, end)
        if self.language is not None:
            segment["language"] = self.language
        units, self._decoded_ms = self._decoded_ms, 0
        data = msgspec.json.encode({"segment": segment})
        return Heard(data, revises=self.index + 1, units=units)


def _timed(words: Sequence[Word], start: int, end: int) -> list[dict[str, Any]]:
    """Words within `start` … `end` milliseconds, each beginning no earlier than the last ended."""
    timed: list[dict[str, Any]] = []
    begin = start
    for word in words:
        begin = min(max(begin, int(word.start * 1000)), end)
        finish = min(max(begin, int(word.end * 1000)), end)
        timed.append({"text": word.text.strip(), "start": begin / 1000, "end": finish / 1000})
        begin = finish
    return timed


def _milliseconds(samples: int) -> int:
    """Rounded down: a time is never beyond the audio that was sent."""
    return samples * 1000 // SAMPLE_RATE
