"""Streams opened and cancelled, and opened and completed, per second through one connection.

So many are under way at a time; each that ends is followed by the next. A cancel leaves in the same
write as its open (`with_open`), or once the stream has started (`started`). Does NOT judge.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from plait.bench.gateway.reading import Flow, Socket, Tally
from plait.bench.gateway.sides import (
    SETTLE_SECONDS,
    TEXT_BYTES,
    WINDOW,
    Sample,
    Side,
    connected,
    sample,
)

Ending = Literal["cancelled at once", "cancelled when started", "completed"]
ENDINGS: tuple[Ending, ...] = ("cancelled at once", "cancelled when started", "completed")
UNDER_WAY = 32
SHORT = f"tokens=1 size={TEXT_BYTES}"
LONG = f"tokens=1000 step_ms=1000 size={TEXT_BYTES}"


@dataclass(frozen=True, slots=True)
class OpenRate:
    ending: Ending
    streams: int
    sample: Sample

    @property
    def per_second(self) -> float:
        return self.streams / self.sample.seconds

    @property
    def cpu_us(self) -> float:
        """Of the gateway, per stream."""
        return 1e6 * self.sample.server_cpu / self.streams if self.streams else 0.0


async def measure(side: Side, ending: Ending, seconds: float) -> OpenRate:
    """Raises BenchError when a stream fails."""
    tally = Tally(TEXT_BYTES)
    ended = 0
    async with connected(side, tally, 1) as [socket]:

        def follow(flow: Flow) -> None:
            nonlocal ended
            ended += 1
            _open(socket, ending)

        def cancel(flow: Flow) -> None:
            socket.cancel(flow, tell=False)

        tally.on_end = follow
        if ending == "cancelled when started":
            tally.on_start = cancel
        for _ in range(UNDER_WAY):
            _open(socket, ending)
        socket.flush()
        await asyncio.sleep(SETTLE_SECONDS)
        before = ended
        measured = await sample(side, tally, seconds, lambda: ended > before)
        count = ended - before
        tally.on_end = None
    return OpenRate(ending, count, measured)


def _open(socket: Socket, ending: Ending) -> None:
    """The frames leave with what else the client answers in this turn."""
    script = SHORT if ending == "completed" else LONG
    flow = socket.open(script, window=WINDOW, max_tokens=1000, tell=False)
    if ending == "cancelled at once":
        socket.cancel(flow, tell=False)
