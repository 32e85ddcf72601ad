"""Which slot of llama.cpp a job gets, and whose prefix may be reused there.

A slot keeps its last content as a cache. Invariants: it is offered again only within the scope it
came from, so no app can tell (by time or by `cached_tokens`) what another one sent; what jobs that
are over leave behind is never more than `keep_at_most` allows, the least recently used goes first.
A paused job's slot is overwritten only when no other is free. Knows token ids; knows no text, no
bytes and no engine. That a prefix is exact is not its promise: llama.cpp compares token by token.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from plait.engines.prefixes import common_prefix


@dataclass(slots=True, eq=False)
class Seat:
    """`tokens` of `scope` are what the slot's cache holds. `keeper`: a paused job to return."""

    index: int
    holder: int | None = None
    keeper: int | None = None
    scope: str | None = None
    tokens: list[int] = field(default_factory=list)
    last_used: int = 0

    @property
    def kept(self) -> bool:
        """Whether it holds what a job that is over has left."""
        return self.holder is None and self.keeper is None and bool(self.tokens)

    def empty(self) -> None:
        """Its cells are offered to nobody any more; whoever comes next overwrites them."""
        self.scope, self.tokens, self.last_used = None, [], 0


class Seats:
    """`most_kept_tokens`: see `keep_at_most`."""

    def __init__(self, count: int, most_kept_tokens: int = 0) -> None:
        self._seats = [Seat(index) for index in range(count)]
        self._most_kept_tokens = most_kept_tokens
        self._clock = 0

    @property
    def free(self) -> bool:
        return any(seat.holder is None for seat in self._seats)

    @property
    def occupants(self) -> list[int]:
        """Jobs whose content the slots hold: running ones, and paused ones not overwritten."""
        holders = (seat.holder if seat.holder is not None else seat.keeper for seat in self._seats)
        return [job for job in holders if job is not None]

    @property
    def kept_tokens(self) -> int:
        """Cells that hold what jobs that are over have left."""
        return sum(len(seat.tokens) for seat in self._seats if seat.kept)

    def keep_at_most(self, tokens: int) -> None:
        """Cells that jobs that are over may leave for reuse, in all; paused jobs' not counted."""
        self._most_kept_tokens = tokens
        self._evict()

    def take(self, job: int, scope: str, tokens: list[int]) -> tuple[Seat, bool]:
        """-> (seat, whether its cached prefix may be reused). Only while one is `free`.

        The best seat is no other paused job's, and then the one that costs the fewest tokens to
        compute: those not in its cache now, and those that will be missed there later.
        """
        shared = {
            seat.index: common_prefix(seat.tokens, tokens) if seat.scope == scope else 0
            for seat in self._seats
            if seat.holder is None
        }
        seat = min(
            (self._seats[index] for index in shared),
            key=lambda s: (
                s.keeper not in (None, job),
                len(tokens) - shared[s.index] + self._regret(s, shared[s.index]),
                s.last_used,
            ),
        )
        self._vacate(job)
        self._clock += 1
        reusable = seat.scope == scope
        seat.tokens = tokens[: shared[seat.index]]
        seat.holder, seat.keeper, seat.scope, seat.last_used = job, None, scope, self._clock
        self._evict()
        return seat, reusable

    def leave(self, seat: Seat, tokens: list[int], *, kept: bool) -> None:
        """The holder is gone from the engine; `tokens` remain. `kept`: it is paused, not over."""
        seat.keeper = seat.holder if kept else None
        seat.holder = None
        seat.tokens = tokens
        if not tokens:
            seat.empty()
        self._evict()

    def forget(self, job: int) -> None:
        """A paused job will not come back to its seat."""
        self._vacate(job)
        self._evict()

    def _regret(self, seat: Seat, shared: int) -> float:
        """Tokens of the seat that are lost, by how likely somebody comes back for them."""
        return (len(seat.tokens) - shared) / (2 + self._clock - seat.last_used)

    def _vacate(self, job: int) -> None:
        for seat in self._seats:
            if seat.keeper == job:
                seat.keeper = None

    def _evict(self) -> None:
        kept = sorted((seat for seat in self._seats if seat.kept), key=lambda s: -s.last_used)
        while kept and sum(len(seat.tokens) for seat in kept) > self._most_kept_tokens:
            kept.pop().empty()
