"""Tokens per second over the wire against the same adapter driven directly, in pairs.

Both sides run the same chats (greedy, no cached prefixes) one right after the other, taking turns
at going first, so that what else the machine does falls on both. Two models are in memory, one
computes. Does NOT judge the figures (see `report`).
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from sys import executable
from time import monotonic
from typing import Any

import msgspec

from plait.bench import prompts
from plait.bench.direct import Batch, BatchTimes
from plait.bench.figures import Spread, histogram_bounds
from plait.bench.serving import BenchError, Server
from plait.client import Client, connect
from plait.engines.base import LoadSpec
from plait.wire.messages import Done

Advance = Callable[[int], None]
LINE_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Plan:
    """`rounds` pairs at each of `levels` (streams at once), `tokens` an answer."""

    engine: str
    levels: tuple[int, ...]
    rounds: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Side:
    """One batch on one side. CPU seconds: of the process that computes; 0.0 when unknown."""

    times: BatchTimes
    gateway_cpu_seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        return self.times.units / (self.times.end - self.times.begin)


@dataclass(slots=True)
class LevelResult:
    streams: int
    pairs: list[tuple[Side, Side]] = field(default_factory=list)  # (wire, direct)
    loop_lag_p99: tuple[float, float] | None = None  # bounds in seconds

    @property
    def ratio(self) -> float:
        """Median over the pairs of wire rate / direct rate."""
        return median(wire.tokens_per_second / own.tokens_per_second for wire, own in self.pairs)

    def rate(self, side: int) -> float:
        return median(pair[side].tokens_per_second for pair in self.pairs)

    def first_items_ms(self, side: int) -> Spread | None:
        """From the batch's begin to each chat's first item."""
        batches = [pair[side].times for pair in self.pairs]
        return Spread.of(1000 * (at[0] - b.begin) for b in batches for at in b.items if at)

    def gaps_ms(self, side: int) -> Spread | None:
        batches = [pair[side].times for pair in self.pairs]
        return Spread.of(
            1000 * (later - sooner)
            for batch in batches
            for at in batch.items
            for sooner, later in pairwise(at)
        )

    def cpu_ms_per_token(self, side: int) -> float:
        """Of the process that computes."""
        batches = [pair[side].times for pair in self.pairs]
        return 1000 * sum(b.cpu_seconds for b in batches) / max(1, sum(b.units for b in batches))

    @property
    def gateway_cpu_ms_per_token(self) -> float:
        sides = [wire for wire, _ in self.pairs]
        tokens = sum(side.times.units for side in sides)
        return 1000 * sum(side.gateway_cpu_seconds for side in sides) / max(1, tokens)


class DirectEngine:
    """The parent's end of `plait.bench.direct`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._batches = 0

    async def run(
        self, jobs: list[dict[str, Any]], method: str = "chat", *, together: bool = True
    ) -> BatchTimes:
        """Each batch is its own scope, as on the wire it is its own connection."""
        self._batches += 1
        await self.send(Batch(str(self._batches), jobs, method, together))
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise BenchError("the directly driven engine ended; run it again to see whether it was")
        return msgspec.json.decode(line, type=BatchTimes)

    async def send(self, message: msgspec.Struct) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(message) + b"\n")
        await self._process.stdin.drain()


@contextlib.asynccontextmanager
async def direct_engine(spec: LoadSpec) -> AsyncIterator[DirectEngine]:
    """Loads in the background; the first `run` waits for it. Ended with the block."""
    process = await asyncio.create_subprocess_exec(
        *(executable, "-m", "plait.bench.direct"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=LINE_BYTES,
    )
    try:
        engine = DirectEngine(process)
        await engine.send(spec)
        yield engine
    finally:
        process.kill()
        await process.wait()


async def measure(
    server: Server, direct: DirectEngine, plan: Plan, streams: int, advance: Advance
) -> LevelResult:
    """`plan.rounds` pairs at one level; `advance(1)` after each."""
    result = LevelResult(streams)
    before = await server.metrics()
    for number in range(plan.rounds):
        batch = chats(plan, streams, number)
        if number % 2:
            own = Side(await direct.run(batch))
            wire = await over_the_wire(server, batch)
        else:
            wire = await over_the_wire(server, batch)
            own = Side(await direct.run(batch))
        result.pairs.append((wire, own))
        advance(1)
    after = await server.metrics()
    result.loop_lag_p99 = histogram_bounds(before, after, "plait_loop_lag_seconds", 0.99)
    return result


def chats(plan: Plan, streams: int, number: int) -> list[dict[str, Any]]:
    """Params of a batch's chats; greedy, so that both sides compute the same."""
    return [
        {
            "messages": prompts.story(100 * number + index, engine=plan.engine),
            "max_tokens": plan.tokens,
            "temperature": 0.0,
        }
        for index in range(streams)
    ]


async def over_the_wire(server: Server, batch: list[dict[str, Any]]) -> Side:
    """A connection of its own, so that no prefix of an earlier batch is in reach."""
    async with connect(server.ws_url) as client:
        gateway, worker = await server.cpu_seconds()
        begin = monotonic()
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(_chat(client, params)) for params in batch]
        end = monotonic()
        gateway_after, worker_after = await server.cpu_seconds()
    tokens = sum(task.result()[0] for task in running)
    items = [task.result()[1] for task in running]
    times = BatchTimes(begin, end, worker_after - worker, tokens, items)
    return Side(times, gateway_after - gateway)


async def _chat(client: Client, params: dict[str, Any]) -> tuple[int, list[float]]:
    async with client.open("chat", params) as stream:
        arrivals = [item.at async for item in stream]
    assert isinstance(stream.terminal, Done)
    return stream.terminal.usage["completion_tokens"], arrivals
