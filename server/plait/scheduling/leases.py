"""What tickets hold of one engine, slots and reserved bytes, and that each is given back once.

Pure bookkeeping: it neither decides (see `admission`) nor talks to the engine.
"""

from __future__ import annotations

from plait.engines.base import EngineInfo
from plait.scheduling.budget import Budget
from plait.scheduling.ticket import Ticket


class Leases:
    """Owned by one scheduler. Capacity is zero until an engine is ready."""

    def __init__(self) -> None:
        self.budget = Budget(0)
        self.slots = 0
        self.slots_used = 0

    @property
    def free_slots(self) -> int:
        return self.slots - self.slots_used

    def set_capacity(self, info: EngineInfo | None) -> None:
        self.slots = 0 if info is None else info.slots
        self.budget.limit_bytes = 0 if info is None else info.kv_budget_bytes

    def take(self, ticket: Ticket, now: float) -> None:
        """A slot, and what it lacks of its reservation."""
        assert not ticket.holds_slot
        assert self.free_slots > 0
        ticket.holds_slot = True
        ticket.slot_since = now
        self.slots_used += 1
        self.budget.reserve(ticket.lacks_bytes)
        ticket.reserved_bytes = ticket.reserve_bytes

    def free_slot(self, ticket: Ticket, now: float) -> None:
        if ticket.holds_slot:
            ticket.holds_slot = False
            ticket.slot_seconds += now - ticket.slot_since
            self.slots_used -= 1

    def shrink(self, ticket: Ticket, keeps_bytes: int) -> None:
        """Its reservation, to no more than that."""
        spare_bytes = max(0, ticket.reserved_bytes - keeps_bytes)
        self.budget.release(spare_bytes)
        ticket.reserved_bytes -= spare_bytes

    def give_back(self, ticket: Ticket, now: float) -> None:
        """Everything it holds; a second call finds nothing left to give."""
        self.free_slot(ticket, now)
        self.shrink(ticket, 0)
