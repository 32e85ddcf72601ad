"""Who may decode now: one permit per core, so that decodes never thrash the cores.

A closing decode, which a final waits for, goes before one that only shows an interim; within a
kind the longest waiting goes first. An interim that waited `PATIENCE_SECONDS` counts as closing,
so nobody starves. Every stream has one wish or one permit at most: that bounds both. A stream
asks anew for each decode, and what came meanwhile is decoded with it: so steps widen under load.
Pure: time is told, and nothing is known of processes.
"""

from __future__ import annotations

from dataclasses import dataclass

PATIENCE_SECONDS = 4.0


@dataclass(slots=True)
class _Wish:
    since: float
    closing: bool

    def rank(self, now: float) -> tuple[bool, float]:
        urgent = self.closing or now - self.since >= PATIENCE_SECONDS
        return not urgent, self.since


class Permits:
    """`count` permits, for jobs by number."""

    def __init__(self, count: int) -> None:
        assert count >= 1
        self.count = count  # of those held above it, none is taken away
        self._holders: set[int] = set()
        self._wishes: dict[int, _Wish] = {}  # in the order in which they came

    @property
    def held(self) -> int:
        return len(self._holders)

    def ask(self, job: int, now: float, *, closing: bool) -> None:
        """Asking again keeps the place in line; a wish may become closing, not the reverse."""
        assert job not in self._holders, "one permit per stream"
        wish = self._wishes.setdefault(job, _Wish(now, closing))
        wish.closing = wish.closing or closing

    def give_back(self, job: int) -> None:
        """Whatever `job` has: a permit, a wish or nothing."""
        self._holders.discard(job)
        self._wishes.pop(job, None)

    def grant(self, now: float) -> list[int]:
        """The jobs that hold a permit from now on."""
        granted: list[int] = []
        while self._wishes and len(self._holders) < self.count:
            job = min(self._wishes, key=lambda job: self._wishes[job].rank(now))
            del self._wishes[job]
            self._holders.add(job)
            granted.append(job)
        return granted
