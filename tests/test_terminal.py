"""Progress: lines in a log, bars on a terminal, nothing when there is nothing to do."""

from __future__ import annotations

import io

import pytest

from plait.terminal import progress_display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_per_quarter() -> None:
    log = io.StringIO()

    with progress_display("tiny", log) as progress:
        for percent in range(101):
            progress("download", percent)

    assert log.getvalue().splitlines() == [
        f"Downloading tiny: {percent} %" for percent in (0, 25, 50, 75, 100)
    ]


def test_each_phase_starts_with_a_line() -> None:
    log = io.StringIO()

    with progress_display("tiny", log) as progress:
        progress("download", 99.0)
        progress("convert", 3.0)

    assert log.getvalue() == "Downloading tiny: 99 %\nConverting tiny: 3 %\n"


def test_nothing_to_do_shows_nothing() -> None:
    terminal = Terminal()

    with progress_display("tiny", terminal):
        pass

    assert terminal.getvalue() == ""


def test_a_terminal_gets_a_bar_per_phase(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_display("[x]", Terminal()) as progress:
        progress("download", 50)
        progress("wait", 0)

    shown = capsys.readouterr().err
    assert "Downloading [x]" in shown
    assert "Waiting for another plait" in shown
