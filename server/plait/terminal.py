"""What the command line shows: results, errors, and progress (a bar, or plain lines in a log).

Progress and errors go to stderr, so that stdout holds results only. rich is imported with the first
bar, not before: most commands never need it. Does NOT know: what makes progress.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress, TaskID

Progress = Callable[[str, float], None]

PHASES = {
    "download": "Downloading",
    "unpack": "Unpacking",
    "convert": "Converting",
    "verify": "Verifying",
    "wait": "Waiting for another plait that is installing",
}
_PLAIN_STEP_PERCENT = 25


def say(text: str) -> None:
    """One result, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def fail(message: str, code: int) -> int:
    """Say what went wrong and what to do; returns the exit code."""
    sys.stderr.write(f"plait: {message}\n")
    return code


@contextmanager
def progress_display(subject: str, output: TextIO | None = None) -> Iterator[Progress]:
    """A callable (phase, percent) that shows progress about `subject` until the block ends."""
    output = sys.stderr if output is None else output
    if not output.isatty():
        yield _PlainLines(subject, output)
        return
    bars = _Bars(subject)
    try:
        yield bars
    finally:
        bars.close()


class _PlainLines:
    """One line at the start of a phase and at every quarter of it: readable in a log."""

    def __init__(self, subject: str, output: TextIO) -> None:
        self._subject = subject
        self._output = output
        self._phase = ""
        self._next_percent = 0.0

    def __call__(self, phase: str, percent: float) -> None:
        if phase != self._phase:
            self._phase, self._next_percent = phase, 0.0
        if percent >= self._next_percent:
            self._next_percent = percent // _PLAIN_STEP_PERCENT * _PLAIN_STEP_PERCENT
            self._next_percent += _PLAIN_STEP_PERCENT
            self._output.write(f"{PHASES.get(phase, phase)} {self._subject}: {int(percent)} %\n")
            self._output.flush()


class _Bars:
    """One rich bar per phase; starts drawing with the first report, so that nothing to do is
    nothing to see."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._display: RichProgress | None = None
        self._bars: dict[str, TaskID] = {}

    def __call__(self, phase: str, percent: float) -> None:
        if self._display is None:
            self._display = _start_display()
        if phase not in self._bars:
            text = f"{PHASES.get(phase, phase)} {self._subject}"
            total = None if phase == "wait" else 100
            self._bars[phase] = self._display.add_task(text, total=total)
        self._display.update(self._bars[phase], completed=percent)

    def close(self) -> None:
        if self._display is not None:
            self._display.stop()


def _start_display() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    display = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    display.start()
    return display
