"""An interruption is one line and exit code 130, from the first moment that code of ours runs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from plait import __main__ as entry, cli, exits

INTERRUPTIONS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
ONE_LINE = "plait: interrupted; nothing half-made was left behind.\n"


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """As Python starts; what the tests find is put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class InterruptedImport(ModuleType):
    """A module during whose import the process is sent a signal."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__("plait.cli")
        self.__path__: list[str] = []
        self._number = number

    def __getattr__(self, name: str) -> object:
        os.kill(os.getpid(), self._number)
        return None


@INTERRUPTIONS
def test_while_the_command_line_is_imported(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "plait.cli", InterruptedImport(number))

    assert entry.main() == exits.EXIT_INTERRUPTED

    assert capsys.readouterr().err == ONE_LINE


@INTERRUPTIONS
def test_while_the_benchmarks_are_imported(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_parser", lambda **_: os.kill(os.getpid(), number))

    assert cli.main(["bench", "cancel"]) == exits.EXIT_INTERRUPTED

    assert capsys.readouterr().err == ONE_LINE


def test_a_server_that_is_ended_before_it_serves_was_stopped_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_parser", lambda **_: os.kill(os.getpid(), signal.SIGTERM))

    assert cli.main(["serve"]) == exits.EXIT_OK

    assert capsys.readouterr().out == "Stopped.\n"
