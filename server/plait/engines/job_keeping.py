"""The jobs of an adapter that computes for several of them in turns: from `start` to *released*.

Speech and embeddings share it: a job's input may come before and after its start, a paused one
keeps its memory, and one that nothing is computed for is released at once. Does NOT know what a job
computes, nor whose turn it is (see its `line`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from plait.engines.base import Event, LoadSpec, Released, Usage


class KeptJob(Protocol):
    id: int
    started: bool
    paused: bool

    @property
    def usage(self) -> Usage: ...

    def finish_input(self) -> None: ...


J = TypeVar("J", bound=KeptJob)
K = TypeVar("K", bound=KeptJob, contravariant=True)


class Line(Protocol[K]):
    """Who takes turns."""

    def join(self, job: K) -> None: ...

    def leave(self, job: K) -> None: ...


class JobKeeping(Generic[J]):
    """Base of an adapter; its own `prepare` puts jobs into `_jobs`."""

    def __init__(self, spec: LoadSpec, line: Line[J], clock: Callable[[], float]) -> None:
        self._spec = spec
        self._line = line
        self._clock = clock
        self._jobs: dict[int, J] = {}
        self._events: list[Event] = []

    def start(self, job: int) -> None:
        entry = self._jobs[job]
        assert not entry.started, "a job starts once"
        entry.started = True
        self._line.join(entry)
        assert self._slots_used() <= self._spec.slots, "the scheduler overbooked the slots"

    def finish_input(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None:
            entry.finish_input()

    def pause(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None:
            entry.paused = True

    def resume(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None:
            entry.paused = False

    def keep_prefixes(self, max_bytes: int) -> None:
        """Nothing is kept of jobs that are over."""

    def _release(self, entry: J) -> None:
        """Called when nothing is computed for it any more."""
        del self._jobs[entry.id]
        self._line.leave(entry)
        self._events.append(Released(entry.id, self._clock(), 0, entry.usage))

    def _slots_used(self) -> int:
        return sum(job.started and not job.paused for job in self._jobs.values())
