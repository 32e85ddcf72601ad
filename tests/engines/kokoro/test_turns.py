"""The policy of turns, on takers that only say whether they have work and are dry."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from plait.engines.kokoro.turns import DRY_STEPS, Turns


@dataclass(eq=False)
class Taker:
    name: str
    dry: bool = False
    pressed: bool = False
    has_work: bool = True
    turn_over: bool = True


@pytest.fixture
def turns() -> Turns[Taker]:
    return Turns()


def join(turns: Turns[Taker], *takers: Taker) -> None:
    for taker in takers:
        turns.join(taker)


def play(turns: Turns[Taker], steps: int) -> str:
    """The names of those who do the next units of work."""
    names = []
    for _ in range(steps):
        taker = turns.choose()
        assert taker is not None
        turns.took(taker, dry=taker.dry)
        names.append(taker.name)
    return "".join(names)


def test_turns_go_round(turns: Turns[Taker]) -> None:
    join(turns, Taker("a"), Taker("b"), Taker("c"))

    assert play(turns, 7) == "abcabca"


def test_a_turn_lasts_until_it_is_over(turns: Turns[Taker]) -> None:
    a = Taker("a", turn_over=False)
    join(turns, a, Taker("b"))

    assert play(turns, 2) == "aa"
    a.turn_over = True
    assert play(turns, 3) == "aba"


def test_who_has_no_work_is_passed_over_and_keeps_its_place(turns: Turns[Taker]) -> None:
    a = Taker("a", has_work=False)
    join(turns, a, Taker("b"), Taker("c"))

    assert play(turns, 3) == "bcb"
    a.has_work = True
    assert play(turns, 3) == "acb"


def test_the_dry_go_first_one_after_the_other(turns: Turns[Taker]) -> None:
    first, second = (Taker(name, dry=True, turn_over=False) for name in "xy")
    join(turns, Taker("a"), first, second)

    assert play(turns, 3) == "xxx"
    first.dry, first.turn_over = False, True
    assert play(turns, 2) == "yy"


def test_the_others_get_a_whole_turn_however_many_are_dry(turns: Turns[Taker]) -> None:
    a = Taker("a", turn_over=False)
    join(turns, a, Taker("x", dry=True))

    assert play(turns, DRY_STEPS + 2) == "x" * DRY_STEPS + "aa"
    a.turn_over = True
    assert play(turns, DRY_STEPS + 2) == "a" + "x" * DRY_STEPS + "a"


def test_who_has_little_left_to_hear_goes_before_who_has_more(turns: Turns[Taker]) -> None:
    rich, poor = Taker("r"), [Taker(name, pressed=True) for name in "pq"]
    join(turns, rich, *poor)

    assert play(turns, 4) == "pqpq"
    rich.pressed = True
    assert play(turns, 4) == "rpqr"


def test_the_dry_go_before_the_pressed(turns: Turns[Taker]) -> None:
    join(turns, Taker("p", pressed=True), Taker("d", dry=True, pressed=True))

    assert play(turns, 2) == "dd"


def test_there_is_no_work_when_nobody_has_any(turns: Turns[Taker]) -> None:
    a, b = Taker("a", has_work=False), Taker("b")
    join(turns, a, b)

    before = turns.any_work
    turns.leave(b)

    assert (before, turns.any_work) == (True, False)
    assert turns.choose() is None
