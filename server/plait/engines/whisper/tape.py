"""The samples a stream still needs, by their place in it, and when each of them arrived.

Bounded by its user: everything before `drop_before` is gone, and the arrivals with it. Does NOT
know why samples are kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

import numpy as np

from plait.engines.whisper.words import SAMPLE_RATE, Floats

_FIRST_CAPACITY = 4 * SAMPLE_RATE
QUIET_GRAIN_SAMPLES = SAMPLE_RATE // 50
ARRIVAL_GRAIN_SAMPLES = SAMPLE_RATE // 50  # arrivals closer than this count as one


class Tape:
    """Positions are samples from the stream's beginning; `begin` and `end` bound what is held."""

    def __init__(self) -> None:
        self._held = np.zeros(_FIRST_CAPACITY, np.float32)
        self._length = 0
        self.begin = 0

    @property
    def end(self) -> int:
        return self.begin + self._length

    def append(self, samples: Floats) -> None:
        needed = self._length + len(samples)
        if needed > len(self._held):
            grown = np.zeros(max(needed, 2 * self._length, _FIRST_CAPACITY), np.float32)
            grown[: self._length] = self._held[: self._length]
            self._held = grown
        self._held[self._length : needed] = samples
        self._length = needed

    def copy(self, begin: int, end: int) -> Floats:
        return self._held[begin - self.begin : end - self.begin].copy()

    def view(self, begin: int, end: int) -> Floats:
        """Valid until the next `append` or `drop_before`."""
        return self._held[begin - self.begin : end - self.begin]

    def drop_before(self, position: int) -> None:
        gone = min(position, self.end) - self.begin
        if gone <= 0:
            return
        kept = self._length - gone
        source = self._held[gone : self._length]
        if len(self._held) > _FIRST_CAPACITY and kept < len(self._held) // 4:
            self._held = np.zeros(max(_FIRST_CAPACITY, 2 * kept), np.float32)
        self._held[:kept] = source
        self._length = kept
        self.begin += gone


def quietest(samples: Floats) -> int:
    """The middle of the quietest 20 ms of `samples`: where a cut hurts least."""
    grains = len(samples) // QUIET_GRAIN_SAMPLES
    if grains == 0:
        return len(samples) // 2
    parts = samples[: grains * QUIET_GRAIN_SAMPLES].reshape(grains, QUIET_GRAIN_SAMPLES)
    return (
        int(np.square(parts).sum(axis=1).argmin()) * QUIET_GRAIN_SAMPLES + QUIET_GRAIN_SAMPLES // 2
    )


class Arrivals:
    """When audio arrived, to 20 ms of audio; `now` in monotonic seconds, never decreasing."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque()  # what was dropped before is pruned

    def __len__(self) -> int:
        return len(self._marks)

    def note(self, position: int, now: float) -> None:
        """Everything before `position` is here at `now`."""
        previous = self._marks[-2][0] if len(self._marks) > 1 else 0
        if self._marks and position - previous < ARRIVAL_GRAIN_SAMPLES:
            self._marks[-1] = (position, now)
        else:
            self._marks.append((position, now))

    def at(self, position: int) -> float:
        """When the audio up to `position` was all here; 0 before there was any."""
        if not self._marks:
            return 0.0
        index = bisect_left(self._marks, position, key=lambda mark: mark[0])
        return self._marks[min(index, len(self._marks) - 1)][1]

    def drop_before(self, position: int) -> None:
        while len(self._marks) > 1 and self._marks[0][0] < position:
            self._marks.popleft()
