"""Texts per second over the wire against the same adapter driven directly, in pairs.

Both sides embed the same texts one right after the other, taking turns at going first, so that what
else the machine does falls on both. Directly, a job has all its texts at once: nothing faster can
be asked of the engine. Does NOT judge the figures (see `embed_report`).
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any

from plait.bench.chatting import DirectEngine
from plait.bench.direct import BatchTimes
from plait.bench.figures import Spread, histogram_bounds
from plait.bench.sentences import WORDS, sentence
from plait.bench.serving import BenchError, Server
from plait.client import Client, Stream

SINGLES = 64
BATCHES = 8
BATCH_TEXTS = 32
TEXTS_AT_ONCE = 256  # of an endless source, to be cancelled

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Load:
    """`streams` one after the other, of `texts` each; `uploaded`: they follow their open."""

    name: str
    streams: int
    texts: int
    uploaded: bool = False

    @property
    def all_texts(self) -> int:
        return self.streams * self.texts


def loads(bulk_texts: int) -> list[Load]:
    return [
        Load("1 text", SINGLES, 1),
        Load(f"{BATCH_TEXTS} texts", BATCHES, BATCH_TEXTS),
        Load(f"{bulk_texts} by input", 1, bulk_texts, uploaded=True),
    ]


@dataclass(frozen=True, slots=True)
class Side:
    """One load on one side. CPU seconds of the gateway: 0.0 where there is none."""

    times: BatchTimes
    gateway_cpu_seconds: float = 0.0

    @property
    def texts_per_second(self) -> float:
        return self.times.units / (self.times.end - self.times.begin)


@dataclass(slots=True)
class LoadResult:
    load: Load
    pairs: list[tuple[Side, Side]] = field(default_factory=list)  # (wire, direct)
    loop_lag_p99: tuple[float, float] | None = None  # bounds in seconds

    @property
    def ratio(self) -> float:
        """Median over the pairs of wire rate / direct rate."""
        return median(wire.texts_per_second / own.texts_per_second for wire, own in self.pairs)

    def rate(self, side: int) -> float:
        return median(pair[side].texts_per_second for pair in self.pairs)

    def stream_ms(self, side: int) -> Spread | None:
        """A stream from its open to its last vector; streams follow each other without a pause."""
        batches = [pair[side].times for pair in self.pairs]
        return Spread.of(1000 * seconds for batch in batches for seconds in _stream_seconds(batch))

    def cpu_ms_per_text(self, side: int) -> float:
        """Of the process that computes."""
        batches = [pair[side].times for pair in self.pairs]
        return 1000 * sum(b.cpu_seconds for b in batches) / max(1, sum(b.units for b in batches))

    @property
    def gateway_cpu_ms_per_text(self) -> float:
        sides = [wire for wire, _ in self.pairs]
        texts = sum(side.times.units for side in sides)
        return 1000 * sum(side.gateway_cpu_seconds for side in sides) / max(1, texts)


def _stream_seconds(batch: BatchTimes) -> list[float]:
    ends = [batch.begin, *(items[-1] for items in batch.items if items)]
    return [end - begin for begin, end in itertools.pairwise(ends)]


async def measure(
    server: Server,
    client: Client,
    direct: DirectEngine,
    load: Load,
    rounds: int,
    advance: Advance,
) -> LoadResult:
    """`rounds` pairs of one load; `advance(1)` after each. Raises BenchError."""
    result = LoadResult(load)
    before = await server.metrics()
    for number in range(rounds):
        batch = texts_of(load, number)
        if number % 2:
            own = await _directly(direct, batch)
            wire = await _over_the_wire(server, client, load, batch)
        else:
            wire = await _over_the_wire(server, client, load, batch)
            own = await _directly(direct, batch)
        result.pairs.append((wire, own))
        advance(1)
    after = await server.metrics()
    result.loop_lag_p99 = histogram_bounds(before, after, "plait_loop_lag_seconds", 0.99)
    return result


def texts_of(load: Load, number: int) -> list[list[str]]:
    """Per stream its texts: of all lengths in turn, no text twice, the same in every run."""
    first = number * load.all_texts
    return [
        [text(first + stream * load.texts + index) for index in range(load.texts)]
        for stream in range(load.streams)
    ]


def text(number: int) -> str:
    """3, 8, 20 or 60 words and a number of its own."""
    return f"{sentence(WORDS[number % len(WORDS)], number // len(WORDS))} ({number})"


async def _directly(direct: DirectEngine, batch: list[list[str]]) -> Side:
    jobs: list[dict[str, Any]] = [{"texts": texts} for texts in batch]
    return Side(await direct.run(jobs, "embed", together=False))


async def _over_the_wire(
    server: Server, client: Client, load: Load, batch: list[list[str]]
) -> Side:
    gateway, worker = await server.cpu_seconds()
    begin = monotonic()
    items = [await _embed(client, texts, uploaded=load.uploaded) for texts in batch]
    end = monotonic()
    gateway_after, worker_after = await server.cpu_seconds()
    times = BatchTimes(begin, end, worker_after - worker, load.all_texts, items)
    return Side(times, gateway_after - gateway)


async def _embed(client: Client, texts: list[str], *, uploaded: bool) -> list[float]:
    """When the vectors arrived. Raises BenchError when one is missing."""
    arrivals = []
    async with client.embed(_as_source(texts) if uploaded else texts) as stream:
        async for answer in stream:
            if answer.error is not None:
                raise BenchError(f"text {answer.index} has no vector: {answer.error.message}")
            arrivals.append(monotonic())
    if len(arrivals) != len(texts):
        raise BenchError(f"{len(texts)} texts were answered by {len(arrivals)} vectors")
    return arrivals


async def _as_source(texts: list[str]) -> AsyncIterator[list[str]]:
    for first in range(0, len(texts), BATCH_TEXTS):
        yield texts[first : first + BATCH_TEXTS]


def embedders(client: Client) -> Callable[[int], Stream]:
    """Opens streams that have texts for as long as anybody waits, to be cancelled."""

    def open_stream(number: int) -> Stream:
        return client.open("embed", {}, source=_without_end(number))

    return open_stream


async def _without_end(number: int) -> AsyncIterator[list[str]]:
    for first in itertools.count(number * 1_000_000, TEXTS_AT_ONCE):
        yield [text(first + index) for index in range(TEXTS_AT_ONCE)]
