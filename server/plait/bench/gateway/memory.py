"""Memory of a server per idle connection, and of the gateway per stream that waits.

Growth of the process's own memory (USS: what it alone has) between a first lot, which fills what a
process keeps for reuse, and a second lot ten times as large. Garbage that the server has not
collected counts against it. Does NOT judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from plait.bench.gateway.reading import Socket, Tally, elapse
from plait.bench.gateway.sides import TEXT_BYTES, Side, Streams, connected
from plait.bench.serving import BenchError

REST_SECONDS = 0.5
SOCKETS = 4  # of the streams
# Paused: at a window of one item that is never acknowledged. Quiet: started, nothing to send yet.
QUIET = f"tokens=1000 step_ms=3600000 size={TEXT_BYTES}"
PAUSED = f"tokens=1000 step_ms=20 size={TEXT_BYTES}"


@dataclass(frozen=True, slots=True)
class Growth:
    """Of `count` more of them. Bytes."""

    count: int
    resident: int
    unique: int

    @property
    def unique_each(self) -> float:
        return self.unique / self.count

    @property
    def resident_each(self) -> float:
        return self.resident / self.count


async def of_connections(side: Side, count: int) -> Growth:
    tally = Tally(TEXT_BYTES)
    async with connected(side, tally, max(1, count // 10)):
        before = await _rested(side)
        async with connected(side, tally, count):
            after = await _rested(side)
    return Growth(count, after[0] - before[0], after[1] - before[1])


async def of_quiet_streams(side: Side, count: int) -> Growth:
    """They hold a slot and have sent nothing."""
    tally = Tally(TEXT_BYTES)
    async with connected(side, tally, SOCKETS) as sockets:
        streams = Streams(sockets)
        await streams.open(_first_lot(count), QUIET)
        before = await _rested(side)
        await streams.open(count, QUIET)
        after = await _rested(side)
        await streams.cancel()
    return Growth(count, after[0] - before[0], after[1] - before[1])


async def of_paused_streams(side: Side, count: int) -> Growth:
    """The engine rests for a reader that took one item and acknowledges nothing."""
    tally = Tally(TEXT_BYTES)
    async with connected(side, tally, SOCKETS) as sockets:
        await _pause(sockets, _first_lot(count))
        before = await _rested(side)
        await _pause(sockets, count)
        after = await _rested(side)
    return Growth(count, after[0] - before[0], after[1] - before[1])


async def _pause(sockets: Sequence[Socket], count: int) -> None:
    """Returns once each of so many more streams has sent all that its window lets it.

    Raises BenchError when one fails or does not.
    """
    tally = sockets[0].tally
    expected = tally.items + count
    for number in range(count):
        socket = sockets[number % len(sockets)]
        socket.open(PAUSED, window=1, max_tokens=1000, acks=False)
    what = f"the first item of {count} paused streams"
    await elapse(0.0, lambda: bool(tally.failure) or tally.items >= expected, what)
    if tally.failure:
        raise BenchError(f"{what}: {tally.failure}")


async def _rested(side: Side) -> tuple[int, int]:
    await asyncio.sleep(REST_SECONDS)
    return await side.memory_bytes()


def _first_lot(count: int) -> int:
    """Together with the others they fit into the slots."""
    return max(1, count // 50)
