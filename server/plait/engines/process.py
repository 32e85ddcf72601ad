"""The gateway's handle of one engine, over all its workers: start, tell, restart, close.

    starting -> loading -> ready -> (death) restarting -> starting ...   -> failed | closed

A death is told once, by `on_worker_lost`, and nothing of that worker arrives afterwards; the next
one starts after a back-off. A model that cannot be loaded is not retried. Knows no streams, leases
or scheduling: it passes events on as they come.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal, Protocol

import structlog

from plait.engines.base import (
    Command,
    EngineInfo,
    Event,
    Gauges,
    LoadFailed,
    Loading,
    LoadSpec,
    Pong,
    Ready,
    Shutdown,
    Stats,
)
from plait.engines.generation import Generation
from plait.engines.restart import Death, Limits, RestartPolicy
from plait.engines.spawn import WorkerOutput, spawn_worker
from plait.errors import PlaitError

State = Literal["starting", "loading", "ready", "failed", "restarting", "closed"]


class EngineListener(Protocol):
    """Called on the event loop; must not block and must not raise."""

    def on_loading(self, phase: str, percent: int | None) -> None: ...

    def on_ready(self, info: EngineInfo) -> None: ...

    def on_events(self, events: list[Event]) -> None:
        """Job events of one frame, in order."""

    def on_worker_lost(self, error: PlaitError) -> None:
        """All jobs of the worker are gone and nothing of it arrives any more.

        EngineCrashed: a new worker comes after a back-off (`retry_after_ms`). ModelLoadFailed: the
        state is `failed` and stays so. Not called for an orderly `close`.
        """


class EngineProcess:
    """One engine over all its restarts. `run` it in a task group; the rest is synchronous."""

    def __init__(
        self,
        spec: LoadSpec,
        listener: EngineListener,
        *,
        clock: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
    ) -> None:
        self._spec = spec
        self._listener = listener
        self._clock = clock
        self._limits = limits or Limits()
        self._policy = RestartPolicy(spec.model, self._limits)
        self._log = structlog.get_logger(__name__).bind(model=spec.model, engine=spec.engine)
        self._state: State = "starting"
        self._info: EngineInfo | None = None
        self._worker: Generation | None = None
        self._past = Stats()
        self._last_progress = clock()
        self._closing = asyncio.Event()
        self._finished = asyncio.Event()
        self._finished.set()  # `run` clears it

    @property
    def state(self) -> State:
        return self._state

    @property
    def info(self) -> EngineInfo | None:
        """Of the worker that was ready last; None before the first."""
        return self._info

    @property
    def stats(self) -> Stats:
        """Gauges of the live worker (0 without one); counters run on over restarts."""
        live = self._worker.stats if self._worker else Stats()
        return _with_counters(live, self._past, live)

    @property
    def pid(self) -> int | None:
        return self._worker.pid if self._worker else None

    @property
    def last_progress(self) -> float:
        """When the worker last said anything, on the injected clock."""
        return self._worker.link.last_progress if self._worker else self._last_progress

    def healthy(self, now: float) -> bool:
        """Ready and heard of lately; `now` on the injected clock."""
        silent_seconds = now - self.last_progress
        return self._state == "ready" and silent_seconds <= self._limits.unhealthy_seconds

    def send(self, command: Command) -> None:
        """Never blocks. Without a live worker it does nothing: its loss was or will be told."""
        if self._worker is not None:
            self._worker.link.send(command)

    def kill(self, reason: str) -> None:
        """SIGKILL now; `on_worker_lost` follows, then a restart. `reason` is shown to peers."""
        if self._worker is not None:
            self._log.warning("worker.killed", pid=self.pid, reason=reason)
            self._worker.kill(reason)

    async def close(self, grace_seconds: float) -> None:
        """Ask the worker to end, kill it after the grace, and wait until `run` has returned.

        A worker that still loads is killed at once: it has nothing to give back.
        """
        self._closing.set()
        if self._state == "ready":
            self.send(Shutdown())
        else:
            self.kill("it is not needed any more")
        try:
            async with asyncio.timeout(grace_seconds):
                await self._finished.wait()
        except TimeoutError:
            self.kill(f"it did not end within {grace_seconds:g} s")
            await self._finished.wait()

    async def run(self) -> None:
        """Until `close` or cancelled; never returns with a worker alive. Once per instance."""
        self._finished.clear()
        try:
            while not self._closing.is_set() and self._state != "failed":
                self._state = "starting"
                await self._back_off(await self._live())
            await self._closing.wait()
        finally:
            self._state = "closed"
            self._finished.set()

    # --- one worker ----------------------------------------------------------------------------

    async def _live(self) -> float | None:
        """Spawn a worker and stay until it is dead, told and reaped, in that order.

        Returns the back-off in seconds; None when it ended as asked or for good.
        """
        output = WorkerOutput(
            lambda line: self._log.info("worker.output", line=line),
            lambda lines: self._log.warning("worker.output_dropped", lines=lines),
            self._clock,
        )
        try:
            child = await spawn_worker(output)
        except OSError as error:
            self._log.exception("worker.spawn_failed", errno=error.errno)
            return self._tell(Death("it could not be started"))
        worker = self._worker = Generation(
            child, self._receive, clock=self._clock, limits=self._limits
        )
        try:
            await worker.connect()
            self._log.info("worker.started", pid=worker.pid)
            if self._closing.is_set():
                return None
            death = await worker.serve(self._spec)
            self._bury(worker)
            return None if self._ended_as_asked(worker) else self._tell(death)
        finally:
            self._bury(worker)
            # A big process takes its time to die: jobs do not wait for that, a successor does.
            await worker.reaped()

    def _receive(self, events: list[Event]) -> None:
        assert self._worker is not None
        job_events: list[Event] = []
        for event in events:
            match event:
                case Pong(stats=stats) | Gauges(stats=stats):
                    self._worker.stats = stats
                case Loading(phase=phase, percent=percent):
                    self._state = "loading"
                    self._listener.on_loading(phase, percent)
                case Ready(info=info):
                    self._become_ready(info)
                case LoadFailed(fault=fault):
                    self._worker.load_fault = fault
                    self._worker.link.give_up("its model cannot be loaded")
                case _:
                    job_events.append(event)
        if job_events:
            self._listener.on_events(job_events)

    def _become_ready(self, info: EngineInfo) -> None:
        assert self._worker is not None
        self._worker.ready_at = self._clock()
        self._info = info
        self._state = "ready"
        self._log.info("worker.ready", pid=self.pid)
        self._listener.on_ready(info)

    # --- its death -----------------------------------------------------------------------------

    def _ended_as_asked(self, worker: Generation) -> bool:
        return self._closing.is_set() and (worker.exit_status == 0 or worker.ready_at is None)

    def _bury(self, worker: Generation) -> None:
        if self._worker is worker:
            worker.bury()
            self._last_progress = worker.link.last_progress
            self._past = _with_counters(Stats(), self._past, worker.stats)
            self._worker = None

    def _tell(self, death: Death) -> float | None:
        """The back-off in seconds, or None when the model has failed for good."""
        verdict = self._policy.judge(death)
        if verdict.delay_seconds is None:
            self._state = "failed"
            self._log.error("engine.failed", code=verdict.error.code, reason=verdict.error.message)
        else:
            self._state = "restarting"
            delay = verdict.delay_seconds
            self._log.warning("worker.lost", cause=death.cause, restart_seconds=delay)
        self._listener.on_worker_lost(verdict.error)
        return verdict.delay_seconds

    async def _back_off(self, delay_seconds: float | None) -> None:
        if delay_seconds is None:
            return
        try:
            async with asyncio.timeout(delay_seconds):
                await self._closing.wait()
        except TimeoutError:
            return


def _with_counters(gauges: Stats, *parts: Stats) -> Stats:
    """`gauges` with the counters of all parts added up."""
    return Stats(
        slots_used=gauges.slots_used,
        kv_bytes=gauges.kv_bytes,
        cache_bytes=gauges.cache_bytes,
        steps=sum(part.steps for part in parts),
        busy_seconds=sum(part.busy_seconds for part in parts),
        dead_seconds=sum(part.dead_seconds for part in parts),
    )
