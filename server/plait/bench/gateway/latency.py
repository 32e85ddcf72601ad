"""How old an item is when its reader gets it: from the engine's step to the client's read.

Items carry the engine's monotonic time, which all processes of a machine share. The load is half of
what saturates the gateway, from streams on one connection in step with each other; the bare server
sends the same frames at the same pace, each stamped when it is made, while the gateway is frozen.
What the gateway adds is the difference in a round: with it the engine's process, which has to wait
for a core as well, and which the bare server has not. Does NOT judge (see `report`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from plait.bench.figures import Spread
from plait.bench.gateway.costs import paced
from plait.bench.gateway.rates import Advance, Load, saturated, stop_bare
from plait.bench.gateway.reading import Flow, Socket, Tally, elapse
from plait.bench.gateway.sides import (
    SETTLE_SECONDS,
    TEXT_BYTES,
    Side,
    Sides,
    Streams,
    connected,
    sample,
)

STREAMS = 16
MS = 1e-6  # of a nanosecond


@dataclass(slots=True)
class Latency:
    """Milliseconds; one spread per round. `offered`: items per second, of all streams."""

    offered: float
    gateway: list[Spread] = field(default_factory=list)
    bare: list[Spread] = field(default_factory=list)

    def median_of(self, side: Sequence[Spread], name: str) -> float:
        return median(float(getattr(spread, name)) for spread in side)

    def added(self, name: str) -> float:
        """By the gateway, in the quantile of that name: the median over rounds."""
        pairs = zip(self.gateway, self.bare, strict=True)
        return median(float(getattr(ours, name) - getattr(theirs, name)) for ours, theirs in pairs)


async def half_load(side: Side, streams: int, seconds: float) -> float:
    """Half of the items per second that saturate the gateway now."""
    tally = Tally(TEXT_BYTES)
    async with saturated(side, Load(1, streams), tally):
        return (await sample(side, tally, seconds)).items_per_second / 2


async def measure(sides: Sides, rounds: int, seconds: float, advance: Advance) -> Latency:
    """`advance(1)` after each round. Raises BenchError."""
    offered = await half_load(sides.gateway, STREAMS, seconds)
    result = Latency(offered)
    ours, theirs = Tally(TEXT_BYTES), Tally(TEXT_BYTES)
    async with (
        connected(sides.gateway, ours, 1) as gateway,
        connected(sides.bare, theirs, 1) as [bare],
    ):
        streams = Streams(gateway)
        await streams.open(STREAMS, paced(STREAMS, offered, "clock=1"))
        stamps = stamp([flow for _, flow in streams.opened])
        await streams.let_go()
        for _ in range(rounds):
            result.gateway.append(await collect(stamps, seconds))
            async with sides.gateway.frozen():
                result.bare.append(await _bare(bare, offered, seconds))
            advance(1)
        await streams.cancel()
    return result


def stamp(flows: Sequence[Flow]) -> list[int]:
    """Where the ages of these streams' items go, in nanoseconds."""
    ages: list[int] = []
    for flow in flows:
        flow.stamps_ns = ages
    return ages


async def collect(stamps: list[int], seconds: float) -> Spread:
    """Of the items that come from now on, settled. Milliseconds."""
    await asyncio.sleep(SETTLE_SECONDS)
    stamps.clear()
    await elapse(seconds, lambda: bool(stamps), "items with their time")
    spread = Spread.of(MS * age for age in stamps)
    assert spread is not None
    return spread


async def _bare(socket: Socket, offered: float, seconds: float) -> Spread:
    socket.flows = {id: Flow(id, 0) for id in range(1, STREAMS + 1)}
    stamps = stamp([*socket.flows.values()])
    step_ms = 1000 * STREAMS / offered
    socket.send(f"pace {STREAMS} {TEXT_BYTES} {step_ms:.3f}".encode())
    spread = await collect(stamps, seconds)
    await stop_bare([socket])
    return spread
