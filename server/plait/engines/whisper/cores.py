"""Streams on the cores: who decodes now, who is stopped, and what a pause does to both.

A permit is asked for, given, and given back by each decode; there are as many as the worker may use
CPUs, which are known only now: others may come and go. A pause stops the process where it is
and frees what it had; it goes on only when it has a permit again, if it was in a decode. Does NOT
know what streams say, nor which order is fair (see `permits`).
"""

from __future__ import annotations

from collections.abc import Callable

from plait.engines import affinity
from plait.engines.whisper.jobs import Permit, StreamJob
from plait.engines.whisper.messages import Grant
from plait.engines.whisper.nursery import Nursery
from plait.engines.whisper.permits import Permits


class Cores:
    """`count`: the most there are to decode on. `flush` writes what was said to a stream."""

    def __init__(
        self,
        count: int,
        nursery: Nursery,
        flush: Callable[[StreamJob], None],
        clock: Callable[[], float],
    ) -> None:
        self._count = count
        self._permits = Permits(count)
        self._nursery = nursery
        self._flush = flush
        self._clock = clock
        self._jobs: dict[int, StreamJob] = {}  # that have a wish or a permit
        self._busy_seconds = 0.0
        self._counted_to = clock()

    @property
    def busy_seconds(self) -> float:
        """How long decodes have held cores, added up."""
        self._count_busy()
        return self._busy_seconds

    def ask(self, job: StreamJob, *, closing: bool) -> None:
        """For its next decode. Of a paused one it is remembered."""
        job.permit = Permit.WANTED_TO_CLOSE if closing else Permit.WANTED
        if not job.paused:
            self._join(job)
            self._grant()

    def take_back(self, job: StreamJob) -> None:
        """Its decode is over."""
        self.leave(job)
        if job.stopped and not job.paused:
            self._go(job)  # it was over just before the process was stopped

    def leave(self, job: StreamJob) -> None:
        """Whatever it has is free."""
        job.permit = Permit.NONE
        self._free(job)

    def pause(self, job: StreamJob) -> None:
        job.paused = True
        if not job.stopped:
            job.stopped = True
            self._nursery.stop(job.id)
        self._free(job)

    def resume(self, job: StreamJob) -> None:
        job.paused = False
        if job.permit is not Permit.NONE:
            self._join(job)
        if job.permit is not Permit.HELD:  # else it is in a decode, or about to be in one
            self._go(job)
        self._grant()

    def _join(self, job: StreamJob) -> None:
        self._jobs[job.id] = job
        # One that was stopped in its decode is as urgent: it holds what others do not.
        self._permits.ask(job.id, self._clock(), closing=job.permit is not Permit.WANTED)

    def _free(self, job: StreamJob) -> None:
        self._count_busy()
        self._permits.give_back(job.id)
        self._jobs.pop(job.id, None)
        self._grant()

    def _grant(self) -> None:
        self._count_busy()
        self._permits.count = min(self._count, affinity.usable(self._count))
        for job_id in self._permits.grant(self._clock()):
            job = self._jobs[job_id]
            if job.stopped:  # in the decode that it had a permit for
                self._go(job)
            else:
                job.permit = Permit.HELD
                job.say(Grant())
                self._flush(job)

    def _count_busy(self) -> None:
        """Up to now, before somebody gets or gives back a permit."""
        now = self._clock()
        self._busy_seconds += self._permits.held * (now - self._counted_to)
        self._counted_to = now

    def _go(self, job: StreamJob) -> None:
        job.stopped = False
        self._nursery.go(job.id)
