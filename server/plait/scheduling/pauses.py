"""What a stream holds while its job rests: first its slot, then only its reservation, or less.

A job rests for its reader, told by `sessions`, or for want of input, told by the job itself; it
goes on only when neither holds. A reader's rest pauses the job at once and yields its slot after
`yield_after_seconds`; a starved job, which computes nothing anyway, yields after
`idle_input_seconds`, and with it what it does not keep of its reservation. To go on it then wants
back what it gave, ahead of new work. A job that must give way to another owner's rests as well, and
goes on in its turn. One timer per ticket; nothing happens per item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from plait.engines.base import Command, Pause, Resume, Starved
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
        """The reader does not read."""
        ticket.reader_rests = True
        self._follow(ticket)

    def resume(self, ticket: Ticket) -> None:
        """The reader reads again."""
        ticket.reader_rests = False
        self._follow(ticket)

    def starve(self, ticket: Ticket, starved: Starved) -> None:
        """The job wants input. Void when some was sent before this arrived."""
        if starved.inputs == ticket.inputs:
            ticket.starved = True
            ticket.keeps_bytes = starved.keeps_bytes
            self._follow(ticket)

    def give_way(self, ticket: Ticket) -> None:
        """To another owner's stream (see `fairness`): it computes, and waits for its next turn."""
        assert ticket.state is TicketState.RUNNING, ticket
        ticket.stop_timer()
        ticket.displaced = True
        ticket.gave_way += 1
        self._send(Pause(ticket.job))
        now = self._clock()
        self._leases.leave_seat(ticket, now)
        self._line.enqueue(ticket, TicketState.RESUMING, now)
        self._changed()

    def feed(self, ticket: Ticket) -> None:
        """More input, or its end, goes to the job."""
        ticket.inputs += 1
        if ticket.starved:
            ticket.starved = False
            self._follow(ticket)

    def _follow(self, ticket: Ticket) -> None:
        """Into the state that its reasons to rest ask for. Pending and ending ones stay."""
        match ticket.state:
            case TicketState.RUNNING:
                self._run(ticket)
            case TicketState.PAUSED if not ticket.reader_rests:
                ticket.state = TicketState.RUNNING
                self._send(Resume(ticket.job))
                self._run(ticket)
            case TicketState.YIELDED if not ticket.rests:
                self._line.enqueue(ticket, TicketState.RESUMING, self._clock())
                self._changed()
            case TicketState.RESUMING if ticket.rests:
                self._line.leave(ticket)
                ticket.state = TicketState.YIELDED
                self._changed()

    def _run(self, ticket: Ticket) -> None:
        """On, or towards giving up the slot."""
        ticket.stop_timer()
        if ticket.reader_rests:
            ticket.state = TicketState.PAUSED
            self._send(Pause(ticket.job))
            self._yield_after(self._policy.yield_after_seconds, ticket)
        elif ticket.starved:
            self._yield_after(self._policy.idle_input_seconds, ticket)

    def _yield_after(self, seconds: float, ticket: Ticket) -> None:
        ticket.timer = asyncio.get_running_loop().call_later(seconds, self._yield, ticket)

    def _yield(self, ticket: Ticket) -> None:
        assert ticket.rests, ticket
        ticket.timer = None
        if ticket.state is TicketState.RUNNING:
            self._send(Pause(ticket.job))
        ticket.state = TicketState.YIELDED
        self._leases.free_slot(ticket, self._clock())
        if ticket.starved:
            self._leases.shrink(ticket, ticket.keeps_bytes)
        self._changed()
