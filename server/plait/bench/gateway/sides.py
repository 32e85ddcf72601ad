"""The two sides of every comparison: a gateway of our own and a bare server, each a process.

The gateway serves the scripted engine with bounds out of the way; what a stream does is written in
its script. CPU seconds are read per process, as gateway, worker and client share the machine.
Does NOT know what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from plait.bench.gateway.bare import own_bare
from plait.bench.gateway.freezing import frozen
from plait.bench.gateway.reading import Flow, Socket, Tally, connect, elapse
from plait.bench.serving import BenchError, own_server
from plait.descriptors import allow_connections

TEXT_BYTES = 64  # of an item
MOST_CONNECTIONS = 4096
MOST_STREAMS = 1024
WINDOW = 64
UNENDING = 1 << 20  # tokens
OFFERED_PER_SECOND = 4000.0  # items of all streams, where the engine shall not overrun
SETTLE_SECONDS = 0.25
QUIET_SECONDS = 0.05
WARM_SECONDS = 8.0
BRAKE = "tokens=1048576 prefill_steps=1000000 step_ms=3600000"
LINUX = sys.platform == "linux"
CPUCLOCK_SCHED = 2  # of clock_getcpuclockid(3), which Python does not offer
# Nothing of these bounds a measurement; the machine does.
SETTINGS: dict[str, int | str] = {
    "slots": MOST_STREAMS,
    "context_tokens": 1 << 20,
    "max_tokens": UNENDING,
    "max_streams": 4096,
    "max_queued": 8192,
    "max_connections": MOST_CONNECTIONS,
    "opens_per_second": 1_000_000,
    "memory_budget_bytes": 1 << 50,
    "kv_budget_bytes": 1 << 50,
    "queue_timeout_seconds": 600,
}


@dataclass(frozen=True, slots=True)
class Side:
    """A server: the process `pid` serves sockets, its children (the workers) compute."""

    name: str
    port: int
    path: str
    subprotocol: str | None
    pid: int

    async def workers(self) -> list[int]:
        """Their process ids."""
        children = await asyncio.to_thread(lambda: psutil.Process(self.pid).children())
        return [child.pid for child in children]

    @contextlib.asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Stopped as it is, workers too, so that others can be measured meanwhile."""
        async with frozen([self.pid, *await self.workers()]):
            yield

    async def memory_bytes(self) -> tuple[int, int]:
        """(resident, unique) of the server."""
        memory = await asyncio.to_thread(lambda: psutil.Process(self.pid).memory_full_info())
        return memory.rss, memory.uss

    async def connect(self, tally: Tally, count: int) -> list[Socket]:
        """`count` connections, one after the other."""
        allow_connections(count + 64)
        sockets: list[Socket] = []
        try:
            for _ in range(count):  # kept one by one, as the next may fail
                sockets.append(  # noqa: PERF401
                    await connect(self.port, tally, self.path, self.subprotocol)
                )
        except BaseException:
            hang_up(sockets)
            raise
        return sockets


@dataclass(frozen=True, slots=True)
class Sides:
    gateway: Side
    bare: Side


@dataclass(frozen=True, slots=True)
class Sample:
    """What went by in `seconds`, and the CPU seconds each process took for it."""

    seconds: float
    frames: int
    items: int
    server_cpu: float
    worker_cpu: float
    client_cpu: float

    @property
    def items_per_second(self) -> float:
        return self.items / self.seconds

    @property
    def items_per_cpu_second(self) -> float:
        """Of the serving process alone: what it would do with a core of its own."""
        return self.items / self.server_cpu if self.server_cpu else 0.0

    @property
    def frames_per_cpu_second(self) -> float:
        return self.frames / self.server_cpu if self.server_cpu else 0.0

    @property
    def cpu_us_per_item(self) -> float:
        return 1e6 * self.server_cpu / self.items if self.items else 0.0

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of a core: server, workers, client."""
        used = (self.server_cpu, self.worker_cpu, self.client_cpu)
        return used[0] / self.seconds, used[1] / self.seconds, used[2] / self.seconds


@contextlib.asynccontextmanager
async def own_sides() -> AsyncIterator[Sides]:
    """Both servers, until the block ends. Raises BenchError when one does not come up."""
    async with own_server("scripted", **SETTINGS) as server, own_bare() as bare:
        assert server.pid is not None
        port = urlsplit(server.url).port
        assert port is not None
        yield Sides(
            Side("gateway", port, "/v1/ws", "plait.v1", server.pid),
            Side("bare", bare.port, "/", None, bare.pid),
        )


@contextlib.asynccontextmanager
async def connected(side: Side, tally: Tally, count: int) -> AsyncIterator[list[Socket]]:
    """`count` connections until the block ends; then closed, and closed at the server too."""
    sockets = await side.connect(tally, count)
    try:
        yield sockets
    finally:
        hang_up(sockets)
        await asyncio.gather(*(socket.closed for socket in sockets))


def hang_up(sockets: Sequence[Socket]) -> None:
    for socket in sockets:
        socket.abort()


async def sample(
    side: Side, tally: Tally, seconds: float, came: Callable[[], bool] | None = None
) -> Sample:
    """Look at what goes by from now on, for so long; longer when nothing (no item) came yet."""
    workers = await side.workers()
    begin, cpu, work = time.monotonic(), cpu_seconds(side.pid), _sum_cpu(workers)
    frames, items, client = tally.frames, tally.items, time.process_time()
    came = came or (lambda: tally.items > items)
    await elapse(seconds, lambda: bool(tally.failure) or came(), side.name)
    elapsed, after, worked = time.monotonic() - begin, cpu_seconds(side.pid), _sum_cpu(workers)
    if tally.failure:
        raise BenchError(f"{side.name}: {tally.failure}")
    return Sample(
        elapsed,
        tally.frames - frames,
        tally.items - items,
        after - cpu,
        worked - work,
        time.process_time() - client,
    )


class Streams:
    """Many streams of one script over some connections, held back until they are let go.

    The engine's step is as long as the slowest of its jobs asks for, so one more stream with an
    endless step is a brake for all: they are opened in peace, and rest between measurements.
    """

    def __init__(self, sockets: Sequence[Socket]) -> None:
        self.opened: list[tuple[Socket, Flow]] = []
        self._sockets = sockets
        self._tally = sockets[0].tally
        self._brake: Flow | None = None

    async def open(self, count: int, script: str, *, window: int = WINDOW) -> None:
        """Evenly over the connections; returns, with the brake on, once all have started."""
        if self._brake is None:
            await self.brake()
        before = self._tally.messages["started"]
        for number in range(count):
            socket = self._sockets[number % len(self._sockets)]
            flow = socket.open(script, window=window, max_tokens=UNENDING, tell=False)
            self.opened.append((socket, flow))
        self._flush()
        await self._tally.until(
            lambda: self._tally.messages["started"] >= before + count,
            f"the start of {count} streams",
        )

    async def let_go(self, *, warm_items: int = 0) -> None:
        """Returns once so many items have come, or WARM_SECONDS have gone."""
        assert self._brake is not None
        self._sockets[0].cancel(self._brake)
        self._brake = None
        enough, until = self._tally.items + warm_items, time.monotonic() + WARM_SECONDS
        # A look now and then: an event per item would cost the client what it is to measure.
        while self._tally.items < enough and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(QUIET_SECONDS)
        await asyncio.sleep(SETTLE_SECONDS)

    async def brake(self) -> None:
        """Returns once nothing moves any more."""
        before = self._tally.messages["started"]
        self._brake = self._sockets[0].open(BRAKE, window=1, max_tokens=UNENDING)
        await self._tally.until(
            lambda: self._tally.messages["started"] > before, "the start of the brake"
        )
        frames = -1
        while frames != self._tally.frames:
            frames = self._tally.frames
            await asyncio.sleep(QUIET_SECONDS)

    async def cancel(self) -> None:
        """Returns once all have their terminal."""
        if self._brake is None:
            await self.brake()
        assert self._brake is not None
        before, left = self._tally.messages["cancelled"], len(self.opened) + 1
        for socket, flow in [*self.opened, (self._sockets[0], self._brake)]:
            socket.cancel(flow, tell=False)
        self._flush()
        await self._tally.until(
            lambda: self._tally.messages["cancelled"] >= before + left,
            f"the end of {left} cancelled streams",
        )
        self.opened, self._brake = [], None

    def _flush(self) -> None:
        for socket in self._sockets:
            socket.flush()


def _sum_cpu(pids: Sequence[int]) -> float:
    return sum(map(cpu_seconds, pids))


def cpu_seconds(pid: int) -> float:
    """User and system, of all threads; 0 for a process that is gone."""
    with contextlib.suppress(OSError, psutil.NoSuchProcess):
        if LINUX:
            # The process's own CPU clock, in nanoseconds; /proc counts in hundredths of a second.
            return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return 0.0
