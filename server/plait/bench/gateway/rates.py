"""Items per second through connections and streams, beside a bare server, in turns.

A round asks the gateway, the bare server sending the same frames as fast as it can (`push`), and
the bare server echoing them (`echo`); the gateway is frozen meanwhile. What else the machine does
falls on all three, so ratios are of a round, and the result's are medians over rounds. The measure
is frames per CPU second of the serving process: client, server and worker share the cores. Does NOT
judge (see `report`).

Frames are compared with items that cannot be joined; what joining brings is a load of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from statistics import median

from plait.bench.gateway.bare import item_text
from plait.bench.gateway.reading import Socket, Tally
from plait.bench.gateway.sides import (
    OFFERED_PER_SECOND,
    SETTLE_SECONDS,
    TEXT_BYTES,
    WINDOW,
    Sample,
    Side,
    Sides,
    Streams,
    connected,
    sample,
)

Advance = Callable[[int], None]

STEP_ITEMS = 32  # of the engine, together: fewer and its own turns are what is measured
ECHOES = 256  # on their way at a time, over all connections


@dataclass(frozen=True, slots=True)
class Load:
    """`joins`: items are plain texts, which leave together while the connection lags."""

    connections: int
    streams: int
    joins: bool = False

    @property
    def name(self) -> str:
        sockets = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        streams = "1 stream" if self.streams == 1 else f"{self.streams} streams"
        return f"{sockets}, {streams}" + (", texts that join" if self.joins else "")


@dataclass(frozen=True, slots=True)
class Round:
    gateway: Sample
    push: Sample
    echo: Sample


@dataclass(slots=True)
class LoadRates:
    load: Load
    rounds: list[Round] = field(default_factory=list)

    def median_of(self, figure: Callable[[Round], float]) -> float:
        return median(figure(each) for each in self.rounds)

    @property
    def of_push(self) -> float:
        """Frames per CPU second of the gateway, of those of a bare server that only sends."""
        return self.median_of(
            lambda r: _ratio(r.gateway.frames_per_cpu_second, r.push.frames_per_cpu_second)
        )

    @property
    def of_echo(self) -> float:
        return self.median_of(
            lambda r: _ratio(r.gateway.frames_per_cpu_second, r.echo.frames_per_cpu_second)
        )


def script(load: Load) -> str:
    """Saturating; over many connections paced: overrun, each would rest longer than its slot
    waits for it, and slots taking turns would be what is measured.
    """
    script = f"tokens=1048576 size={TEXT_BYTES}"
    if load.connections > 1:
        script += f" step_ms={1000 * load.streams / OFFERED_PER_SECOND:.3f}"
    else:
        script += f" step_ms=0 burst={max(1, STEP_ITEMS // load.streams)}"
    return script if load.joins else f"{script} apart=1"


async def measure(
    sides: Sides, load: Load, rounds: int, seconds: float, advance: Advance
) -> LoadRates:
    """`advance(1)` after each round. Raises BenchError."""
    result = LoadRates(load)
    ours, theirs = Tally(TEXT_BYTES), Tally(TEXT_BYTES)
    async with (
        connected(sides.bare, theirs, load.connections) as bare,
        saturated(sides.gateway, load, ours),
    ):
        for number in range(rounds):
            await asyncio.sleep(SETTLE_SECONDS)
            gateway = await sample(sides.gateway, ours, seconds)
            async with sides.gateway.frozen():
                if number % 2:
                    echo = await _echoed(sides.bare, bare, load, seconds)
                    push = await _pushed(sides.bare, bare, load, seconds)
                else:
                    push = await _pushed(sides.bare, bare, load, seconds)
                    echo = await _echoed(sides.bare, bare, load, seconds)
            result.rounds.append(Round(gateway, push, echo))
            advance(1)
    return result


@contextlib.asynccontextmanager
async def saturated(side: Side, load: Load, tally: Tally) -> AsyncIterator[Streams]:
    """As many items as `script` says, once every stream's window has been filled (or begun)."""
    async with connected(side, tally, load.connections) as sockets:
        streams = Streams(sockets)
        await streams.open(load.streams, script(load))
        window = WINDOW if load.connections == 1 else 1
        await streams.let_go(warm_items=window * load.streams)
        yield streams


async def _pushed(side: Side, sockets: list[Socket], load: Load, seconds: float) -> Sample:
    tally = sockets[0].tally
    command = f"push {load.streams // load.connections} {TEXT_BYTES}".encode()
    for socket in sockets:
        socket.send(command)
    await asyncio.sleep(SETTLE_SECONDS)
    measured = await sample(side, tally, seconds)
    await stop_bare(sockets)
    return measured


async def stop_bare(sockets: list[Socket]) -> None:
    """Until nothing more comes of what was asked of the bare server."""
    tally = sockets[0].tally
    expected = tally.messages["stopped"] + len(sockets)
    for socket in sockets:
        socket.send(b"stop")
    await tally.until(lambda: tally.messages["stopped"] >= expected, "the bare server's stop")


async def _echoed(side: Side, sockets: list[Socket], load: Load, seconds: float) -> Sample:
    frame = item_text(1, 1001, "w1000 ".ljust(TEXT_BYTES)).encode()
    for socket in sockets:
        socket.echoes = True
        socket.send(frame, max(1, ECHOES // load.connections))
    await asyncio.sleep(SETTLE_SECONDS)
    measured = await sample(side, sockets[0].tally, seconds)
    for socket in sockets:
        socket.echoes = False
    await stop_bare(sockets)  # behind the last echo
    return measured


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
