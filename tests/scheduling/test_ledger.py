"""The account book of memory."""

from __future__ import annotations

import pytest

from plait.errors import ResourceNotAvailable
from plait.scheduling.ledger import Ledger


def test_models_and_streams_count_and_kept_prefixes_only_apart() -> None:
    ledger = Ledger(1000)
    ledger.charge_model("m", 400)
    ledger.take("a", machine_bytes=50, app_bytes=150)
    ledger.charge_cache("m", 70)
    assert (ledger.used_bytes, ledger.room_bytes, ledger.cache_bytes) == (450, 550, 70)
    assert ledger.app_used_bytes("a") == 150


def test_everything_given_back_leaves_no_entry() -> None:
    ledger = Ledger(1000, {"a": 200})
    ledger.take("a", machine_bytes=50, app_bytes=150)
    ledger.take("s-1", machine_bytes=5, app_bytes=5)
    assert ledger.app_rooms() == {"a": 50}
    ledger.give_back("a", machine_bytes=50, app_bytes=150)
    ledger.give_back("s-1", machine_bytes=5, app_bytes=5)
    assert (ledger.used_bytes, ledger.app_rooms()) == (0, {"a": 200})
    assert ledger.app_used_bytes("s-1") == 0


def test_giving_back_more_than_was_taken_is_our_own_mistake() -> None:
    ledger = Ledger(1000)
    ledger.take("a", machine_bytes=5, app_bytes=5)
    with pytest.raises(AssertionError):
        ledger.give_back("a", machine_bytes=6, app_bytes=5)
    with pytest.raises(AssertionError):
        ledger.give_back("a", machine_bytes=5, app_bytes=6)


def test_who_asked_earlier_keeps_its_bytes_from_those_behind() -> None:
    ledger = Ledger(1000)
    ledger.holds = {"first": 300, "second": 100}
    rooms = [ledger.room_bytes_for(name) for name in ("first", "second", "third")]
    assert rooms == [1000, 700, 600]


def test_what_can_never_fit_is_said_with_the_numbers() -> None:
    ledger = Ledger(1000, {"a": 50})
    ledger.charge_model("m", 400)
    with pytest.raises(ResourceNotAvailable) as machine:
        ledger.check_can_ever_fit("m", "b", machine_bytes=601, app_bytes=601)
    with pytest.raises(ResourceNotAvailable) as app:
        ledger.check_can_ever_fit("m", "a", machine_bytes=51, app_bytes=51)
    assert machine.value.data == {"model": "m", "required_bytes": 601, "available_bytes": 600}
    assert app.value.data == {"model": "m", "required_bytes": 51, "available_bytes": 50}


def test_those_who_wait_hear_when_something_came_free_and_only_then() -> None:
    ledger, heard = Ledger(1000), []
    ledger.on_freed = lambda: heard.append(ledger.room_bytes)
    ledger.charge_model("m", 400)
    ledger.take("a", machine_bytes=100, app_bytes=100)
    assert heard == []
    ledger.give_back("a", machine_bytes=100, app_bytes=100)
    ledger.charge_model("m", 0)
    assert heard == [600, 1000]
