"""Speech over the wire: how soon it begins, how fast it comes, and whether playback would starve.

First audio is timed by the server (`timing.first_item_ms`: open read to first frame written) and by
the client. Playback is simulated from the frames' arrivals: it begins `BUFFER_SECONDS` after the
first frame and stands still while the next sample is not there yet. Does NOT judge the figures
(see `speak_report`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any

from plait.bench.figures import Spread
from plait.bench.sentences import sentence
from plait.bench.speak_stock import StockSpeaker, StockSpeech
from plait.client import Client, Item, Stream
from plait.wire.messages import Done

SAMPLE_RATE = 24_000
SAMPLE_BYTES = 2
BUFFER_SECONDS = 0.15
WINDOW = 256  # measuring the engine, not a listener: it is never paused

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Spoken:
    """One synthesis. Seconds count from sending the open; `starved_seconds` is of the playback."""

    words: int
    first_audio_ms: float  # the server's
    outside_ms: float  # the client's
    total_seconds: float
    audio_seconds: float
    starved_seconds: float

    @property
    def real_time_factor(self) -> float:
        return self.total_seconds / self.audio_seconds


@dataclass(slots=True)
class Level:
    """All syntheses of one length with so many streams at once."""

    streams: int
    words: int
    spoken: list[Spoken] = field(default_factory=list)
    batches: list[tuple[float, float]] = field(default_factory=list)  # (wall, audio) seconds

    @property
    def first_audio_ms(self) -> Spread | None:
        return Spread.of(s.first_audio_ms for s in self.spoken)

    @property
    def outside_ms(self) -> Spread | None:
        return Spread.of(s.outside_ms for s in self.spoken)

    @property
    def real_time_factor(self) -> Spread | None:
        """Wall time over audio time of whole batches: what one machine does for all its voices."""
        return Spread.of(wall / audio for wall, audio in self.batches)

    @property
    def starved(self) -> int:
        return sum(s.starved_seconds > 0 for s in self.spoken)

    @property
    def worst_starved_seconds(self) -> float:
        return max(s.starved_seconds for s in self.spoken)


def starvation(arrivals: Sequence[tuple[float, float]]) -> float:
    """Seconds that playback stands still; `arrivals` are (time, seconds of audio it brings)."""
    starts_at = arrivals[0][0] + BUFFER_SECONDS
    played = stalled = 0.0
    for at, seconds in arrivals:
        due = starts_at + played + stalled
        stalled += max(0.0, at - due)
        played += seconds
    return stalled


async def measure_level(
    client: Client, voice: str, streams: int, words: int, rounds: int, advance: Advance
) -> Level:
    """`rounds` batches of `streams` syntheses at once; `advance(1)` after each batch."""
    level = Level(streams, words)
    for number in range(rounds):
        begin = monotonic()
        async with asyncio.TaskGroup() as tasks:
            batch = [
                tasks.create_task(speak(client, voice, words, number * streams + i))
                for i in range(streams)
            ]
        wall = monotonic() - begin
        spoken = [task.result() for task in batch]
        level.spoken += spoken
        level.batches.append((wall, sum(s.audio_seconds for s in spoken)))
        advance(1)
    return level


async def speak(client: Client, voice: str, words: int, number: int) -> Spoken:
    """One synthesis, read to its end."""
    async with client.open("synthesize", _params(voice, words, number), window=WINDOW) as stream:
        arrivals = [(item.at, _seconds(item)) async for item in stream if item.frame is not None]
    assert isinstance(stream.terminal, Done)
    assert stream.ended_at is not None
    first_ms = stream.terminal.timing.first_item_ms
    assert first_ms is not None, "a sentence without audio"
    return Spoken(
        words,
        first_ms,
        1000 * (arrivals[0][0] - stream.opened_at),
        stream.ended_at - stream.opened_at,
        sum(seconds for _, seconds in arrivals),
        starvation(arrivals),
    )


@dataclass(slots=True)
class Beside:
    """Ours over the wire and stock packages, the same sentences in turns, one stream."""

    words: int
    ours: list[Spoken] = field(default_factory=list)
    stock: dict[str, list[StockSpeech]] = field(default_factory=dict)

    def ratio(self, package: str) -> float:
        """Median over the pairs of the package's first audio / ours."""
        pairs = zip(self.stock[package], self.ours, strict=True)
        return median(1000 * stock.first_audio_seconds / own.outside_ms for stock, own in pairs)


async def measure_beside(
    client: Client,
    voice: str,
    words: int,
    rounds: int,
    speakers: Mapping[str, StockSpeaker],
    advance: Advance,
) -> Beside:
    """Each round speaks one sentence here and then with each package; `advance(1)` after it."""
    result = Beside(words, stock={package: [] for package in speakers})
    for number in range(rounds):
        result.ours.append(await speak(client, voice, words, number))
        for package, speaker in speakers.items():
            result.stock[package].append(await speaker.say(sentence(words, number)))
        advance(1)
    return result


def voices(client: Client, voice: str) -> Callable[[int], Stream]:
    """Opens long syntheses, one per number, to be cancelled."""
    return lambda number: client.open("synthesize", _params(voice, 60, number), window=WINDOW)


def _params(voice: str, words: int, number: int) -> dict[str, Any]:
    return {"text": sentence(words, number), "voice": voice}


def _seconds(item: Item) -> float:
    assert item.frame is not None
    return len(item.frame.payload) / SAMPLE_BYTES / SAMPLE_RATE
