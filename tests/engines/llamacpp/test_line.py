"""Whose prompt llama.cpp reads next, with values only."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pytest

pytest.importorskip("xllamacpp")

from plait.engines.llamacpp.turns import take_next


@dataclass(eq=False)
class Waiting:
    unread_tokens: int
    passed: int = 0


def test_the_shortest_prompt_is_read_first_and_equals_in_order_of_arrival() -> None:
    long, first, second = Waiting(900), Waiting(20), Waiting(20)
    line = deque([long, first, second])

    assert [take_next(line) for _ in range(3)] == [first, second, long]


def test_short_prompts_without_end_do_not_keep_a_long_one_waiting() -> None:
    long = Waiting(4096)
    line = deque([long])

    turns = 0
    while long in line:
        line.append(Waiting(1))
        take_next(line)
        turns += 1

    assert turns <= 14  # its 4096 count as nothing after 13 halvings


def test_a_turn_taken_begins_the_count_anew() -> None:
    line = deque([Waiting(100, passed=20), Waiting(1)])

    assert take_next(line).passed == 0
