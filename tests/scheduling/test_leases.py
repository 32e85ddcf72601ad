"""What is booked for the streams of one model."""

from __future__ import annotations

import pytest

from plait.engines.base import EngineInfo, Prepared
from plait.errors import ResourceNotAvailable
from plait.scheduling.leases import Leases
from plait.scheduling.ledger import Ledger
from plait.scheduling.ticket import Ticket
from tests.scheduling.test_pauses import Listener

INFO = EngineInfo("scripted", "m", ["chat"], 1, 0, 0, kv_budget_bytes=100, kv_kind="freed")


def asking(size_bytes: int) -> Ticket:
    prepared = Prepared(1, prompt_tokens=1, reserve_bytes=size_bytes, max_tokens=1)
    return Ticket(1, "a", False, Listener(), None, 0.0, prepared=prepared)


def test_what_no_stream_can_ever_get_is_not_made_room_for_when_the_model_loads_again() -> None:
    leases = Leases("m", Ledger(1000))
    leases.set_capacity(INFO)

    leases.check_can_ever_fit(asking(60))
    with pytest.raises(ResourceNotAvailable):
        leases.check_can_ever_fit(asking(101))

    assert leases.largest_bytes == 60
