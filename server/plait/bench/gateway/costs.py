"""What an item costs the gateway in CPU time, when as many of them are shared by more streams.

Every load gets the same offered rate, well below saturation, in cycles over all loads. Does NOT
judge (see `report`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from plait.bench.gateway.rates import Advance, Load
from plait.bench.gateway.reading import Tally
from plait.bench.gateway.sides import (
    OFFERED_PER_SECOND,
    SETTLE_SECONDS,
    TEXT_BYTES,
    Sample,
    Side,
    Streams,
    connected,
    sample,
)


@dataclass(slots=True)
class LoadCost:
    load: Load
    samples: list[Sample] = field(default_factory=list)

    @property
    def cpu_us_per_item(self) -> float:
        return median(each.cpu_us_per_item for each in self.samples)

    def ratio_to(self, other: LoadCost) -> float:
        """Median over the cycles of this load's cost to the other's; NaN where that was nothing."""
        pairs = zip(self.samples, other.samples, strict=True)
        ratios = [a.cpu_us_per_item / b.cpu_us_per_item for a, b in pairs if b.cpu_us_per_item]
        return median(ratios) if ratios else math.nan


def paced(streams: int, items_per_second: float, more: str = "") -> str:
    """The script of one of `streams` which together put out so many items a second."""
    step_ms = 1000 * streams / items_per_second
    return f"tokens=1048576 step_ms={step_ms:.3f} size={TEXT_BYTES} {more}".rstrip()


async def measure(
    side: Side, loads: Sequence[Load], cycles: int, seconds: float, advance: Advance
) -> list[LoadCost]:
    """`advance(1)` after each sample. Raises BenchError."""
    costs = [LoadCost(load) for load in loads]
    for _ in range(cycles):
        for cost in costs:
            cost.samples.append(await _sample(side, cost.load, seconds))
            advance(1)
    return costs


async def _sample(side: Side, load: Load, seconds: float) -> Sample:
    tally = Tally(TEXT_BYTES)
    async with connected(side, tally, load.connections) as sockets:
        streams = Streams(sockets)
        await streams.open(load.streams, paced(load.streams, OFFERED_PER_SECOND))
        await streams.let_go()
        await asyncio.sleep(SETTLE_SECONDS)
        measured = await sample(side, tally, seconds)
        await streams.cancel()
    return measured
