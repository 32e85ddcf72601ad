"""Transcription: a stream's items as segments, and what was said in all of a file.

This module does NOT know sockets, flow control (see `stream`) nor where the audio comes from (see
`transcribe`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from plait.client.consuming import MethodStream
from plait.client.speech import Word


class Segment(msgspec.Struct, frozen=True):
    """What was said from `start` to `end`, in seconds of the audio sent.

    A higher `revision` replaces the segment of that `index`, until one `is_final`, which never
    changes; a final with an empty text takes back what was shown. `stable` (interims only): the
    beginning of the text that is not expected to change. `words`, where asked for. `lag_ms`: how
    long after its last audio had come the server had it. `language`, where the model detects it.
    """

    index: int
    revision: int
    text: str
    start: float
    end: float
    is_final: bool
    stable: str = ""
    words: tuple[Word, ...] | None = None
    lag_ms: float | None = None
    language: str | None = None


class SpeechEvent(msgspec.Struct, frozen=True):
    """`event`: speech_started or speech_stopped, `at` so many seconds of the audio sent."""

    event: str
    at: float


@dataclass(frozen=True, slots=True)
class Transcription:
    """All of a recording: `segments` are final, and none is empty."""

    text: str
    segments: tuple[Segment, ...]


Heard = TypeVar("Heard", bound=Segment | SpeechEvent)


class TranscriptionStream(MethodStream, Generic[Heard]):
    """Single-use asynchronous iterator over `Segment`s, and over `SpeechEvent`s where asked for.

        async with client.transcribe.live(microphone(), sample_rate=16000) as stream:
            async for segment in stream:
                show(segment.index, segment.text, segment.is_final)

    Leaving the `async with` block cancels, however it is left, and closes the source of the audio.
    Iteration ends after the last final, when the source has ended. It raises what `Stream` raises,
    and what the source of the audio raised.
    """

    async def __anext__(self) -> Heard:
        while True:
            data = (await anext(self.stream)).data or {}
            if "segment" in data:
                return cast(Heard, msgspec.convert(data["segment"], Segment))
            if "event" in data:  # comes only where it was asked for
                return cast(Heard, msgspec.convert(data, SpeechEvent))

    async def collect(self) -> Transcription:
        """All that was said. Raises like iteration: half of it never looks like the whole.

        Cancels when its own task is cancelled.
        """
        async with self:
            items = [item async for item in self]
        segments = [item for item in items if isinstance(item, Segment) and item.is_final]
        spoken = tuple(segment for segment in segments if segment.text)
        return Transcription(" ".join(segment.text for segment in spoken), spoken)
