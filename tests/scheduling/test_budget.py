"""Memory arithmetic."""

from __future__ import annotations

import pytest

from plait.errors import ResourceNotAvailable
from plait.scheduling.budget import Budget


def test_reserving_and_releasing_are_exact() -> None:
    budget = Budget(100)
    budget.reserve(70)
    assert budget.available_bytes == 30
    budget.release(70)
    assert budget.reserved_bytes == 0


def test_more_than_the_whole_budget_is_refused_with_the_numbers_even_when_empty() -> None:
    with pytest.raises(ResourceNotAvailable) as caught:
        Budget(100).check_can_ever_fit("m", 101)
    assert caught.value.data == {"model": "m", "required_bytes": 101, "available_bytes": 100}


def test_overbooking_is_our_own_mistake() -> None:
    budget = Budget(100, reserved_bytes=60)
    with pytest.raises(AssertionError):
        budget.reserve(41)
    with pytest.raises(AssertionError):
        budget.release(61)
