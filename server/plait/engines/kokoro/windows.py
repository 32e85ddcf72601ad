"""Which frames of an utterance are computed together: a small first window, then larger ones.

A pure function of the utterance's length, so that nobody else's load changes a byte of its audio.
Windows tile the spoken frames exactly. Each is computed with CONTEXT frames on both sides, which
the generator looks at and which are thrown away. Frames are of x: 80 per second. Does NOT know the
model or samples.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTEXT = 8  # frames on each side that a frame's spectrum depends on
FIRST = 8
GROWTH = 2
LARGEST = 80
SHORTEST = 8  # a shorter rest is computed with the window before it


@dataclass(frozen=True, slots=True)
class Window:
    """Frames `[start, stop)` are wanted."""

    start: int
    stop: int

    @property
    def left(self) -> int:
        """The first frame that is looked at; may lie before the utterance."""
        return self.start - CONTEXT

    @property
    def right(self) -> int:
        """The end of what is looked at; may lie behind the utterance."""
        return self.stop + CONTEXT


def plan_windows(first: int, last: int) -> tuple[Window, ...]:
    """Windows over frames `[first, last)`, in order."""
    assert first < last
    windows = []
    start, size = first, FIRST
    while start < last:
        stop = start + size
        if last - stop < SHORTEST:
            stop = last
        windows.append(Window(start, stop))
        start, size = stop, min(LARGEST, size * GROWTH)
    return tuple(windows)
