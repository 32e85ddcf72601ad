"""One worker process from its spawn to its death: watched, killed, reaped.

Death shows as the end of its socket or of its process, whichever is first. What follows a death is
not decided here (see `restart`), nor what the events mean to jobs.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from plait.engines.base import Event, Fault, LoadSpec, Stats
from plait.engines.dying import EXIT_MEMORY
from plait.engines.link import WorkerLink
from plait.engines.restart import Death, Limits
from plait.engines.spawn import Child, kill_group

# How long the two signs of a death may lie apart before the second is no longer waited for.
DEATH_SECONDS = 0.3


KilledForMemory = Callable[[], Awaitable[bool]]


class Generation:
    """`stats`, `ready_at` and `load_fault` are what the owner learnt from the worker's events."""

    def __init__(
        self,
        child: Child,
        deliver: Callable[[list[Event]], None],
        *,
        clock: Callable[[], float],
        limits: Limits,
        killed_for_memory: KilledForMemory | None = None,
    ) -> None:
        self.link = WorkerLink(deliver, clock=clock, max_backlog_bytes=limits.max_backlog_bytes)
        self.stats = Stats()
        self.ready_at: float | None = None
        self.load_fault: Fault | None = None
        self._child = child
        self._clock = clock
        self._limits = limits
        self._killed_for_memory = killed_for_memory
        self._kill_reason: str | None = None

    @property
    def pid(self) -> int:
        return self._child.process.pid

    @property
    def exit_status(self) -> int | None:
        """Negative: the signal that ended it. None while it is not reaped."""
        return self._child.process.returncode

    def kill(self, reason: str) -> None:
        """SIGKILL; the first reason is the one told."""
        self._kill_reason = self._kill_reason or reason
        kill_group(self._child.process)

    async def connect(self) -> None:
        """Before `serve`."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self.link, sock=self._child.sock)

    async def serve(self, spec: LoadSpec) -> Death:
        """Until it is dead, or beyond doubt about to be: its socket closed and SIGKILL sent."""
        async with asyncio.TaskGroup() as tasks:
            exit_watch = tasks.create_task(self._close_at_exit())
            heartbeat = tasks.create_task(self._heartbeat())
            self.link.send(spec)
            await self.link.closed.wait()
            heartbeat.cancel()
            # An end of file without an exit soon: no worker of ours lives without its socket.
            await asyncio.wait([exit_watch], timeout=DEATH_SECONDS)
            kill_group(self._child.process)
            await asyncio.wait([exit_watch], timeout=DEATH_SECONDS)
            exit_watch.cancel()
        return await self._death()

    def bury(self) -> None:
        """Kill what may be left of it and give its descriptors back; idempotent."""
        kill_group(self._child.process)
        self.link.give_up("it is gone")
        self._child.sock.close()
        self._child.output.close()

    async def reaped(self) -> None:
        await self._child.process.wait()

    async def _close_at_exit(self) -> None:
        """Let what it sent before its exit arrive; a fork of it may hold the socket open."""
        await self.reaped()
        try:
            async with asyncio.timeout(DEATH_SECONDS):
                await self.link.closed.wait()
        except TimeoutError:
            self.link.give_up("its process ended")

    async def _heartbeat(self) -> None:
        limits = self._limits
        while True:
            await asyncio.sleep(limits.ping_seconds)
            self.link.beat()
            loading = self.ready_at is None
            allowed = limits.load_stalled_seconds if loading else limits.stalled_seconds
            if self.link.silent_beats * limits.ping_seconds > allowed:
                self.kill(f"it made no progress for {allowed:g} s")

    async def _death(self) -> Death:
        cause = self._kill_reason or self.link.fault or await self._exit_cause()
        ready_seconds = None if self.ready_at is None else self._clock() - self.ready_at
        return Death(cause, ready_seconds, self.load_fault)

    async def _exit_cause(self) -> str:
        status = self.exit_status
        if status is None:
            return "it closed its socket"
        if status == EXIT_MEMORY:
            return "it ran out of memory"
        look = self._killed_for_memory
        if status == -signal.SIGKILL and look is not None and await look():
            return "the system ran out of memory and killed it"
        return f"signal {-status}" if status < 0 else f"exit status {status}"


def with_counters(gauges: Stats, *parts: Stats) -> Stats:
    """`gauges` with the counters of all parts added up."""
    return Stats(
        slots_used=gauges.slots_used,
        kv_bytes=gauges.kv_bytes,
        cache_bytes=gauges.cache_bytes,
        steps=sum(part.steps for part in parts),
        busy_seconds=sum(part.busy_seconds for part in parts),
        dead_seconds=sum(part.dead_seconds for part in parts),
    )
