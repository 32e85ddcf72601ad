"""Admission as one pure function: who starts, who is refused, in what order the rest wait.

Re-run after every change; it returns decisions and does nothing. Time is passed in. The order:

1. streams that had yielded their slot and want it back (first come, first served), those that
   kept their memory first: the others may wait for what these give back in the end;
2. interactive before batch;
3. inside a class round robin over owners (connections; later apps), each owner's own in order.

Whoever is first and does not fit in memory waits, and nobody overtakes: otherwise a stream of
small requests would starve a large one. Batch work can be starved by interactive work, and then
ends as `queue_timeout`, which is a typed answer. One run costs O(n log n) in the *queue*, which is
bounded by `max_queued` and those that had yielded; it is never run per token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from plait.errors import PlaitError, QueueTimeout


@dataclass(frozen=True, slots=True)
class Candidate:
    """One waiting stream. `ticket` grows with arrival; `needed_bytes` is what it does not hold."""

    ticket: int
    owner: str
    needed_bytes: int
    enqueued: float
    batch: bool = False
    resuming: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    free_slots: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class Decision:
    start: list[int] = field(default_factory=list)
    refuse: list[tuple[int, PlaitError]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # in order: index is the visible position


def decide(
    queue: Sequence[Candidate],
    capacity: Capacity,
    served: Sequence[str],
    now: float,
    timeout_seconds: float,
) -> Decision:
    """What to do with `queue` now.

    `served` lists owners by how recently they were granted a slot, least recent first; owners not
    in it come before all others.
    """
    decision = Decision()
    waiting: list[Candidate] = []
    for candidate in queue:
        if not candidate.resuming and now - candidate.enqueued >= timeout_seconds:
            decision.refuse.append((candidate.ticket, _timed_out(candidate, now)))
        else:
            waiting.append(candidate)

    slots, available = capacity.free_slots, capacity.available_bytes
    ordered = _order(waiting, served)
    for index, candidate in enumerate(ordered):
        if slots == 0 or candidate.needed_bytes > available:
            decision.waiting.extend(c.ticket for c in ordered[index:])
            break
        decision.start.append(candidate.ticket)
        slots -= 1
        available -= candidate.needed_bytes
    return decision


def next_timeout(queue: Iterable[Candidate], timeout_seconds: float) -> float | None:
    """When `decide` must run again even if nothing changes; None for never."""
    waits = [c.enqueued + timeout_seconds for c in queue if not c.resuming]
    return min(waits, default=None)


def _order(queue: Iterable[Candidate], served: Sequence[str]) -> list[Candidate]:
    recency = {owner: index for index, owner in enumerate(served)}
    turns: dict[tuple[str, bool], int] = {}
    keyed = []
    for candidate in sorted(queue, key=lambda c: c.ticket):
        if candidate.resuming:
            key = (0, int(candidate.needed_bytes > 0), 0, candidate.ticket)
        else:
            # An owner's n-th request of a class waits for everybody's n-1-th.
            turn = turns.get((candidate.owner, candidate.batch), 0)
            turns[candidate.owner, candidate.batch] = turn + 1
            rank = recency.get(candidate.owner, -1)
            key = (1 + candidate.batch, turn, rank, candidate.ticket)
        keyed.append((key, candidate))
    return [candidate for _, candidate in sorted(keyed, key=lambda pair: pair[0])]


def _timed_out(candidate: Candidate, now: float) -> QueueTimeout:
    waited = now - candidate.enqueued
    return QueueTimeout(
        f"no slot became free within {waited:.0f} s in the queue: try again later, or ask for "
        "less at once",
        data={"queued_ms": round(waited * 1000)},
        retry_after_ms=1000,
    )
