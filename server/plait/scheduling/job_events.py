"""What each event of a worker means to its ticket: what the stream hears, what the scheduler does.

Only passes on; every lease is the scheduler's. Nothing here looks into an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, assert_never

from plait.engines.base import (
    Consumed,
    Failed,
    Finished,
    Item,
    JobEvent,
    Prepared,
    Refused,
    Released,
    Starved,
)
from plait.errors import PlaitError
from plait.scheduling.model_metrics import ModelMetrics
from plait.scheduling.pauses import Pauses
from plait.scheduling.ticket import Ticket


class JobTurn(Protocol):
    """What the scheduler does about events that move a ticket."""

    def enqueue(self, ticket: Ticket, prepared: Prepared) -> None: ...

    def end_refused(self, ticket: Ticket, error: PlaitError) -> None:
        """The worker will not run it, and holds nothing of it."""

    def release(self, ticket: Ticket, released: Released) -> None: ...


class JobEvents:
    """Owned by one scheduler; `tickets` are its own, by job."""

    def __init__(
        self,
        tickets: Mapping[int, Ticket],
        turn: JobTurn,
        metrics: ModelMetrics,
        pauses: Pauses,
    ) -> None:
        self._tickets = tickets
        self._turn = turn
        self._metrics = metrics
        self._pauses = pauses

    def receive(self, events: list[JobEvent]) -> None:
        units = 0
        for event in events:
            # Unknown: a pending job whose cancel crossed the worker's answer.
            ticket = self._tickets.get(event.job)
            if ticket is None:
                continue
            if isinstance(event, Item):
                units += event.units
                ticket.listener.on_item(event)
            else:
                self._move(ticket, event)
        if units:
            self._metrics.units(units)

    def _move(
        self,
        ticket: Ticket,
        event: Consumed | Failed | Finished | Prepared | Refused | Released | Starved,
    ) -> None:
        match event:
            case Consumed():
                ticket.listener.on_consumed(event.bytes)
            case Starved():
                self._pauses.starve(ticket, event)
            case Prepared():
                self._turn.enqueue(ticket, event)
            case Refused():
                self._turn.end_refused(ticket, event.fault.to_error())
            case Finished():
                ticket.listener.on_finished(event.finish_reason, event.usage)
            case Failed():
                ticket.listener.on_failed(event.fault.to_error(), event.usage)
            case Released():
                self._turn.release(ticket, event)
            case _:
                assert_never(event)
