"""Transcription over the wire: clips that are played as if they were just being spoken.

A clip goes up in frames of 100 ms, each when its last sample would have been recorded, by a
schedule that does not drift; what comes back is timed from the first sample on. Streams begin
within a second of each other, so that their pauses do not coincide. CPU is that of the worker's
whole process tree. Does NOT judge the figures (see `transcribe_report`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

import msgspec

from plait.bench import transcribe_figures as figures
from plait.bench.accuracy import WordErrors
from plait.bench.clips import Clip, Utterance
from plait.bench.figures import Spread
from plait.bench.serving import Server
from plait.bench.transcribe_figures import Onset, Rewriting, Shown
from plait.client import Client, Segment, Stream
from plait.wire.messages import Done

FRAME_SECONDS = 0.1
STAGGER_SECONDS = 1.0
BUSY_SECONDS = 120.0  # of audio; far more than is decoded before a cancel
WINDOW = 256  # measuring the engine, not a reader: no revision is skipped

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked for besides the audio's format; None: the server's default."""

    model: str | None = None
    language: str | None = None
    silence_ms: int | None = None

    def params(self, clip: Clip) -> dict[str, Any]:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return {"sample_rate": clip.sample_rate, "channels": clip.channels} | given


@dataclass(frozen=True, slots=True)
class Listening:
    """One clip played to one stream. `shown` and `onsets` in the order of arrival."""

    shown: tuple[Shown, ...]
    model: str
    onsets: tuple[Onset, ...] = ()

    @property
    def text(self) -> str:
        return figures.final_text(self.shown)


@dataclass(slots=True)
class Level:
    """All clips that were played with so many streams at once. CPU: see the module."""

    streams: int
    clip: Clip
    listenings: list[Listening] = field(default_factory=list)
    cpu_seconds: float | None = None

    @property
    def errors(self) -> WordErrors:
        return self.errors_against(self.clip.text)

    def errors_against(self, text: str) -> WordErrors:
        return WordErrors.sum(WordErrors.of(text, one.text) for one in self.listenings)

    @property
    def worst_rate(self) -> float:
        return max(WordErrors.of(self.clip.text, one.text).rate for one in self.listenings)

    @property
    def cpu_per_second(self) -> float | None:
        """CPU seconds per second of audio."""
        audio_seconds = self.clip.seconds * len(self.listenings)
        return None if self.cpu_seconds is None else self.cpu_seconds / audio_seconds

    @property
    def speech_told_ms(self) -> Spread | None:
        told = (figures.told_seconds(one.onsets) for one in self.listenings)
        return Spread.of(1000 * seconds for one in told for seconds in one)

    @property
    def first_text_ms(self) -> Spread | None:
        return self._spread_of_utterances(figures.first_text_seconds)

    @property
    def final_after_speech_ms(self) -> Spread | None:
        return self._spread_of_utterances(figures.final_after_speech_seconds)

    @property
    def final_after_segment_ms(self) -> Spread | None:
        return self._spread(figures.final_after_segment_seconds)

    @property
    def word_ms(self) -> Spread | None:
        return self._spread(figures.word_seconds)

    @property
    def lag_ms(self) -> Spread | None:
        lags = [s.segment.lag_ms for one in self.listenings for s in one.shown]
        return Spread.of(lag for lag in lags if lag is not None)

    @property
    def revisions(self) -> list[int]:
        """Per segment of every stream."""
        return [n for one in self.listenings for n in figures.revision_counts(one.shown)]

    @property
    def rewriting(self) -> Rewriting:
        return sum((figures.rewriting(one.shown) for one in self.listenings), Rewriting())

    def _spread(self, seconds_of: Callable[[tuple[Shown, ...]], Iterable[float]]) -> Spread | None:
        return Spread.of(1000 * s for one in self.listenings for s in seconds_of(one.shown))

    def _spread_of_utterances(
        self, seconds_of: Callable[[tuple[Shown, ...], tuple[Utterance, ...]], Iterable[float]]
    ) -> Spread | None:
        return self._spread(lambda shown: seconds_of(shown, self.clip.utterances))


async def warm_up(client: Client, clip: Clip, ask: Ask) -> None:
    """The first stream waits for the model, and its decode is the first of its process."""
    stream = client.open("transcribe", ask.params(clip), source=_at_once(clip), window=WINDOW)
    async with stream:
        await stream.collect()


async def measure_level(
    server: Server,
    client: Client,
    clip: Clip,
    ask: Ask,
    streams: int,
    rounds: int,
    advance: Advance,
) -> Level:
    """`rounds` times `streams` clips at once; `advance(1)` after each second of a round."""
    level = Level(streams, clip)
    before = await server.workers_cpu_seconds()
    for _ in range(rounds):
        async with asyncio.TaskGroup() as tasks:
            begin = monotonic()
            playing = [
                tasks.create_task(
                    listen(
                        client,
                        clip,
                        ask,
                        begin + STAGGER_SECONDS * number / streams,
                        (lambda steps: None) if number else advance,
                    )
                )
                for number in range(streams)
            ]
        level.listenings += [task.result() for task in playing]
    after = await server.workers_cpu_seconds()
    if before is not None and after is not None:
        level.cpu_seconds = after - before
    return level


async def listen(client: Client, clip: Clip, ask: Ask, begin: float, advance: Advance) -> Listening:
    """Play the clip from the moment `begin` (monotonic seconds); `advance(1)` for each second."""
    source, params = played(clip, begin, advance), ask.params(clip) | {"events": True}
    shown: list[Shown] = []
    onsets: list[Onset] = []
    async with client.open("transcribe", params, source=source, window=WINDOW) as stream:
        async for item in stream:
            if "segment" in item.data:
                segment = msgspec.convert(item.data["segment"], Segment)
                shown.append(Shown(item.at - begin, segment))
            elif item.data["event"] == "speech_started":
                onsets.append(Onset(item.at - begin, item.data["at"]))
    assert isinstance(stream.terminal, Done)
    assert stream.started is not None
    return Listening(tuple(shown), stream.started.model, tuple(onsets))


async def played(clip: Clip, begin: float, advance: Advance) -> AsyncIterator[bytes]:
    """Frames, each when it would have been recorded; late ones follow at once."""
    frame_bytes = round(FRAME_SECONDS * clip.sample_rate) * clip.bytes_per_sample
    for number, at in enumerate(range(0, len(clip.pcm), frame_bytes), 1):
        due = begin + number * FRAME_SECONDS
        await asyncio.sleep(max(0.0, due - monotonic()))
        yield clip.pcm[at : at + frame_bytes]
        if number % round(1 / FRAME_SECONDS) == 0:
            advance(1)


def listeners(client: Client, clip: Clip, ask: Ask) -> Callable[[int], Stream]:
    """Opens streams that have something to decode for a long time, to be cancelled."""

    def open_stream(number: int) -> Stream:
        source = _again_and_again(clip)
        return client.open("transcribe", ask.params(clip), source=source, window=WINDOW)

    return open_stream


async def _at_once(clip: Clip) -> AsyncIterator[bytes]:
    yield clip.pcm


async def _again_and_again(clip: Clip) -> AsyncIterator[bytes]:
    """As fast as it is listened to. It ends, so that nobody waits for a slot for ever."""
    for _ in range(math.ceil(BUSY_SECONDS / clip.seconds)):
        yield clip.pcm
