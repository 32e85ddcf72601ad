"""Bytes in, judged frames out: where in a stream's audio there is a voice, as soon as it is known.

What comes of a piece of audio is whole: its samples, and for each 32 ms frame that it completed
what is known since. So it can be made as audio comes, while a decode runs, and be used when that
is over, with the same result. Does NOT know text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait.engines.whisper.detector import FRAME_SAMPLES, Detector
from plait.engines.whisper.endpoint import Endpointer, Turn
from plait.engines.whisper.intake import Intake
from plait.engines.whisper.words import SAMPLE_RATE, Floats

DEFAULT_SILENCE_MS = 500


@dataclass(frozen=True, slots=True)
class Verdict:
    """The endpointer once a frame was judged; see there."""

    position: int = 0
    voiced_to: int = 0
    speaking: bool = False
    undecided_from: int = 0
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """`samples`: those that came, at 16 kHz. `received`: how many the client sent up to here,
    counted so; the resampler may hold some back."""

    samples: Floats
    received: int
    verdicts: list[Verdict]

    @property
    def turns(self) -> list[Turn]:
        return [verdict.turn for verdict in self.verdicts if verdict.turn is not None]


def silence_samples(params: Mapping[str, Any]) -> int:
    """What ends a stretch of speech."""
    return int(params.get("silence_ms", DEFAULT_SILENCE_MS)) * SAMPLE_RATE // 1000


class VoiceActivity:
    """`params`: TranscribeParams as a plain dict, defaults left out."""

    def __init__(self, params: Mapping[str, Any], detector: Detector) -> None:
        self._intake = Intake(
            params["sample_rate"], params.get("channels", 1), params.get("encoding", "pcm_s16le")
        )
        self._detector = detector
        threshold = params.get("speech_threshold", 0.5)
        self._endpointer = Endpointer(threshold, silence_samples(params))
        self._rest = np.zeros(0, np.float32)  # less than a frame

    def hear(self, data: bytes | memoryview) -> Judged:
        """More audio. Raises InvalidAudio."""
        samples = self._intake.take(data)
        return Judged(samples, self._intake.received_samples, self._judge(samples))

    def finish(self) -> Judged:
        """No more audio: the last samples, a frame of them filled up with silence."""
        samples = self._intake.finish()
        total = self._endpointer.position + len(self._rest) + len(samples)
        filled = np.pad(samples, (0, (self._endpointer.position - total) % FRAME_SAMPLES))
        verdicts = self._judge(filled)
        verdicts += [self._verdict(turn) for turn in self._endpointer.finish(total)]
        return Judged(filled, self._intake.received_samples, verdicts)

    def _judge(self, samples: Floats) -> list[Verdict]:
        samples = np.concatenate([self._rest, samples]) if len(self._rest) else samples
        whole = len(samples) - len(samples) % FRAME_SAMPLES
        frames = samples[:whole].reshape(-1, FRAME_SAMPLES)
        self._rest = samples[whole:].copy()
        return [self._verdict(self._endpointer.judge(self._detector(frame))) for frame in frames]

    def _verdict(self, turn: Turn | None) -> Verdict:
        ears = self._endpointer
        return Verdict(ears.position, ears.voiced_to, ears.speaking, ears.undecided_from, turn)
