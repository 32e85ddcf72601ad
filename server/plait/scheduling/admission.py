"""Admission as one pure function: who starts, who is refused, in what order the rest wait.

Re-run after every change; it returns decisions and does nothing. Time is passed in. The order is
`fairness`'s.

Whoever is first and does not fit in memory waits, and nobody overtakes: otherwise a stream of
small requests would starve a large one. Whoever does not fit its app's own budget waits as well,
but only its own app waits with it. Nobody waits so who takes nothing more: what it holds comes back
only when it has gone on. Batch work can be starved by interactive work, and then
ends as `queue_timeout`, which is a typed answer. One run costs O(n log n) in the *queue*, which is
bounded by `max_queued` and those that had yielded; it is never run per token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from plait.errors import PlaitError, QueueTimeout
from plait.scheduling.fairness import in_order, starving
from plait.scheduling.ledger import UNLIMITED_BYTES, not_available


@dataclass(frozen=True, slots=True)
class Candidate:
    """One waiting stream. `ticket` grows with arrival. `resuming`: it had a slot before and gave it
    away itself, or had to give way to another one (`displaced`).

    `needed_bytes` of the engine's KV budget and `buffer_bytes` are what it does not hold yet.
    """

    ticket: int
    owner: str
    needed_bytes: int
    enqueued: float
    batch: bool = False
    resuming: bool = False
    displaced: bool = False
    buffer_bytes: int = 0

    def machine_bytes(self, capacity: Capacity) -> int:
        """Of the machine's memory."""
        return self.buffer_bytes + (self.needed_bytes if capacity.kv_freed else 0)

    @property
    def app_bytes(self) -> int:
        """Of its app's budget."""
        return self.buffer_bytes + self.needed_bytes

    @property
    def holds_all(self) -> bool:
        """It lacks nothing but a slot, whoever else is short of memory."""
        return self.resuming and self.app_bytes == 0


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is free of one model, of the machine, and of each app that has a budget of its own; and
    how many slots each owner holds.

    `kv_freed`: the KV cache is taken from the machine as streams run. `halted`: the machine itself
    is short, so that only those go on who take nothing more.
    """

    free_slots: int
    available_bytes: int
    machine_bytes: int = UNLIMITED_BYTES
    apps: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    kv_freed: bool = True
    halted: bool = False
    model: str = ""


@dataclass(slots=True)
class Decision:
    """`needs_bytes`: what the first in line (`blocked`) wants of the machine, 0 where that is not
    what it waits for. `short_apps`: somebody waits for the budget of an app. `first` in line lacks
    nothing but a slot. `look_at`: when somebody begins to starve, in which case the order changes.
    """

    start: list[int] = field(default_factory=list)
    refuse: list[tuple[int, PlaitError]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # in order: index is the visible position
    blocked: int | None = None
    needs_bytes: int = 0
    short_apps: bool = False
    first: Candidate | None = None
    look_at: float | None = None


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
            decision.refuse.append((candidate.ticket, _timed_out(candidate, capacity, now)))
        else:
            waiting.append(candidate)
    grants = _Grants(capacity, decision)
    starved = set()
    for at, candidate in starving(waiting, capacity.held):
        if at > now:
            decision.look_at = min(at, decision.look_at or at)
        elif grants.lacks_a_slot_at_most(candidate):
            starved.add(candidate.ticket)
    grants.go_through(in_order(waiting, served, capacity.held, starved))
    return decision


class _Grants:
    """What is left while one decision is made."""

    def __init__(self, capacity: Capacity, decision: Decision) -> None:
        self._capacity = capacity
        self._decision = decision
        self._slots = capacity.free_slots
        self._kv_bytes = capacity.available_bytes
        self._machine_bytes = max(0, capacity.machine_bytes)  # overdrawn is none
        self._apps = dict(capacity.apps)
        self._held_apps: set[str] = set()

    def go_through(self, ordered: Sequence[Candidate]) -> None:
        blocked = False
        for index, candidate in enumerate(ordered):
            if self._slots == 0:
                if not blocked:
                    self._decision.first = self._first_without_a_slot(ordered[index:])
                self._decision.waiting.extend(c.ticket for c in ordered[index:])
                return
            if candidate.holds_all:
                self._start(candidate)
                continue
            blocked = blocked or self._blocks(candidate)
            if blocked or self._waits_for_its_app(candidate):
                self._decision.waiting.append(candidate.ticket)
            else:
                self._start(candidate)

    def _blocks(self, candidate: Candidate) -> bool:
        """It does not fit, and nobody may overtake it."""
        if candidate.owner in self._held_apps or self._lacks_app(candidate):
            return False
        needs_bytes = candidate.machine_bytes(self._capacity)
        if needs_bytes > self._machine_bytes:
            self._decision.needs_bytes, self._decision.blocked = needs_bytes, candidate.ticket
            return True
        if self._capacity.halted and (needs_bytes or not candidate.resuming):
            return True
        return candidate.needed_bytes > self._kv_bytes

    def _first_without_a_slot(self, ordered: Sequence[Candidate]) -> Candidate | None:
        """The first that does not wait for its app, if it would start with a slot."""
        for candidate in ordered:
            if candidate.owner not in self._held_apps and not self._lacks_app(candidate):
                return candidate if self.lacks_a_slot_at_most(candidate) else None
        return None

    def lacks_a_slot_at_most(self, candidate: Candidate) -> bool:
        """Its memory is there, or comes with the slot."""
        comes_with_slot = self._slots == 0 and not self._capacity.kv_freed
        needs_bytes = candidate.machine_bytes(self._capacity)
        return (
            not self._lacks_app(candidate)
            and (candidate.needed_bytes <= self._kv_bytes or comes_with_slot)
            and needs_bytes <= self._machine_bytes
            and not (self._capacity.halted and (needs_bytes or not candidate.resuming))
        )

    def _waits_for_its_app(self, candidate: Candidate) -> bool:
        if candidate.owner in self._held_apps or self._lacks_app(candidate):
            self._held_apps.add(candidate.owner)
            self._decision.short_apps = True
            return True
        return False

    def _lacks_app(self, candidate: Candidate) -> bool:
        room_bytes = self._apps.get(candidate.owner)
        return room_bytes is not None and candidate.app_bytes > room_bytes

    def _start(self, candidate: Candidate) -> None:
        self._decision.start.append(candidate.ticket)
        self._slots -= 1
        self._kv_bytes -= candidate.needed_bytes
        self._machine_bytes -= candidate.machine_bytes(self._capacity)
        if candidate.owner in self._apps:
            self._apps[candidate.owner] -= candidate.app_bytes


def next_timeout(queue: Iterable[Candidate], timeout_seconds: float) -> float | None:
    """When `decide` must run again even if nothing changes; None for never."""
    waits = [c.enqueued + timeout_seconds for c in queue if not c.resuming]
    return min(waits, default=None)


def _timed_out(candidate: Candidate, capacity: Capacity, now: float) -> PlaitError:
    """With slots free it was memory that did not come."""
    waited = now - candidate.enqueued
    if capacity.halted:
        needs_bytes = candidate.machine_bytes(capacity)
        has = f"after {waited:.0f} s in the queue the machine itself is short of it, free are"
        return not_available(capacity.model, needs_bytes, 0, has, "try again later")
    if capacity.free_slots:
        for required_bytes, room_bytes, has in (
            (candidate.needed_bytes, capacity.available_bytes, "of its KV budget is free"),
            (candidate.app_bytes, capacity.apps.get(candidate.owner), "of this app's is free"),
            (candidate.machine_bytes(capacity), capacity.machine_bytes, "of the memory is free"),
        ):
            if room_bytes is not None and required_bytes > room_bytes:
                return not_available(
                    capacity.model,
                    required_bytes,
                    room_bytes,
                    f"after {waited:.0f} s in the queue what {has} is",
                    "try again later, or ask for less at once",
                )
    return QueueTimeout(
        f"no slot became free within {waited:.0f} s in the queue: try again later, or ask for "
        "less at once",
        data={"queued_ms": round(waited * 1000)},
        retry_after_ms=1000,
    )
