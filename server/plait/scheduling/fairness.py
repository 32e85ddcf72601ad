"""Whose turn it is, and who gives way: fairness between owners (apps, else connections), pure.

Order of the line:

0. who is starved: interactive, of an owner that holds no slot nor wants one back, when it has
   waited `PATIENCE_SECONDS`; not where memory is short: those below may be who gives it back;
1. streams that had yielded their slot by themselves and want it back (first come, first served),
   those that kept their memory first: the others may wait for what these give back in the end;
2. interactive before batch;
3. inside a class, by how many slots the owner would then hold, then round robin over owners, each
   owner's own in order of arrival.

Slots free themselves too late for that alone: an app may fill them all with answers of minutes, or
with streams that never end. So the first in line, once it has waited so long, may ask a running one
to give way: a batch stream if it is interactive itself, and where its owner holds no slot, one of
an owner that holds several. That one is paused as for a reader who does not read, and waits in its
owner's turn, never timed out. It keeps what memory its cache really takes; where the engine's cache
belongs to the slots ("reusable"), its place in it goes with the slot, and is computed anew.

Nobody is asked before it had its slot for `TURN_SECONDS`, twice as long after each time it gave
way, so that everybody gets on, however long its prompt is; and of an owner's interactive streams
the last one is never asked, so that who wants little keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

PATIENCE_SECONDS = 1.0
TURN_SECONDS = 1.0


class Waiting(Protocol):
    """A stream in line; see `admission.Candidate`."""

    @property
    def ticket(self) -> int: ...
    @property
    def owner(self) -> str: ...
    @property
    def needed_bytes(self) -> int: ...
    @property
    def enqueued(self) -> float: ...
    @property
    def batch(self) -> bool: ...
    @property
    def resuming(self) -> bool: ...
    @property
    def displaced(self) -> bool: ...


W = TypeVar("W", bound=Waiting)


@dataclass(frozen=True, slots=True)
class Holder:
    """A stream that computes on a slot since then. `gave_way`: how often it already did.
    `gives_bytes`: what it would give back of the engine's KV budget with its slot."""

    ticket: int
    owner: str
    since: float
    batch: bool = False
    gave_way: int = 0
    gives_bytes: int = 0

    @property
    def turn_ends(self) -> float:
        return self.since + TURN_SECONDS * 2.0**self.gave_way


@dataclass(frozen=True, slots=True)
class Way:
    """`ticket` gives way now; or it is worth to look again at `look_at`."""

    ticket: int | None = None
    look_at: float | None = None


def in_order(
    queue: Iterable[W],
    served: Sequence[str],
    held: Mapping[str, int],
    starved: Container[int] = (),
) -> list[W]:
    """`served`: owners, who was granted a slot longest ago first; those not in it come before all.
    `held`: slots by owner. `starved`: tickets."""
    recency = {owner: index for index, owner in enumerate(served)}
    turns: Counter[tuple[str, bool]] = Counter()
    keyed: list[tuple[tuple[float, ...], W]] = []
    for one in sorted(queue, key=lambda one: one.ticket):
        if one.resuming and not one.displaced:
            keyed.append(((1, one.needed_bytes > 0, 0, one.ticket), one))
            continue
        # An owner's n-th slot waits for everybody's n-1-th.
        turn = turns[one.owner, one.batch]
        turns[one.owner, one.batch] += 1
        if turn == 0 and one.ticket in starved:
            keyed.append(((0, one.enqueued, 0, one.ticket), one))
            continue
        slots = held.get(one.owner, 0) + turn
        keyed.append(((2 + one.batch, slots, recency.get(one.owner, -1), one.ticket), one))
    return [one for _, one in sorted(keyed, key=lambda pair: pair[0])]


def crowds(queue: Iterable[Waiting], owner: str) -> int | None:
    """Whose place in a full line a stream of `owner` gets: the youngest, batch first, of who has
    most in it; None where that would only turn the tables. Who had a slot before never loses it."""
    new = [one for one in queue if not one.resuming]
    counts = Counter(one.owner for one in new)
    most = max(counts.values(), default=0)
    if most <= counts[owner] + 1:
        return None
    crowding = [one for one in new if counts[one.owner] == most]
    return max(crowding, key=lambda one: (one.batch, one.ticket)).ticket


def starving(queue: Sequence[W], held: Mapping[str, int]) -> Iterator[tuple[float, W]]:
    """Who starves, and from when on. Nobody whose owner holds a slot or wants one back, which comes
    before that anyway; and no batch."""
    served = {one.owner for one in queue if one.resuming and not one.displaced} | held.keys()
    for one in queue:
        if not one.batch and one.owner not in served:
            yield one.enqueued + PATIENCE_SECONDS, one


def make_way(
    first: Waiting,
    holders: Iterable[Holder],
    held: Mapping[str, int],
    now: float,
    kv_bytes: int = 0,
) -> Way:
    """Who gives way to the first in line, which lacks nothing but a slot, and beyond the `kv_bytes`
    that are free what goes with it."""
    lacks_bytes = first.needed_bytes - kv_bytes
    enough = [holder for holder in holders if holder.gives_bytes >= lacks_bytes]
    askable = _askable(first, enough, held)
    if not askable or (first.resuming and not first.displaced):
        return Way()
    due = [holder for holder in askable if holder.turn_ends <= now]
    asks_at = first.enqueued + PATIENCE_SECONDS
    if not due or asks_at > now:
        return Way(look_at=max(asks_at, min(holder.turn_ends for holder in askable)))
    # Batch first, then of who has most; there the last to come, which has least to compute anew.
    last = max(due, key=lambda h: (h.batch, held.get(h.owner, 0), h.since, h.ticket))
    return Way(ticket=last.ticket)


def _askable(first: Waiting, holders: Iterable[Holder], held: Mapping[str, int]) -> list[Holder]:
    starved = not held.get(first.owner, 0)
    return [
        holder
        for holder in holders
        if (holder.batch and not first.batch)
        or (starved and held.get(holder.owner, 0) > 1 and holder.batch >= first.batch)
    ]
