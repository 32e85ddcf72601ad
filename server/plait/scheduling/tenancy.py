"""One model as whoever owns the machine's memory sees it: who waits for what, what is in use.

Reads what its scheduler keeps, and passes on what concerns all models: that memory came free, that
the machine is short of it. Does NOT know tickets' ends, events or engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.scheduling.leases import Leases
from plait.scheduling.line import Line
from plait.scheduling.pump import Pump
from plait.scheduling.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Figures:
    """For people who watch. `active`: streams that hold or held a slot, also those that
    want it back; `queued`: those that never had one."""

    slots: int
    slots_used: int
    active: int
    queued: int
    kv_reserved_bytes: int


class Tenancy:
    """Owned by one scheduler; `tickets` is the scheduler's own."""

    def __init__(
        self, tickets: Mapping[int, Ticket], line: Line, leases: Leases, pump: Pump
    ) -> None:
        self._tickets = tickets
        self._line = line
        self._leases = leases
        self._pump = pump
        self._told_needs_bytes = 0

    def __repr__(self) -> str:
        return (
            f"{self._leases.slots_used} slots used, "
            f"{self._leases.budget.reserved_bytes} bytes reserved, {self._line}, "
            f"{len(self._tickets)} tickets"
        )

    @property
    def in_use(self) -> bool:
        """A stream is with it, whatever it waits for."""
        return bool(self._tickets)

    @property
    def holds(self) -> bool:
        """A stream holds something: what waits for memory may get it when that one ends."""
        return self._leases.held

    @property
    def loading_bytes(self) -> int:
        """What the first stream that waits for the worker will want beside it, as far as known."""
        first = next(iter(self._line.loading.values()), None)
        return 0 if first is None else first.buffer_bytes + self._leases.largest_bytes

    @property
    def loading_since(self) -> float | None:
        """Since when a stream waits for the worker; None when none does."""
        return self._line.loading_since

    @property
    def needs(self) -> tuple[int, float] | None:
        """Bytes of the machine's memory that the first in line waits for, and since when."""
        since = self._line.since
        if not self._pump.needs_bytes or since is None:
            return None
        return self._pump.needs_bytes, since

    def needs_changed(self) -> bool:
        """Whether that is another amount than when this was asked last."""
        told, self._told_needs_bytes = self._told_needs_bytes, self._pump.needs_bytes
        return told != self._told_needs_bytes

    def on_freed(self) -> None:
        """Memory came free, somewhere."""
        if self._pump.short:
            self._pump.touch()

    def refuse_first(self) -> None:
        """The first in line waits for memory that will not come."""
        self._pump.refuse_blocked()

    def halt(self, halted: bool) -> None:
        """Whether the machine is short: then nothing that takes memory is granted."""
        self._leases.halted = halted
        self._pump.touch()

    def figures(self) -> Figures:
        queued = sum(ticket.pending for ticket in self._tickets.values())
        return Figures(
            self._leases.slots,
            self._leases.slots_used,
            len(self._tickets) - queued,
            queued,
            self._leases.budget.reserved_bytes,
        )
