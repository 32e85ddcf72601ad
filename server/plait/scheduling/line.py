"""The waiting line of one model: streams without a slot, and where each of them waits.

loading (the worker does not know it yet) -> preparing (it is being tokenized and sized) -> queued
(sized, waits for slot and memory; also a stream that wants a yielded slot back). Pure bookkeeping
around `admission.decide`; it neither talks to the engine nor to streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plait.errors import PlaitError, QueueFull, ShuttingDown
from plait.scheduling.admission import Candidate, Capacity, Decision, decide, next_timeout
from plait.scheduling.fairness import crowds, in_order
from plait.scheduling.ticket import Ticket, TicketState

MAX_PREPARING = 8
MAX_TURNS = 1024  # owners whose last turn is remembered; beyond, who had it longest ago had none


class Line:
    """Owned by one scheduler."""

    def __init__(self, timeout_seconds: float, max_queued: int) -> None:
        self.loading: dict[int, Ticket] = {}
        self.preparing: dict[int, Ticket] = {}
        self.queued: dict[int, Ticket] = {}
        self.draining = False  # nobody joins any more
        self._timeout_seconds = timeout_seconds
        self.max_queued = max_queued
        self._served: dict[str, None] = {}  # owners, least recently granted first

    def __len__(self) -> int:
        return len(self.loading) + len(self.preparing) + len(self.queued)

    def __repr__(self) -> str:
        return (
            f"{len(self.loading)} loading, {len(self.preparing)} preparing, "
            f"{len(self.queued)} queued"
        )

    def check_open(self) -> None:
        """Raises ShuttingDown."""
        if self.draining:
            raise ShuttingDown("the server is shutting down: reconnect in a moment")

    def make_room(
        self,
        model: str,
        owner: str,
        room: int,
        eta_ms: int | None,
        refuse: Callable[[Ticket, PlaitError], None],
    ) -> None:
        """For one more, where so many may be in line: what fits into free slots does not wait, so
        it does not count. Where the line is full another owner may have to leave a place.

        Raises QueueFull.
        """
        if len(self) < room:
            return
        full = QueueFull(
            f"{len(self)} streams wait for {model} and the queue holds {self.max_queued}: try again"
            " later",
            data={"queued": len(self), "max_queued": self.max_queued},
            retry_after_ms=eta_ms or 1000,
        )
        everybody = self.loading | self.preparing | self.queued
        job = crowds(map(_candidate, everybody.values()), owner)
        if job is None:
            raise full
        refuse(everybody[job], full)

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
        """In the order in which they would be started, as many as the worker may have in hand: what
        one owner has asked for at once must not keep the worker busy until another's turn comes."""
        room = MAX_PREPARING - len(self.preparing)
        if not self.loading or room <= 0:
            return
        waiting = map(_candidate, self.loading.values())
        for candidate in in_order(waiting, list(self._served), {})[:room]:
            ticket = self.loading.pop(candidate.ticket)
            ticket.state = TicketState.PREPARING
            self.preparing[ticket.job] = ticket
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
            self._served.clear()  # turns matter only while somebody waits
        return decision

    def grant(self, ticket: Ticket) -> None:
        """It gets a slot: out of the line, and its owner to the back of the turns."""
        del self.queued[ticket.job]
        self._served.pop(ticket.owner, None)
        self._served[ticket.owner] = None
        if len(self._served) > MAX_TURNS:  # owners may be connections, and those come and go
            del self._served[next(iter(self._served))]
        ticket.displaced = False

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
        ticket.displaced,
        ticket.lacks_buffer_bytes,
    )
