"""What of an adapter's events leaves the worker: nothing of a job that nobody waits for.

Invariants: each started job yields exactly one `Released`, which tells what it wasted; of a
cancelled one no item leaves. An adapter that breaks the contract is complained of, and not obeyed.
Knows no engine, no time and no socket.
"""

from __future__ import annotations

from plait.engines.base import Event, Failed, Finished, Item, Released, Starved
from plait.engines.loop_job import LoopJob, complain
from plait.engines.mailbox import Mailbox
from plait.wire.frames import MAX_AUDIO_FRAME_BYTES, MAX_ROWS_BYTES, BinaryKind


class Outgoing:
    """`jobs` are the loop's; a released one goes from there. `gauges_due`: they have moved."""

    def __init__(self, jobs: dict[int, LoopJob], mailbox: Mailbox) -> None:
        self.gauges_due = False
        self._jobs = jobs
        self._mailbox = mailbox
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """As it is: the loop's own."""
        self._events.append(event)

    def take(self) -> list[Event]:
        """All since the last time, in order."""
        events, self._events = self._events, []
        return events

    def pass_on(self, event: Event) -> None:
        match event:
            case Item():
                self._pass_on_item(event)
            case Finished(job=job_id) | Failed(job=job_id):
                job = self._jobs.get(job_id)
                if job is not None and job.fault is None:
                    self.add(event)
            case Starved(job=job_id):
                if (job := self._jobs.get(job_id)) is not None:
                    event.inputs = job.inputs
                    self.add(event)
            case Released():
                self._release(event)
            case _:
                self.add(event)

    def _pass_on_item(self, item: Item) -> None:
        if item.kind == BinaryKind.AUDIO_OUT:
            assert len(item.data) <= MAX_AUDIO_FRAME_BYTES, "an audio frame too long"
        elif item.kind == BinaryKind.ROWS:
            assert len(item.data) <= MAX_ROWS_BYTES, "a frame of rows too long"
        job = self._jobs.get(item.job)
        if job is None:
            complain(f"the adapter yielded an item of the unknown job {item.job}")
        elif self._mailbox.stamp(item.job) is not None:
            job.wasted += item.units
        elif not job.cancelled:  # by a fault or the shutdown, which leave no stamp
            self.add(item)

    def _release(self, event: Released) -> None:
        job = self._jobs.pop(event.job, None)
        if job is None or not job.running:
            complain(f"the adapter released job {event.job}, which was not running")
            return
        if job.fault is not None:
            self.add(Failed(event.job, job.fault, event.usage))
        event.wasted += job.wasted
        self.add(event)
        self.gauges_due = True
        self._mailbox.forget(event.job)
