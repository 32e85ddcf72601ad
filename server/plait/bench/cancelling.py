"""Cancels at random moments, in decode or in prefill, while other streams keep the engine busy.

A stop is timed twice: `stop_ms` is the server's own (cancel read -> engine's confirmed release),
`outside_ms` the client's (cancel sent -> terminal received). The engine's step is the gap between
two items of a stream that runs meanwhile, as it arrives. Does NOT judge the figures (see `report`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from plait.bench import prompts
from plait.bench.figures import histogram_bounds
from plait.bench.serving import BenchError, Server
from plait.client import Client, Stream
from plait.wire.messages import Cancelled, Done

Phase = Literal["decode", "prefill"]
Advance = Callable[[int], None]

# The latest a cancel comes: after the first item in decode, after the slot was given in prefill.
LATEST_SECONDS: dict[Phase, float] = {"decode": 0.5, "prefill": 3.0}
MISS_SHARE = 0.8  # a phase that was over by then is met sooner from then on
ANSWER_TOKENS = 256
MAX_MISSES = 20  # in a row: then the phase is too short to be met


@dataclass(frozen=True, slots=True)
class Plan:
    """`streams` counts the one that is cancelled."""

    engine: str
    streams: int
    cancels: int
    seed: int
    prefill_words: int


@dataclass(frozen=True, slots=True)
class Stop:
    """One cancel. `stop_ms` and `wasted_tokens` are None when the release came too late."""

    outside_ms: float
    stop_ms: float | None
    wasted_tokens: int | None


@dataclass(slots=True)
class PhaseResult:
    """`missed`: streams that had left the phase when their cancel was due; not counted.

    The p99s are bounds in seconds, from the server's histograms. `release_p99` is of all releases:
    late ones have no `stop_ms`, but the server goes on timing them.
    """

    phase: Phase
    stops: list[Stop] = field(default_factory=list)
    gaps_ms: list[float] = field(default_factory=list)
    missed: int = 0
    loop_lag_p99: tuple[float, float] | None = None
    release_p99: tuple[float, float] | None = None


async def measure(
    server: Server, client: Client, plan: Plan, phase: Phase, advance: Advance
) -> PhaseResult:
    """Cancel `plan.cancels` streams; `advance(1)` after each. Raises BenchError."""
    result = PhaseResult(phase)
    run = _Run(client, plan, phase, result, random.Random(f"{plan.seed} {phase}"))
    async with asyncio.TaskGroup() as tasks:
        neighbours = [tasks.create_task(run.keep_busy()) for _ in range(plan.streams - 1)]
        before = await server.metrics()
        longest = LATEST_SECONDS[phase]
        misses = 0
        while len(result.stops) < plan.cancels and misses < MAX_MISSES:
            delay = run.random.uniform(0, longest)
            if await run.cancel_one(delay):
                misses = 0
                advance(1)
            else:
                misses += 1
                longest = MISS_SHARE * delay
        after = await server.metrics()
        for neighbour in neighbours:
            neighbour.cancel()
    if misses == MAX_MISSES:
        raise BenchError(f"the {phase} is over too soon to be met: use a longer prompt")
    result.loop_lag_p99 = histogram_bounds(before, after, "plait_loop_lag_seconds", 0.99)
    result.release_p99 = histogram_bounds(before, after, "plait_cancel_release_seconds", 0.99)
    return result


class _Run:
    """One phase's streams, with one numbering so that no prompt comes twice."""

    def __init__(
        self, client: Client, plan: Plan, phase: Phase, result: PhaseResult, rng: random.Random
    ) -> None:
        self.random = rng
        self._client = client
        self._plan = plan
        self._phase = phase
        self._result = result
        self._numbers: Iterator[int] = itertools.count(1)

    async def keep_busy(self) -> None:
        """One answer after the other, until cancelled; notes the gaps between items."""
        while True:
            async with self._open("decode") as stream:
                await self._read(stream)

    async def cancel_one(self, delay_seconds: float) -> bool:
        """Open, wait for the phase and then the delay, cancel. False when it was too late."""
        async with self._open(self._phase) as stream:
            await stream.wait_started()
            if self._phase == "decode":
                await anext(stream)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_seconds):
                    await self._read(stream)
            left_phase = stream.state.ended or (self._phase == "prefill" and stream.last_seq > 0)
            sent = monotonic()
            cancelled = await stream.cancel()
        if left_phase or cancelled is None or stream.ended_at is None:
            self._result.missed += 1
            return False
        self._result.stops.append(_stop(cancelled, 1000 * (stream.ended_at - sent)))
        return True

    async def _read(self, stream: Stream) -> None:
        last: float | None = None
        async for item in stream:
            if last is not None:
                self._result.gaps_ms.append(1000 * (item.at - last))
            last = item.at
        assert isinstance(stream.terminal, Done)

    def _open(self, phase: Phase) -> Stream:
        number, engine = next(self._numbers), self._plan.engine
        words = self._plan.prefill_words
        messages = (
            prompts.long_prompt(number, words, engine=engine)
            if phase == "prefill"
            else prompts.story(number, engine=engine)
        )
        params = {"messages": messages, "max_tokens": ANSWER_TOKENS, "seed": number}
        return self._client.open("chat", params)


def _stop(cancelled: Cancelled, outside_ms: float) -> Stop:
    wasted = None if cancelled.wasted is None else cancelled.wasted.get("tokens", 0)
    return Stop(outside_ms, cancelled.stop_ms, wasted)
