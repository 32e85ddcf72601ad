"""The worker loop: take commands, apply them, step the engine, send what came of it in one frame.

It owns the books the adapter need not keep: which jobs exist, which run, and how long the engine
stepped on behalf of jobs nobody waits for; what of the adapter's events leaves the worker is
`outgoing`'s. It sleeps while the engine is idle and never polls. Knows no socket, no process and no
model.
"""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from plait.engines.base import (
    Cancel,
    Command,
    Engine,
    Event,
    Feed,
    FinishInput,
    Gauges,
    KeepPrefixes,
    Pause,
    Ping,
    Pong,
    Prepare,
    Refused,
    Released,
    Resume,
    Shutdown,
    Start,
    Stats,
    UseCores,
)
from plait.engines.loop_job import LoopJob, complain, dead_seconds, fault_of, usage_of_nothing
from plait.engines.mailbox import Mailbox
from plait.engines.outgoing import Outgoing
from plait.errors import Internal, PlaitError

# Prepares tokenize: without a bound, a burst of opens would stall every running job.
APPLY_SLICE_SECONDS = 0.02


class WorkerLoop:
    """Drives one engine. `send` may block; the mailbox takes cancels meanwhile."""

    def __init__(
        self,
        engine: Engine,
        mailbox: Mailbox,
        send: Callable[[list[Event]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._mailbox = mailbox
        self._send = send
        self._clock = clock
        self._counts_busy = engine.info.counts_busy
        self._jobs: dict[int, LoopJob] = {}
        # Taken from the mailbox, which bounds it, but not yet applied.
        self._pending: deque[Command] = deque()
        self._outgoing = Outgoing(self._jobs, mailbox)
        self._books = Stats()
        self._closing = False
        self._apply: dict[type[Command], Callable[[Any], None]] = {
            Prepare: self._prepare,
            Start: self._start,
            Feed: self._feed,
            FinishInput: self._finish_input,
            Pause: self._pause,
            Resume: self._resume,
            Cancel: self._cancel,
            UseCores: self._ignore,  # the reader thread saw to it
            KeepPrefixes: self._keep_prefixes,
            Ping: self._pong,
            Shutdown: self._shutdown,
        }

    def run(self) -> None:
        """Until `Shutdown` was applied and every job is released. What `step` raises is a crash."""
        while not self._closing:
            self._turn()
        while any(job.running for job in self._jobs.values()) and not self._engine.idle:
            self._step()
            self._flush()
        self._engine.close()

    def stats(self) -> Stats:
        """The engine's gauges with this loop's counters."""
        own = self._engine.stats()
        books = self._books
        return msgspec.structs.replace(
            books,
            slots_used=own.slots_used,
            kv_bytes=own.kv_bytes,
            cache_bytes=own.cache_bytes,
            busy_seconds=own.busy_seconds if self._counts_busy else books.busy_seconds,
        )

    def _turn(self) -> None:
        asleep = not self._pending and self._engine.idle
        self._pending += self._mailbox.take_all(wait=asleep)
        self._apply_pending()
        self._cancel_flagged()
        self._flush()  # answers do not wait for the step
        if not self._engine.idle:
            self._step()
            self._flush()

    def _apply_pending(self) -> None:
        until = self._clock() + APPLY_SLICE_SECONDS
        while self._pending and not self._closing:
            self._cancel_flagged()
            command = self._pending.popleft()
            self._apply[type(command)](command)
            if self._clock() >= until:
                return

    def _cancel_flagged(self) -> None:
        """Cancels overtake what was sent before them, but only for jobs that run.

        The others are met in order, so that no job comes to life after its cancel.
        """
        for job_id in self._mailbox.flagged:
            job = self._jobs.get(job_id)
            if job is not None and job.running:
                self._cancel_running(job_id, job)

    def _cancel_running(self, job_id: int, job: LoopJob) -> None:
        if not job.cancelled:
            job.cancelled = True
            self._engine.cancel(job_id)

    # --- commands ------------------------------------------------------------------------------

    def _prepare(self, command: Prepare) -> None:
        assert command.job not in self._jobs, f"job {command.job} prepared twice"
        if self._mailbox.stamp(command.job) is not None:
            return  # nobody waits for it any more; its cancel follows and clears the flag
        try:
            prepared = self._engine.prepare(command)
        except (PlaitError, MemoryError) as error:
            self._refuse(command.job, error)
        except Exception as error:  # noqa: BLE001 - on a peer's data, nothing computes: its fault
            # Without the message, which may quote what the peer sent.
            complain(f"preparing job {command.job} raised {type(error).__name__}")
            traceback.print_tb(error.__traceback__)
            failure = Internal("This request could not be prepared; the server's log says why.")
            self._refuse(command.job, failure)
        else:
            self._jobs[command.job] = LoopJob(command.method, prepared.prompt_tokens)
            self._outgoing.add(prepared)

    def _start(self, command: Start) -> None:
        job = self._jobs.get(command.job)
        if job is None:
            self._refuse(command.job, Internal("The job was never prepared; open it again."))
        elif self._mailbox.stamp(command.job) is not None:
            self._engine.cancel(command.job)
            self._jobs.pop(command.job)
            usage = usage_of_nothing(job)
            self._outgoing.add(Released(command.job, self._clock(), wasted=0, usage=usage))
        else:
            try:
                self._engine.start(command.job)
            except (PlaitError, MemoryError) as error:
                self._refuse(command.job, error)
            else:
                job.running = True
                self._outgoing.gauges_due = True

    def _refuse(self, job_id: int, error: PlaitError | MemoryError) -> None:
        self._engine.cancel(job_id)
        self._jobs.pop(job_id, None)
        self._outgoing.add(Refused(job_id, fault_of(error)))

    def _feed(self, command: Feed) -> None:
        self._input(command.job, lambda: self._engine.feed(command))

    def _finish_input(self, command: FinishInput) -> None:
        self._input(command.job, lambda: self._engine.finish_input(command.job))

    def _input(self, job_id: int, call: Callable[[], None]) -> None:
        if self._tell(job_id, call):
            self._jobs[job_id].inputs += 1

    def _pause(self, command: Pause) -> None:
        if self._tell(command.job, lambda: self._engine.pause(command.job)):
            self._jobs[command.job].paused = True
            self._outgoing.gauges_due = True

    def _resume(self, command: Resume) -> None:
        if self._tell(command.job, lambda: self._engine.resume(command.job)):
            self._jobs[command.job].paused = False
            self._outgoing.gauges_due = True

    def _tell(self, job_id: int, call: Callable[[], None]) -> bool:
        """False when the job is over (the command crossed its end) or this ends it."""
        job = self._jobs.get(job_id)
        if job is None or job.cancelled:
            return False
        try:
            call()
        except (PlaitError, MemoryError) as error:
            if not job.running:
                self._refuse(job_id, error)
                return False
            job.fault = fault_of(error)
            self._cancel_running(job_id, job)
        return job.fault is None

    def _cancel(self, command: Cancel) -> None:
        job = self._jobs.get(command.job)
        if job is not None and job.running:
            self._cancel_running(command.job, job)
            return
        if job is not None:
            self._engine.cancel(command.job)
            self._jobs.pop(command.job)
        self._mailbox.forget(command.job)

    def _ignore(self, command: UseCores) -> None:
        pass

    def _keep_prefixes(self, command: KeepPrefixes) -> None:
        self._engine.keep_prefixes(command.max_bytes)
        self._outgoing.gauges_due = True

    def _pong(self, command: Ping) -> None:
        self._outgoing.add(Pong(command.n, self.stats()))

    def _shutdown(self, _: Shutdown) -> None:
        self._closing = True
        for job_id, job in list(self._jobs.items()):
            if job.running:
                self._cancel_running(job_id, job)
            else:
                self._engine.cancel(job_id)
                self._jobs.pop(job_id)

    # --- events --------------------------------------------------------------------------------

    def _step(self) -> None:
        computing = [i for i, job in self._jobs.items() if job.running and not job.paused]
        begin = self._clock()
        events = self._engine.step()
        end = self._clock()
        self._books.steps += 1
        self._books.busy_seconds += end - begin
        stamps = {i: at for i in computing if (at := self._mailbox.stamp(i)) is not None}
        if stamps:
            self._books.dead_seconds += dead_seconds(stamps, begin, end, events) / len(computing)
        for event in events:
            self._outgoing.pass_on(event)

    def _flush(self) -> None:
        if self._outgoing.gauges_due:
            self._outgoing.add(Gauges(self.stats()))
            self._outgoing.gauges_due = False
        if events := self._outgoing.take():
            self._send(events)
