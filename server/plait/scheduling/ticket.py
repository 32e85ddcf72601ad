"""One stream's place in the scheduler: from asking for a slot to giving everything back.

The scheduler owns tickets and is the only one who changes them; a stream holds a ticket to talk
about it. A ticket outlives its stream's terminal and its socket: it ends with the worker's
*released*, or with the worker's death, and only then are slot and reservation free.
"""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field

from plait.engines.base import Feed, FinishInput, Prepare, Prepared
from plait.scheduling.roles import StreamListener


class TicketState(enum.Enum):
    """Where a ticket stands, and so what it holds.

    LOADING, PREPARING and QUEUED hold nothing. RUNNING and PAUSED hold slot and reservation,
    YIELDED and RESUMING no slot, and of the reservation what the job keeps. CANCELLING holds what
    it held until *released*.
    """

    LOADING = "loading"
    PREPARING = "preparing"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    YIELDED = "yielded"
    RESUMING = "resuming"
    CANCELLING = "cancelling"
    ENDED = "ended"


PENDING = frozenset({TicketState.LOADING, TicketState.PREPARING, TicketState.QUEUED})


@dataclass(slots=True, eq=False)
class Ticket:
    job: int
    owner: str
    batch: bool
    listener: StreamListener
    prepare: Prepare | None  # until it is sent: a text is then the worker's to hold
    submitted: float
    buffer_bytes: int = 0  # what it may have unsent and unread, charged while it runs
    state: TicketState = TicketState.LOADING
    # Input from before the worker knows the job; bounded by the stream's upload credit.
    early_input: list[Feed | FinishInput] = field(default_factory=list, repr=False)
    prepared: Prepared | None = None  # the worker's answer to `prepare`
    reserved_bytes: int = 0  # held now
    buffered_bytes: int = 0  # of `buffer_bytes`, likewise
    holds_slot: bool = False
    enqueued: float = 0.0
    slot_since: float = 0.0
    slot_seconds: float = 0.0  # for how long it held a slot before that
    displaced: bool = False  # it had to give way, and did not get a slot again yet
    gave_way: int = 0  # how often
    reader_rests: bool = False
    starved: bool = False  # the job waits for input
    keeps_bytes: int = 0  # of its reservation, while it is starved
    inputs: int = 0  # how many feeds and ends were sent, or wait in `early_input`
    cancel_stamp: float | None = None
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def pending(self) -> bool:
        return self.state in PENDING

    @property
    def reserve_bytes(self) -> int:
        """What it needs to run."""
        return 0 if self.prepared is None else self.prepared.reserve_bytes

    @property
    def rests(self) -> bool:
        return self.reader_rests or self.starved

    @property
    def computes(self) -> bool:
        return self.state is TicketState.RUNNING and not self.rests

    @property
    def lacks_bytes(self) -> int:
        """What it does not hold yet of what it needs to run."""
        return self.reserve_bytes - self.reserved_bytes

    @property
    def lacks_buffer_bytes(self) -> int:
        return self.buffer_bytes - self.buffered_bytes

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
