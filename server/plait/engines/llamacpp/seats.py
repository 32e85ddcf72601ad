"""Which slot of llama.cpp a job gets, and whose prefix may be reused there.

A slot keeps its last content as a cache. Invariant: it is offered again only within the scope it
came from, so no connection can tell (by time or by `cached_tokens`) what another one sent. A paused
job's slot is overwritten only when no other is free. Knows token ids; knows no text and no engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Seat:
    """`tokens` of `scope` are what the slot's cache holds. `keeper`: a paused job to return."""

    index: int
    holder: int | None = None
    keeper: int | None = None
    scope: str | None = None
    tokens: list[int] = field(default_factory=list)
    last_used: int = 0


class Seats:
    def __init__(self, count: int) -> None:
        self._seats = [Seat(index) for index in range(count)]
        self._clock = 0

    @property
    def free(self) -> bool:
        return any(seat.holder is None for seat in self._seats)

    @property
    def occupants(self) -> list[int]:
        """Jobs whose content the slots hold: running ones, and paused ones not overwritten."""
        holders = (seat.holder if seat.holder is not None else seat.keeper for seat in self._seats)
        return [job for job in holders if job is not None]

    def take(self, job: int, scope: str, tokens: list[int]) -> tuple[Seat, bool]:
        """-> (seat, whether its cached prefix may be reused). Only while one is `free`.

        The best seat is no other paused job's, then shares the longest prefix, then is the one
        unused for longest.
        """
        prefixes = {
            seat.index: _common_prefix(seat.tokens, tokens) if seat.scope == scope else 0
            for seat in self._seats
            if seat.holder is None
        }
        seat = min(
            (self._seats[index] for index in prefixes),
            key=lambda s: (s.keeper not in (None, job), -prefixes[s.index], s.last_used),
        )
        self.forget(job)
        reusable = seat.scope == scope
        seat.holder, seat.keeper, seat.scope = job, None, scope
        self._clock += 1
        seat.last_used = self._clock
        return seat, reusable

    def leave(self, seat: Seat, tokens: list[int], *, kept: bool) -> None:
        """The holder is gone from the engine; `tokens` remain. `kept`: it is paused, not over."""
        seat.keeper = seat.holder if kept else None
        seat.holder = None
        seat.tokens = tokens

    def forget(self, job: int) -> None:
        """A paused job will not come back to its seat."""
        for seat in self._seats:
            if seat.keeper == job:
                seat.keeper = None


def _common_prefix(first: list[int], second: list[int]) -> int:
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length
