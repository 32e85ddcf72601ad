"""Speech: a stream's items as chunks of audio, with the marks that belong to them.

This module does NOT know sockets, flow control (see `stream`) nor how text goes up (see `upload`).
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from plait.client.consuming import MethodStream
from plait.client.stream import Stream
from plait.client.wav import wav
from plait.wire.frames import BinaryFlags
from plait.wire.messages import Cancelled, Format


class Word(msgspec.Struct, frozen=True):
    """Times are seconds of the stream's audio."""

    text: str
    start: float
    end: float


class Mark(msgspec.Struct, frozen=True):
    """Where a sentence, or a clause of one, is in the audio; all marks' texts are the input."""

    text: str
    start: float
    end: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Mono PCM16 as it came; the chunks joined are the speech.

    `mark` is that of the text which begins here. A text without a sound (an emoji by itself) has
    its mark on a chunk without audio, so no mark is ever lost.
    """

    audio: memoryview
    sample_rate: int
    start_sample: int
    mark: Mark | None = None
    last_of_sentence: bool = False

    @property
    def samples(self) -> array[int]:
        """A copy, in the machine's own byte order."""
        samples = array("h", bytes(self.audio))
        if sys.byteorder == "big":
            samples.byteswap()
        return samples


class SpeechStream(MethodStream):
    """Single-use asynchronous iterator over `AudioChunk`s.

        async with client.synthesize("Hello there.", voice="af_heart") as speech:
            async for chunk in speech:
                play(chunk.audio)

    Leaving the `async with` block cancels, however it is left, and closes the source of the text.
    It raises what `Stream` raises, and what the source of the text raised.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._mark: Mark | None = None
        self._samples = 0

    @property
    def format(self) -> Format | None:
        """Encoding, sample rate and channels, once it has started."""
        return None if self.started is None else self.started.format

    async def __anext__(self) -> AudioChunk:
        while True:
            try:
                item = await anext(self.stream)
            except StopAsyncIteration:
                if self._mark is not None:
                    return self._chunk(memoryview(b""), self._samples)
                raise
            if item.frame is not None:
                frame = item.frame
                chunk = self._chunk(frame.payload, frame.aux, frame.flags)
                self._samples = frame.aux + len(frame.payload) // 2
                return chunk
            silent = None if self._mark is None else self._chunk(memoryview(b""), self._samples)
            self._mark = msgspec.convert(item.data["mark"], Mark)
            if silent is not None:
                return silent

    def _chunk(self, audio: memoryview, start_sample: int, flags: int = 0) -> AudioChunk:
        format = self.format
        assert format is not None
        assert format.sample_rate is not None
        mark, self._mark = self._mark, None
        ends = bool(flags & BinaryFlags.LAST_OF_SENTENCE)
        return AudioChunk(audio, format.sample_rate, start_sample, mark, ends)

    async def collect(self) -> bytes:
        """All of the audio. Raises like iteration: half a speech never looks like a whole one.

        Cancels when its own task is cancelled.
        """
        async with self:
            return b"".join([chunk.audio async for chunk in self])

    async def to_wav(self, target: str | Path | BinaryIO) -> None:
        """Write all of the audio as a WAV file. Nothing is written of half a speech."""
        audio = await self.collect()
        format = self.format
        assert format is not None
        assert format.sample_rate is not None
        await asyncio.to_thread(_write, target, wav(audio, format.sample_rate))

    async def cancel(self, heard_ms: float | None = None) -> Cancelled | None:
        """Stop; with what the listener heard, the answer's `heard` is its text, to the word."""
        return await self.stream.cancel(heard_ms)


def _write(target: str | Path | BinaryIO, data: bytes) -> None:
    if isinstance(target, str | Path):
        Path(target).write_bytes(data)
    else:
        target.write(data)
