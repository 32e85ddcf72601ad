"""The waiting line of one model: streams without a slot, and where each of them waits.

loading (the worker does not know it yet) -> preparing (it is being tokenized and sized) -> queued
(sized, waits for slot and memory; also a stream that wants a yielded slot back). Pure bookkeeping
around `admission.decide`; it neither talks to the engine nor to streams.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.errors import QueueFull, ShuttingDown
from plait.scheduling.admission import Candidate, Capacity, Decision, decide, next_timeout
from plait.scheduling.ticket import Ticket, TicketState

MAX_PREPARING = 8


class Line:
    """Owned by one scheduler."""

    def __init__(self, timeout_seconds: float, max_queued: int) -> None:
        self.loading: dict[int, Ticket] = {}
        self.preparing: dict[int, Ticket] = {}
        self.queued: dict[int, Ticket] = {}
        self.draining = False  # nobody joins any more
        self._timeout_seconds = timeout_seconds
        self._max_queued = max_queued
        self._served: dict[str, None] = {}  # owners, least recently granted first

    def __len__(self) -> int:
        return len(self.loading) + len(self.preparing) + len(self.queued)

    def __repr__(self) -> str:
        return (
            f"{len(self.loading)} loading, {len(self.preparing)} preparing, "
            f"{len(self.queued)} queued"
        )

    def check_room(self, model: str, free_slots: int, eta_ms: int | None) -> None:
        """Raises ShuttingDown, or QueueFull: what fits into free slots does not wait, so it does
        not count."""
        if self.draining:
            raise ShuttingDown("the server is shutting down: reconnect in a moment")
        waiting, max_queued = len(self), self._max_queued
        if waiting - free_slots >= max_queued:
            raise QueueFull(
                f"{waiting} streams wait for {model} and the queue holds {max_queued}: try again"
                " later",
                data={"queued": waiting, "max_queued": max_queued},
                retry_after_ms=eta_ms or 1000,
            )

    @property
    def since(self) -> float | None:
        """When the longest wait of those that need a slot or memory began."""
        return min((ticket.enqueued for ticket in self.queued.values()), default=None)

    @property
    def loading_since(self) -> float | None:
        """Since when somebody waits for the worker."""
        return next((ticket.submitted for ticket in self.loading.values()), None)

    def join(self, ticket: Ticket) -> None:
        ticket.state = TicketState.LOADING
        self.loading[ticket.job] = ticket

    def take_to_prepare(self) -> Iterator[Ticket]:
        """In order of arrival, as many as the worker may have in hand."""
        while self.loading and len(self.preparing) < MAX_PREPARING:
            job, ticket = next(iter(self.loading.items()))
            del self.loading[job]
            ticket.state = TicketState.PREPARING
            self.preparing[job] = ticket
            yield ticket

    def enqueue(self, ticket: Ticket, state: TicketState, since: float) -> None:
        """`state` is QUEUED or RESUMING; `since` is when its wait began."""
        self.preparing.pop(ticket.job, None)
        ticket.state = state
        ticket.enqueued = since
        self.queued[ticket.job] = ticket

    def leave(self, ticket: Ticket) -> None:
        for place in (self.loading, self.preparing, self.queued):
            place.pop(ticket.job, None)

    def decide(self, capacity: Capacity, now: float) -> Decision:
        decision = decide(
            [_candidate(ticket) for ticket in self.queued.values()],
            capacity,
            list(self._served),
            now,
            self._timeout_seconds,
        )
        if not decision.waiting:
            self._served.clear()  # turns matter only while somebody waits; else it grows for ever
        return decision

    def grant(self, ticket: Ticket) -> None:
        """It gets a slot: out of the line, and its owner to the back of the turns."""
        del self.queued[ticket.job]
        self._served.pop(ticket.owner, None)
        self._served[ticket.owner] = None

    @property
    def next_timeout(self) -> float | None:
        """When somebody will have waited too long."""
        return next_timeout(map(_candidate, self.queued.values()), self._timeout_seconds)


def _candidate(ticket: Ticket) -> Candidate:
    return Candidate(
        ticket.job,
        ticket.owner,
        ticket.lacks_bytes,
        ticket.enqueued,
        ticket.batch,
        ticket.state is TicketState.RESUMING,
        ticket.lacks_buffer_bytes,
    )
