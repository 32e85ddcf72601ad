"""Many streams on one socket beside a slow reader: what the others notice of it.

The same load in three situations, in cycles: nobody is slow; one stream of that socket
acknowledges late, so that its engine job is paused over and over; another connection hardly reads,
so that its outbox and the kernel's buffers are full. Measured are the others' rate and the age of
their items. Does NOT judge (see `report`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket as sockets_of_os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from plait.bench.figures import Spread
from plait.bench.gateway.costs import paced
from plait.bench.gateway.latency import half_load, stamp
from plait.bench.gateway.rates import Advance
from plait.bench.gateway.reading import Flow, Socket, Tally, elapse
from plait.bench.gateway.sides import (
    SETTLE_SECONDS,
    TEXT_BYTES,
    UNENDING,
    Side,
    Streams,
    connected,
)

Situation = Literal["nobody slow", "one acks late", "one reads slowly"]
SITUATIONS: tuple[Situation, ...] = ("nobody slow", "one acks late", "one reads slowly")
STREAMS = 256
LATE_SECONDS, LATE_WINDOW = 0.5, 2  # four items a second: its job is paused most of the time
SLOW_READ_SECONDS = 0.2
SLOW_BURST = 32  # items per step of the slow connection's stream: far more than it reads
SMALL_BUFFER_BYTES = 4096


@dataclass(slots=True)
class FanOut:
    """Per cycle: items per second and ages (ms) of all streams but the slow one."""

    situation: Situation
    rates: list[float] = field(default_factory=list)
    ages: list[Spread] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return median(self.rates)

    def age(self, name: str) -> float:
        return median(float(getattr(spread, name)) for spread in self.ages)

    def rate_ratio(self, beside: FanOut) -> float:
        return median(a / b for a, b in zip(self.rates, beside.rates, strict=True))

    def more_ms(self, beside: FanOut, name: str) -> float:
        pairs = zip(self.ages, beside.ages, strict=True)
        return median(float(getattr(a, name) - getattr(b, name)) for a, b in pairs)


async def measure(
    side: Side, streams: int, cycles: int, seconds: float, advance: Advance
) -> list[FanOut]:
    """`advance(1)` after each sample. Raises BenchError."""
    offered = await half_load(side, streams, seconds)
    results = [FanOut(situation) for situation in SITUATIONS]
    tally = Tally(TEXT_BYTES)
    async with connected(side, tally, 1) as [socket]:
        many = Streams([socket])
        script = paced(streams, offered, "clock=1")
        await many.open(1, script, window=LATE_WINDOW)
        await many.open(streams - 1, script)
        flows = [flow for _, flow in many.opened]
        ages = stamp(flows[1:])
        await many.let_go()
        for _ in range(cycles):
            for result in results:
                async with _situation(result.situation, side, flows[0], streams, offered):
                    await _sample(result, flows[1:], ages, seconds)
                advance(1)
        await many.cancel()
    return results


async def _sample(result: FanOut, flows: Sequence[Flow], ages: list[int], seconds: float) -> None:
    await asyncio.sleep(2 * SETTLE_SECONDS)
    ages.clear()
    loop = asyncio.get_running_loop()
    begin, before = loop.time(), sum(flow.items for flow in flows)
    await elapse(seconds, lambda: bool(ages), "items of the others")
    rate = (sum(flow.items for flow in flows) - before) / (loop.time() - begin)
    spread = Spread.of(1e-6 * age for age in ages)
    assert spread is not None
    result.rates.append(rate)
    result.ages.append(spread)


@contextlib.asynccontextmanager
async def _situation(
    situation: Situation, side: Side, slow: Flow, streams: int, offered: float
) -> AsyncIterator[None]:
    if situation == "one acks late":
        slow.delay_seconds = LATE_SECONDS
        yield
        slow.delay_seconds = 0.0
    elif situation == "one reads slowly":
        async with connected(side, Tally(TEXT_BYTES), 1) as [socket]:
            _shrink(socket)
            script = paced(streams, offered, f"burst={SLOW_BURST}")
            socket.open(script, window=0, max_tokens=UNENDING)
            reading = asyncio.create_task(_read_slowly(socket))
            try:
                yield
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
    else:
        yield


def _shrink(socket: Socket) -> None:
    os_socket: sockets_of_os.socket = socket.transport.get_extra_info("socket")
    os_socket.setsockopt(sockets_of_os.SOL_SOCKET, sockets_of_os.SO_RCVBUF, SMALL_BUFFER_BYTES)


async def _read_slowly(socket: Socket) -> None:
    """One read of what has come, now and then."""
    while True:
        socket.transport.pause_reading()
        await asyncio.sleep(SLOW_READ_SECONDS)
        socket.transport.resume_reading()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
