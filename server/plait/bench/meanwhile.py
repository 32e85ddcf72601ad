"""How far a benchmark is, on stderr: a bar on a terminal, plain lines elsewhere (nohup, CI).

Does NOT know what is counted.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

PLAIN_SECONDS = 30.0
PLAIN_PARTS = 10

Advance = Callable[[int], None]


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """To be called with the steps that were done, of `total`, in the block."""
    if not sys.stderr.isatty():
        yield PlainLines(what, total, sys.stderr)
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


class PlainLines:
    """ "requests 12/48": at the start, at each tenth, and where that takes long, all 30 s."""

    def __init__(
        self, what: str, total: int, output: TextIO, clock: Callable[[], float] = monotonic
    ) -> None:
        self._what, self._total = what, total
        self._output, self._clock = output, clock
        self._done = 0
        self._say()

    def __call__(self, steps: int) -> None:
        before, self._done = self._part(), self._done + steps
        if self._part() != before or self._clock() - self._said_at >= PLAIN_SECONDS:
            self._say()

    def _part(self) -> int:
        return PLAIN_PARTS * self._done // max(1, self._total)

    def _say(self) -> None:
        self._said_at = self._clock()
        with contextlib.suppress(OSError):  # nobody reads it any more: the figures matter
            self._output.write(f"{self._what} {self._done}/{self._total}\n")
            self._output.flush()
