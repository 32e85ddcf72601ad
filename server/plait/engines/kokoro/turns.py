"""Whose turn it is: which speech job does the next unit of work.

The policy. Jobs take turns in a ring; a turn is one window of audio, and what has to be computed
before it where a segment begins. Ahead of the ring go the dry ones, whose listeners have nothing
to hear: those without any audio yet, and those that ran out of text and out of audio. They go in
the order of the ring, each until its first audio. After DRY_STEPS units for dry jobs the ring has
a whole turn, so however many jobs arrive, the others get a window for every DRY_STEPS units of
newcomers. In the ring the pressed ones, whose listeners have little left to hear, go before those
with more in hand; who is passed over for it has less in hand every moment, so not for long. Who
is paused or waits for text is passed over and keeps its place. Does NOT know what a unit is.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar

# The first audio of two newcomers: beginning, durations, features and a window each.
DRY_STEPS = 8


class Taker(Protocol):
    @property
    def has_work(self) -> bool:
        """There is a unit of work it may do now."""

    @property
    def dry(self) -> bool:
        """Its listener has nothing to hear."""

    @property
    def pressed(self) -> bool:
        """Its listener has little left to hear."""

    @property
    def turn_over(self) -> bool:
        """The last unit of work ended its turn."""


TakerT = TypeVar("TakerT", bound=Taker)


class Turns(Generic[TakerT]):
    """The ring. Holds the jobs that were started and not removed."""

    def __init__(self) -> None:
        self._ring: deque[TakerT] = deque()  # at most one entry per started job
        self._dry_steps = 0

    def join(self, job: TakerT) -> None:
        self._ring.append(job)

    def leave(self, job: TakerT) -> None:
        self._ring.remove(job)

    @property
    def any_work(self) -> bool:
        return any(job.has_work for job in self._ring)

    def choose(self) -> TakerT | None:
        """The job that does the next unit of work; None if there is none to do."""
        able = [job for job in self._ring if job.has_work]
        dry = [job for job in able if job.dry]
        others = [job for job in able if not job.dry]
        if dry and not (others and self._dry_steps >= DRY_STEPS):
            return dry[0]
        return next((job for job in others if job.pressed), others[0] if others else None)

    def took(self, job: TakerT, *, dry: bool) -> None:
        """`job`, which was `dry` before it, did a unit of work."""
        if dry:
            self._dry_steps += 1
        elif job.turn_over:
            self._dry_steps = 0
        if job.turn_over and job in self._ring:
            self._ring.remove(job)
            self._ring.append(job)
