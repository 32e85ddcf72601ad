"""Cancels of one stream at random moments, while others like it go on: for every method alike.

A stop is timed by the server (`stop_ms`: cancel read to confirmed release) and by the client (sent
to terminal). Does NOT know methods, and judges nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from plait.bench.figures import Spread
from plait.bench.report import Table, Target
from plait.client import Stream
from plait.wire.messages import Cancelled

LATEST_CANCEL_SECONDS = 2.0

Advance = Callable[[int], None]
OpenStream = Callable[[int], Stream]
"""A stream that goes on for longer than `LATEST_CANCEL_SECONDS`; the number never comes twice."""


@dataclass(slots=True)
class Cancels:
    """`stop_ms` of confirmed releases; `late` were not confirmed within 100 ms.

    `wasted`: in the method's `unit`.
    """

    streams: int
    stop_ms: list[float] = field(default_factory=list)
    outside_ms: list[float] = field(default_factory=list)
    wasted: list[int] = field(default_factory=list)
    late: int = 0
    unit: str = "audio_ms"


async def measure_cancels(
    open_stream: OpenStream, streams: int, cancels: int, seed: int, advance: Advance
) -> Cancels:
    """Cancel one of `streams` at random moments, `advance(1)` after each."""
    result = Cancels(streams)
    moments = random.Random(seed)
    numbers = itertools.count()
    async with asyncio.TaskGroup() as tasks:
        others = [tasks.create_task(_keep_busy(open_stream, numbers)) for _ in range(streams - 1)]
        while len(result.outside_ms) < cancels:
            delay = moments.uniform(0, LATEST_CANCEL_SECONDS)
            if await _cancel_one(open_stream(next(numbers)), delay, result):
                advance(1)
        for other in others:
            other.cancel()
    return result


async def _keep_busy(open_stream: OpenStream, numbers: itertools.count[int]) -> None:
    while True:
        async with open_stream(next(numbers)) as stream:
            await _read(stream)


async def _cancel_one(opened: Stream, delay_seconds: float, result: Cancels) -> bool:
    """False when it had ended before its cancel."""
    async with opened as stream:
        await stream.wait_started()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_seconds):
                await _read(stream)
        sent = monotonic()
        cancelled = await stream.cancel()
    if not isinstance(cancelled, Cancelled) or stream.ended_at is None:
        return False
    result.outside_ms.append(1000 * (stream.ended_at - sent))
    if cancelled.stop_ms is None:
        result.late += 1
    else:
        result.stop_ms.append(cancelled.stop_ms)
    if cancelled.wasted is not None:
        result.wasted.append(sum(cancelled.wasted.values()))
        result.unit = next(iter(cancelled.wasted), result.unit)
    return True


async def _read(stream: Stream) -> None:
    async for _ in stream:
        pass


# --- what it says ------------------------------------------------------------------------------


def cancel_table(cancels: Cancels, title: str) -> Table:
    stop, outside = Spread.of(cancels.stop_ms), Spread.of(cancels.outside_ms)
    wasted = Spread.of(cancels.wasted)
    unit = "audio, ms" if cancels.unit == "audio_ms" else cancels.unit
    rows = [
        ("cancels", [str(len(cancels.outside_ms))]),
        *((f"stop_ms (server) {name}", [_pick(stop, name)]) for name in ("p50", "p95", "max")),
        *((f"client, ms {name}", [_pick(outside, name)]) for name in ("p50", "p95", "max")),
        (f"wasted {unit}, max", [_pick(wasted, "max")]),
        ("released later than 100 ms", [str(cancels.late)]),
    ]
    return Table(title, [f"{cancels.streams} streams"], rows)


def cancel_targets(cancels: Cancels, p95_ms: float) -> list[Target]:
    stop = Spread.of(cancels.stop_ms)
    met = None if stop is None else stop.p95 <= p95_ms and not cancels.late
    measured = f"{_pick(stop, 'p95')} ms, {cancels.late} later than 100 ms"
    return [Target(f"{cancels.streams} streams: release p95 within {p95_ms:g} ms", met, measured)]


def cancel_record(cancels: Cancels) -> dict[str, Any]:
    stop = Spread.of(cancels.stop_ms)
    return asdict(cancels) | {"stop_ms_spread": None if stop is None else asdict(stop)}


def _pick(spread: Spread | None, name: str) -> str:
    return "-" if spread is None else f"{getattr(spread, name):.0f}"
