"""When a model's scheduler decides: once at the end of each tick in which something changed.

Prepares go to the worker in order of arrival, then admission's decision is applied through
`Turn`; a timer asks again when somebody will have waited too long, or long enough for another to
give way. So an open and its cancel read
in one tick reach no engine at all. Does NOT decide (see `admission`) and holds nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from plait.errors import PlaitError
from plait.scheduling.admission import Decision
from plait.scheduling.fairness import Holder, Way, make_way
from plait.scheduling.leases import Leases
from plait.scheduling.line import Line
from plait.scheduling.pauses import Pauses
from plait.scheduling.ticket import Ticket, TicketState


class Turn(Protocol):
    """What the scheduler does when its turn comes. Only ever called from the end of a tick."""

    def send_prepare(self, ticket: Ticket) -> None: ...

    def refuse(self, ticket: Ticket, error: PlaitError) -> None: ...

    def grant(self, ticket: Ticket) -> None: ...

    def settled(self) -> None:
        """The decision is applied: leases are what they are until the next change."""


def _holder(ticket: Ticket, gives_bytes: int) -> Holder:
    return Holder(
        ticket.job, ticket.owner, ticket.slot_since, ticket.batch, ticket.gave_way, gives_bytes
    )


class Pump:
    """Owned by one scheduler. `open` is whether a worker is ready to be told anything."""

    def __init__(
        self,
        turn: Turn,
        line: Line,
        leases: Leases,
        pauses: Pauses,
        clock: Callable[[], float],
    ) -> None:
        self.open = False
        self.needs_bytes = 0  # what the first in line wants of the machine, when it waits for that
        self._blocked_job: int | None = None
        self.short = False  # somebody waits for memory that others may give back
        self._turn = turn
        self._line = line
        self._leases = leases
        self._pauses = pauses
        self._clock = clock
        self._due = False
        self._timer: asyncio.TimerHandle | None = None
        self._hold_seconds = 0.0  # moving average of how long a slot is held, for eta

    def refuse_blocked(self) -> None:
        """The first in line waits for memory of the machine that will not come."""
        if self.needs_bytes and self._blocked_job in self._line.queued:
            ticket = self._line.queued[self._blocked_job]
            self._turn.refuse(ticket, self._leases.lack_of(ticket))

    def touch(self) -> None:
        """Something changed: decide again at the end of this tick."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._run)

    def observe_hold(self, seconds: float) -> None:
        self._hold_seconds += 0.2 * (seconds - self._hold_seconds)

    def eta_ms(self, position: int) -> int | None:
        """A guess of the wait at `position`; None without a worker or experience."""
        if not self.open or self._hold_seconds == 0:
            return None
        return round(1000 * self._hold_seconds * (position + 1) / self._leases.slots)

    def _run(self) -> None:
        self._due = False
        if self.open:
            for ticket in self._line.take_to_prepare():
                self._turn.send_prepare(ticket)
            self._admit()
        else:
            self.needs_bytes, self.short = 0, False
        self._turn.settled()

    def _admit(self) -> None:
        decision = self._line.decide(self._leases.capacity, self._clock())
        self.needs_bytes, self._blocked_job = decision.needs_bytes, decision.blocked
        self.short = decision.short_apps or decision.needs_bytes > 0
        for job, error in decision.refuse:
            self._turn.refuse(self._line.queued[job], error)
        for job in decision.start:
            self._turn.grant(self._line.queued[job])
        for position, job in enumerate(decision.waiting):
            ticket = self._line.queued[job]
            if ticket.state is TicketState.QUEUED:
                ticket.listener.on_phase("queued", position, None, self.eta_ms(position))
        way = self._make_way(decision)
        times = (self._line.next_timeout, decision.look_at, way.look_at)
        self._arm_timer(min((at for at in times if at is not None), default=None))
        if way.ticket is not None:
            self._pauses.give_way(self._leases.seated[way.ticket])

    def _make_way(self, decision: Decision) -> Way:
        if decision.first is None:
            return Way()
        leases = self._leases
        holders = (
            _holder(ticket, leases.gives_bytes(ticket))
            for ticket in leases.seated.values()
            if ticket.computes
        )
        capacity = leases.capacity
        return make_way(
            decision.first, holders, capacity.held, self._clock(), capacity.available_bytes
        )

    def _arm_timer(self, when: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when is not None:
            delay = max(0.0, when - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay, self.touch)
