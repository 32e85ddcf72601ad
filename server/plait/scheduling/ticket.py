"""One stream's place in the scheduler: from asking for a slot to giving everything back.

The scheduler owns tickets and is the only one who changes them; a stream holds a ticket to talk
about it. A ticket outlives its stream's terminal and its socket: it ends with the worker's
*released*, or with the worker's death, and only then are slot and reservation free.
"""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field
from typing import Protocol

from plait.engines.base import (
    Feed,
    FinishInput,
    Item,
    Prepare,
    Prepared,
    Released,
    Usage,
)
from plait.errors import PlaitError
from plait.wire.messages import FinishReason, Format, Phase


class TicketState(enum.Enum):
    """Where a ticket stands, and so what it holds.

    LOADING, PREPARING and QUEUED hold nothing. RUNNING and PAUSED hold slot and reservation,
    YIELDED and RESUMING the reservation only. CANCELLING holds what it held until *released*.
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


class StreamListener(Protocol):
    """What a stream hears of its ticket. Called on the event loop; must not block or raise.

    After `on_released`, `on_refused` or `on_lost` nothing more is called.
    """

    def on_phase(
        self, phase: Phase, position: int, percent: int | None, eta_ms: int | None
    ) -> None: ...

    def on_started(self, model: str, prepared: Prepared, format: Format | None) -> None: ...

    def on_consumed(self, size_bytes: int) -> None:
        """The job took so much more of its input; upload credit goes back."""

    def on_item(self, item: Item) -> None: ...

    def on_finished(self, finish_reason: FinishReason, usage: Usage) -> None: ...

    def on_failed(self, error: PlaitError, usage: Usage) -> None:
        """The job broke while running; `on_released` follows."""

    def on_refused(self, error: PlaitError) -> None:
        """It will not run; nothing is held."""

    def on_released(self, released: Released) -> None: ...

    def on_lost(self, error: PlaitError) -> None:
        """The worker died: everything is free, nothing more will come."""


@dataclass(slots=True, eq=False)
class Ticket:
    job: int
    owner: str
    batch: bool
    listener: StreamListener
    prepare: Prepare
    submitted: float
    state: TicketState = TicketState.LOADING
    # Input from before the worker knows the job; bounded by the stream's upload credit.
    early_input: list[Feed | FinishInput] = field(default_factory=list, repr=False)
    prepared: Prepared | None = None  # the worker's answer to `prepare`
    reserved_bytes: int = 0  # held now
    holds_slot: bool = False
    enqueued: float = 0.0
    started_at: float = 0.0
    cancel_stamp: float | None = None
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def pending(self) -> bool:
        return self.state in PENDING

    @property
    def reserve_bytes(self) -> int:
        """What it needs to run."""
        return 0 if self.prepared is None else self.prepared.reserve_bytes

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
