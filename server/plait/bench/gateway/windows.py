"""Items per second of a stream against its window, at several round trips.

One stream per window, on one connection, all of one pace: that of a very fast model. The round trip
is simulated by acks that leave late. A window is large enough where the stream keeps that pace.
Does NOT judge (see `report`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from plait.bench.gateway.rates import Advance
from plait.bench.gateway.reading import Tally, elapse
from plait.bench.gateway.sides import SETTLE_SECONDS, TEXT_BYTES, UNENDING, Side, connected

WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ROUND_TRIPS_MS = (0, 20, 50, 100, 200)
FLAT = 0.95  # of the best rate


@dataclass(frozen=True, slots=True)
class Curve:
    """Per window: items per second, and the most items that were sent and not acknowledged."""

    round_trip_ms: int
    windows: tuple[int, ...]
    rates: tuple[float, ...]
    outstanding: tuple[int, ...]

    @property
    def flat_from(self) -> int:
        """The smallest window from which on every rate is at least FLAT of the best one."""
        enough = FLAT * max(self.rates)
        flat = self.windows[-1]
        for window, rate in zip(reversed(self.windows), reversed(self.rates), strict=True):
            if rate < enough:
                break
            flat = window
        return flat


async def measure(
    side: Side,
    items_per_second: float,
    seconds: float,
    advance: Advance,
    windows: Sequence[int] = WINDOWS,
    round_trips_ms: Sequence[int] = ROUND_TRIPS_MS,
) -> list[Curve]:
    """`items_per_second` of each stream. `advance(1)` after each round trip. Raises BenchError."""
    curves = []
    for round_trip_ms in round_trips_ms:
        curves.append(await _curve(side, items_per_second, seconds, windows, round_trip_ms))
        advance(1)
    return curves


async def _curve(
    side: Side, rate: float, seconds: float, windows: Sequence[int], round_trip_ms: int
) -> Curve:
    tally = Tally(TEXT_BYTES)
    script = f"tokens=1048576 step_ms={1000 / rate:.3f} size={TEXT_BYTES}"
    async with connected(side, tally, 1) as [socket]:
        flows = [socket.open(script, window=each, max_tokens=UNENDING) for each in windows]
        for flow in flows:
            flow.delay_seconds = round_trip_ms / 1000
        await tally.until(lambda: tally.messages["started"] >= len(flows), "the streams' start")
        await asyncio.sleep(SETTLE_SECONDS + 2 * round_trip_ms / 1000)
        loop = asyncio.get_running_loop()
        begin, before = loop.time(), [flow.items for flow in flows]
        await elapse(seconds, lambda: flows[-1].items > before[-1], "items of the widest window")
        elapsed = loop.time() - begin
        rates = [(flow.items - had) / elapsed for flow, had in zip(flows, before, strict=True)]
    outstanding = tuple(flow.most_outstanding for flow in flows)
    return Curve(round_trip_ms, tuple(windows), tuple(rates), outstanding)
