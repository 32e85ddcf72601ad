"""Which frames of an utterance are computed together: a small first window, then larger ones.

A pure function of the utterance's length, so that nobody else's load changes a byte of its audio.
Windows tile the spoken frames exactly. Each is computed with neighbours on both sides, as many as
the generator looks at, and these are thrown away; at the ends of the utterance there are none.
Frames are of x: 80 per second. Does NOT know the model or samples.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTEXT = 9  # frames on each side that reach a frame's spectrum
FIRST = 16
SECOND = 24
GROWTH = 1.5
LARGEST = 80
SHORTEST = 8  # a shorter rest is computed with the window before it


@dataclass(frozen=True, slots=True)
class Window:
    """Frames `[start, stop)` are wanted, `[left, right)` are computed."""

    start: int
    stop: int
    left: int
    right: int


def plan_windows(first: int, last: int, total: int) -> tuple[Window, ...]:
    """Windows over frames `[first, last)` of an utterance of `total` frames; in order."""
    assert 0 <= first < last <= total
    windows = []
    start, size = first, FIRST
    while start < last:
        stop = start + size
        if last - stop < SHORTEST:
            stop = last
        windows.append(Window(start, stop, max(0, start - CONTEXT), min(total, stop + CONTEXT)))
        start = stop
        size = SECOND if len(windows) == 1 else min(LARGEST, int(size * GROWTH))
    return tuple(windows)
