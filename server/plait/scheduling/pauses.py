"""What a stream holds while its reader rests: first its slot, then only its reservation.

After `yield_after_seconds` a paused stream gives its slot to others; to go on it then wants one
back, ahead of new work. Does NOT know why a reader rests (see `sessions`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from plait.engines.base import Command, Pause, Resume
from plait.scheduling.leases import Leases
from plait.scheduling.line import Line
from plait.scheduling.policy import SchedulerPolicy
from plait.scheduling.ticket import Ticket, TicketState


class Pauses:
    """Owned by one scheduler; `changed` is called when a slot came free or is wanted back."""

    def __init__(
        self,
        policy: SchedulerPolicy,
        line: Line,
        leases: Leases,
        send: Callable[[Command], None],
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._policy = policy
        self._line = line
        self._leases = leases
        self._send = send
        self._changed = changed
        self._clock = clock

    def pause(self, ticket: Ticket) -> None:
        if ticket.state is TicketState.RUNNING:
            self._send(Pause(ticket.job))
            ticket.state = TicketState.PAUSED
            ticket.timer = asyncio.get_running_loop().call_later(
                self._policy.yield_after_seconds, self._yield_slot, ticket
            )
        elif ticket.state is TicketState.RESUMING:
            self._line.leave(ticket)
            ticket.state = TicketState.YIELDED
            self._changed()

    def resume(self, ticket: Ticket) -> None:
        if ticket.state is TicketState.PAUSED:
            ticket.stop_timer()
            ticket.state = TicketState.RUNNING
            self._send(Resume(ticket.job))
        elif ticket.state is TicketState.YIELDED:
            self._line.enqueue(ticket, TicketState.RESUMING, self._clock())
            self._changed()

    def _yield_slot(self, ticket: Ticket) -> None:
        assert ticket.state is TicketState.PAUSED, ticket
        ticket.timer = None
        ticket.state = TicketState.YIELDED
        self._leases.free_slot(ticket)
        self._changed()
