"""What tickets hold of one engine and of the machine, and that each is given back once.

Slots and KV bytes are the engine's, booked here; what they take of the machine's memory and of
their app's is booked in the shared ledger at the same moment. Pure bookkeeping: it neither decides
(see `admission`) nor talks to the engine.
"""

from __future__ import annotations

from collections import Counter

from plait.engines.base import EngineInfo
from plait.errors import PlaitError
from plait.scheduling.admission import Capacity
from plait.scheduling.budget import Budget
from plait.scheduling.ledger import Ledger, not_available
from plait.scheduling.ticket import Ticket


class Leases:
    """Owned by one scheduler. Capacity is zero until an engine is ready."""

    def __init__(self, model: str, ledger: Ledger) -> None:
        self.budget = Budget(0)
        self.slots = 0
        self.seated: dict[int, Ticket] = {}  # by job: who holds a slot
        self.halted = False  # the machine itself is short: nothing new is granted
        self._model = model
        self._ledger = ledger
        self._kv_freed = True
        self._holders: set[int] = set()  # jobs
        self._largest_kv_bytes = 0

    @property
    def slots_used(self) -> int:
        return len(self.seated)

    @property
    def free_slots(self) -> int:
        return self.slots - self.slots_used

    @property
    def held(self) -> bool:
        """A stream holds something, be it only its buffers."""
        return bool(self._holders)

    @property
    def largest_bytes(self) -> int:
        """Of the machine, beside its buffers: the most that one stream asked for so far, of what it
        may ever get."""
        return self._machine_bytes(self._largest_kv_bytes, 0)

    @property
    def capacity(self) -> Capacity:
        """What may be granted now."""
        return Capacity(
            self.free_slots,
            self.budget.available_bytes,
            self._ledger.room_bytes_for(self._model),
            self._ledger.app_rooms(),
            Counter(ticket.owner for ticket in self.seated.values()),
            self._kv_freed,
            self.halted,
            self._model,
        )

    def set_capacity(self, info: EngineInfo | None) -> None:
        self.slots = 0 if info is None else info.slots
        self.budget.limit_bytes = 0 if info is None else info.kv_budget_bytes
        if info is not None:
            self._kv_freed = info.kv_kind == "freed"

    def check_can_ever_fit(self, ticket: Ticket) -> None:
        """Raises ResourceNotAvailable, with the numbers, when waiting would be in vain."""
        self.budget.check_can_ever_fit(self._model, ticket.reserve_bytes)
        self._ledger.check_can_ever_fit(
            self._model,
            ticket.owner,
            machine_bytes=self._machine_bytes(ticket.reserve_bytes, ticket.buffer_bytes),
            app_bytes=ticket.reserve_bytes + ticket.buffer_bytes,
        )
        self._largest_kv_bytes = max(self._largest_kv_bytes, ticket.reserve_bytes)

    def lack_of(self, ticket: Ticket) -> PlaitError:
        """Why it is refused that waits for memory which nobody will give back."""
        return not_available(
            self._model,
            self._machine_bytes(ticket.lacks_bytes, ticket.lacks_buffer_bytes),
            self._ledger.room_bytes,
            "the models in use leave",
            "try again in a moment",
        )

    def take(self, ticket: Ticket, now: float) -> None:
        """A slot, its buffers, and what it lacks of its reservation."""
        assert not ticket.holds_slot
        assert self.free_slots > 0
        ticket.holds_slot = True
        ticket.slot_since = now
        self.seated[ticket.job] = ticket
        self._holders.add(ticket.job)
        kv_bytes, buffer_bytes = ticket.lacks_bytes, ticket.lacks_buffer_bytes
        self.budget.reserve(kv_bytes)
        self._ledger.take(
            ticket.owner,
            machine_bytes=self._machine_bytes(kv_bytes, buffer_bytes),
            app_bytes=kv_bytes + buffer_bytes,
        )
        ticket.reserved_bytes = ticket.reserve_bytes
        ticket.buffered_bytes = ticket.buffer_bytes

    def free_slot(self, ticket: Ticket, now: float) -> None:
        if ticket.holds_slot:
            ticket.holds_slot = False
            ticket.slot_seconds += now - ticket.slot_since
            del self.seated[ticket.job]

    def leave_seat(self, ticket: Ticket, now: float) -> None:
        """Its slot to another stream, and what of its reservation belongs to the slot."""
        self.free_slot(ticket, now)
        self.shrink(ticket, ticket.reserved_bytes - self.gives_bytes(ticket))

    def gives_bytes(self, ticket: Ticket) -> int:
        """What goes back of its reservation when another stream gets its slot."""
        return 0 if self._kv_freed else ticket.reserved_bytes

    def shrink(self, ticket: Ticket, keeps_bytes: int) -> None:
        """Its reservation, to no more than that. It keeps its buffers."""
        self._give(ticket, max(0, ticket.reserved_bytes - keeps_bytes), 0)

    def give_back(self, ticket: Ticket, now: float) -> None:
        """Everything it holds; a second call finds nothing left to give."""
        self._holders.discard(ticket.job)
        self.free_slot(ticket, now)
        self._give(ticket, ticket.reserved_bytes, ticket.buffered_bytes)

    def _give(self, ticket: Ticket, kv_bytes: int, buffer_bytes: int) -> None:
        ticket.reserved_bytes -= kv_bytes
        ticket.buffered_bytes -= buffer_bytes
        self.budget.release(kv_bytes)
        self._ledger.give_back(
            ticket.owner,
            machine_bytes=self._machine_bytes(kv_bytes, buffer_bytes),
            app_bytes=kv_bytes + buffer_bytes,
        )

    def _machine_bytes(self, kv_bytes: int, buffer_bytes: int) -> int:
        return buffer_bytes + (kv_bytes if self._kv_freed else 0)
