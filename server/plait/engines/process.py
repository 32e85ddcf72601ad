"""The gateway's handle of one engine, over all its workers: load, tell, restart, unload, close.

    unloaded -> (load) starting -> loading -> ready -> (death) restarting -> starting ...
    any of these -> (unload) unloading -> unloaded   |   failed   |   closed

A death is told once, by `on_worker_lost`, and nothing of that worker arrives afterwards; the next
one starts after a back-off. A model that cannot be loaded is `failed` and not retried before the
next `load`. Knows no streams, leases or scheduling: it passes events on as they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import structlog

from plait.engines.base import (
    Command,
    EngineInfo,
    Event,
    Gauges,
    Item,
    JobEvent,
    LoadFailed,
    Loading,
    LoadSpec,
    Pong,
    Ready,
    Shutdown,
    Stats,
)
from plait.engines.generation import Generation, KilledForMemory, with_counters
from plait.engines.listener import EngineListener as EngineListener, State
from plait.engines.restart import Death, Limits, RestartPolicy, overdue
from plait.engines.spawn import WorkerOutput, spawn_worker


class EngineProcess:
    """One engine over all its restarts. `run` it in a task group; the rest is synchronous."""

    def __init__(
        self,
        spec: LoadSpec,
        listener: EngineListener,
        *,
        clock: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
        loaded: bool = True,
        killed_for_memory: KilledForMemory | None = None,
    ) -> None:
        """`loaded`: whether `run` begins by loading it. `killed_for_memory` is asked when a worker
        was killed and not by us: whether the system has just done such a thing."""
        self._spec = spec
        self._listener = listener
        self._clock = clock
        self._limits = limits or Limits()
        self._killed_for_memory = killed_for_memory
        self._policy = RestartPolicy(spec.model, self._limits)
        self._log = structlog.get_logger(__name__).bind(model=spec.model, engine=spec.engine)
        self._state: State = "starting" if loaded else "unloaded"
        self._wanted = loaded
        self._info: EngineInfo | None = None
        self._worker: Generation | None = None
        self._past = Stats()
        self._last_progress = clock()
        self._closing = False
        self._held = loaded  # loaded, and `on_unloaded` not yet told
        self._changed = asyncio.Event()  # `load`, `unload` or `close` was called
        self._patience: asyncio.TimerHandle | None = None
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
        return with_counters(live, self._past, live)

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

    def load(self) -> None:
        """Have a worker, and another one after each that dies. Only while unloaded or failed."""
        assert self._state in ("unloaded", "failed"), self._state
        self._state, self._wanted, self._held = "starting", True, True
        self._policy = RestartPolicy(self._spec.model, self._limits)
        self._changed.set()

    def unload(self) -> None:
        """Have none: `on_unloaded` follows once its memory is back, and nothing before that.

        For a model without jobs. One that is still loading is killed: it has nothing to give back.
        """
        self._wanted = False
        self._end_worker(self._limits.unload_seconds)
        self._state = "unloading"
        self._changed.set()

    async def close(self, grace_seconds: float) -> None:
        """Ask the worker to end, kill it after the grace, and wait until `run` has returned."""
        self._closing, self._wanted = True, False
        self._changed.set()
        self._end_worker(grace_seconds)
        await self._finished.wait()

    async def run(self) -> None:
        """Until `close` or cancelled; never returns with a worker alive. Once per instance."""
        self._finished.clear()
        try:
            while not self._closing:
                self._changed.clear()
                if self._wanted:
                    self._state = "starting"
                    await self._back_off(await self._live())
                    continue
                self._settle()
                await self._changed.wait()
        finally:
            self._state = "closed"
            self._finished.set()

    def _settle(self) -> None:
        """No process is left, and none is wanted."""
        if self._state == "unloading":
            self._state = "unloaded"
        if self._held:
            self._held = False
            self._listener.on_unloaded()

    def _end_worker(self, grace_seconds: float) -> None:
        """Ask it to, if it can have something to give back; kill it if it does not hear."""
        if self._state != "ready":
            self.kill("it is not needed any more")
            return
        self.send(Shutdown())
        self._patience = asyncio.get_running_loop().call_later(
            grace_seconds, self.kill, f"it did not end within {grace_seconds:g} s"
        )

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
            self._log.error("worker.spawn_failed", errno=error.errno, reason=error.strerror)
            death = Death("it could not be started", spawned=False)
            return self._tell(death) if self._wanted else None
        worker = self._worker = Generation(
            child,
            self._receive,
            clock=self._clock,
            limits=self._limits,
            killed_for_memory=self._killed_for_memory,
        )
        overdue = asyncio.get_running_loop().call_later(
            self._limits.load_seconds, self._give_up_loading, worker
        )
        try:
            await worker.connect()
            self._log.info("worker.started", pid=worker.pid)
            if not self._wanted:
                return None
            death = await worker.serve(self._spec)
            self._bury(worker)
            return None if self._ended_as_asked(worker) else self._tell(death)
        finally:
            overdue.cancel()
            self._bury(worker)
            # A big process takes its time to die: jobs do not wait for that, a successor does.
            await worker.reaped()

    def _give_up_loading(self, worker: Generation) -> None:
        if worker.ready_at is None and self._wanted:
            worker.load_fault = overdue(self._spec.model, self._limits.load_seconds)
            worker.kill("its model was not loaded in time")

    def _receive(self, events: list[Event]) -> None:
        assert self._worker is not None
        job_events: list[JobEvent] = []
        for event in events:
            match event:
                case Item():
                    job_events.append(event)  # the commonest by far
                case Pong(stats=stats) | Gauges(stats=stats):
                    self._observe(self._worker, stats)
                case Loading() | Ready() | LoadFailed() if not self._wanted:
                    continue  # crossed by `unload` or `close`
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

    def _observe(self, worker: Generation, stats: Stats) -> None:
        changed = stats.cache_bytes != worker.stats.cache_bytes
        worker.stats = stats
        if changed and self._wanted:
            self._listener.on_stats(stats)

    def _become_ready(self, info: EngineInfo) -> None:
        assert self._worker is not None
        self._worker.ready_at = self._clock()
        self._info = info
        self._state = "ready"
        self._log.info("worker.ready", pid=self.pid)
        self._listener.on_ready(info)

    # --- its death -----------------------------------------------------------------------------

    def _ended_as_asked(self, worker: Generation) -> bool:
        if self._patience is not None:
            self._patience.cancel()
        if self._closing:
            return worker.exit_status == 0 or worker.ready_at is None
        return not self._wanted

    def _bury(self, worker: Generation) -> None:
        if self._worker is worker:
            worker.bury()
            self._last_progress = worker.link.last_progress
            self._past = with_counters(Stats(), self._past, worker.stats)
            self._worker = None

    def _tell(self, death: Death) -> float | None:
        """The back-off in seconds, or None when the model has failed until the next `load`."""
        verdict = self._policy.judge(death)
        if verdict.delay_seconds is None:
            self._wanted = False
            self._state = "failed"
            self._log.error("engine.failed", code=verdict.error.code, reason=verdict.error.message)
        else:
            self._state = "restarting"
            delay = verdict.delay_seconds
            self._log.warning("worker.lost", cause=death.cause, restart_seconds=delay)
        self._listener.on_worker_lost(verdict.error)
        return verdict.delay_seconds

    async def _back_off(self, delay_seconds: float | None) -> None:
        """Ended early by `unload` and `close`."""
        if delay_seconds is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_seconds):
                await self._changed.wait()
