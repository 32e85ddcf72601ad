"""Progress where there is no terminal: few plain lines that tell how far it is."""

from __future__ import annotations

import io

import pytest

from plait.bench.meanwhile import PLAIN_SECONDS, PlainLines, progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_is_told_at_the_start_and_at_each_tenth() -> None:
    said = io.StringIO()
    advance = PlainLines("requests", 40, said, Clock())

    for _ in range(9):
        advance(1)

    assert said.getvalue().splitlines() == ["requests 0/40", "requests 4/40", "requests 8/40"]


def test_where_a_tenth_takes_long_it_is_told_meanwhile() -> None:
    said, clock = io.StringIO(), Clock()
    advance = PlainLines("requests", 1000, said, clock)

    for clock.now in (1.0, PLAIN_SECONDS, PLAIN_SECONDS + 1, 2 * PLAIN_SECONDS):
        advance(1)

    assert said.getvalue().splitlines() == ["requests 0/1000", "requests 2/1000", "requests 4/1000"]


def test_off_a_terminal_there_are_no_control_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("rounds", 1) as advance:
        advance(1)

    assert capsys.readouterr().err == "rounds 0/1\nrounds 1/1\n"


def test_a_reader_who_has_left_does_not_end_the_measuring() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    PlainLines("rounds", 1, Gone())(1)
