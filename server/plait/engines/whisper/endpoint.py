"""Where speech begins and ends, from one probability per frame: a state machine without audio.

Speech begins once enough frames in a row are speech, at the first of them; it ends when the last
of them is `silence_samples` ago, at that last one. Between the two thresholds nothing changes
(hysteresis). Positions are samples from the stream's beginning. Does NOT know text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plait.engines.whisper.detector import FRAME_SAMPLES

HYSTERESIS = 0.15  # Silero's own: speech goes on down to that much below the threshold
LEAST_PROBABILITY = 0.05
STARTING_FRAMES = 5  # 160 ms of speech: shorter is a click or a breath
LAST_FRAMES = 2  # enough where the audio ends


@dataclass(frozen=True, slots=True)
class Turn:
    """Speech `started` or `stopped` at that sample."""

    kind: Literal["started", "stopped"]
    at: int


class Endpointer:
    def __init__(self, threshold: float, silence_samples: int) -> None:
        self._threshold = threshold
        self._low = max(LEAST_PROBABILITY, threshold - HYSTERESIS)
        self._silence_samples = silence_samples
        self.position = 0
        """Samples judged so far."""
        self.voiced_to = 0
        """Where the newest frame that was speech ends."""
        self.speaking = False
        self._run_from = 0
        self._run = 0

    @property
    def undecided_from(self) -> int:
        """What lies before this, and is no speech yet, will never be."""
        return self._run_from if self._run else self.position

    def judge(self, probability: float) -> Turn | None:
        """The next frame."""
        begin, self.position = self.position, self.position + FRAME_SAMPLES
        if self.speaking:
            return self._go_on(probability)
        if probability >= self._threshold:
            self._run_from = begin if self._run == 0 else self._run_from
            self._run += 1
            self.voiced_to = self.position
        elif probability < self._low:
            self._run = 0
        return self._start() if self._run >= STARTING_FRAMES else None

    def finish(self, total_samples: int) -> list[Turn]:
        """No more frames: of speech that has begun the end, also if it was hardly a word."""
        turns = [self._start()] if not self.speaking and self._run >= LAST_FRAMES else []
        if self.speaking:
            turns.append(self._stop(min(self.voiced_to, total_samples)))
        return turns

    def _go_on(self, probability: float) -> Turn | None:
        if probability >= self._low:
            self.voiced_to = self.position
        elif self.position - self.voiced_to >= self._silence_samples:
            return self._stop(self.voiced_to)
        return None

    def _start(self) -> Turn:
        self.speaking = True
        return Turn("started", self._run_from)

    def _stop(self, at: int) -> Turn:
        self.speaking = False
        self._run = 0
        return Turn("stopped", at)
