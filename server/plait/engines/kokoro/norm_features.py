"""What is known about an utterance before Kokoro's generator runs, in a few numbers.

Used by the predictor of the norms' statistics and by its calibration, which must agree. Every
feature is an average over the utterance, so its length matters little. Finite for any finite
input. Does NOT know what is predicted from them.
"""

from __future__ import annotations

import numpy as np

from plait.engines.kokoro.model import Floats

SLOPE = np.float32(0.1)  # of the leaky rectifier before the first upsampling
VOICED_ABOVE_HZ = 10.0
PITCHES = 12  # bins of the pitch histogram, over
LOWEST_HZ, HIGHEST_HZ = 70.0, 480.0
STYLE = 128  # of a voice's 256 numbers the first half shapes the sound
FRAMES_PER_SECOND = 80
_CENTERS = np.linspace(np.log(LOWEST_HZ), np.log(HIGHEST_HZ), PITCHES).astype(np.float32)
_TYPICAL_PITCH = np.log(np.float32(180.0))


def features(x: Floats, f0: Floats, style: Floats) -> dict[str, Floats]:
    """x [512, T], f0 [T] in Hz, style [256] -> level, loudness [512], pitch [13], shape [8],
    style [128]."""
    activated = np.maximum(x, SLOPE * x)
    level = activated.mean(axis=1)
    power = np.square(activated - level[:, None]).mean(axis=1)
    return {
        "level": level,
        "loudness": 0.5 * np.log(power + 1e-6),
        "pitch": _pitch_histogram(f0),
        "shape": _shape(f0),
        "style": style[:STYLE],
    }


def _log_pitch(f0: Floats) -> Floats:
    """Of the voiced frames; one typical value when there are none."""
    voiced = f0[f0 > VOICED_ABOVE_HZ]
    return np.log(voiced) if len(voiced) else np.array([_TYPICAL_PITCH], np.float32)


def _pitch_histogram(f0: Floats) -> Floats:
    """Share of frames near each pitch, in soft bins, and last the share without voice."""
    voiced = f0 > VOICED_ABOVE_HZ
    away = (np.log(np.maximum(f0, 1))[:, None] - _CENTERS) / (_CENTERS[1] - _CENTERS[0])
    near = np.exp(-0.5 * away**2) * voiced[:, None]
    return np.append(near.mean(axis=0), 1 - voiced.mean()).astype(np.float32)


def _shape(f0: Floats) -> Floats:
    """Voicing, pitch and length."""
    voiced = f0 > VOICED_ABOVE_HZ
    pitch = _log_pitch(f0)
    changes = np.count_nonzero(voiced[1:] != voiced[:-1])
    low, high = np.percentile(pitch, [10, 90])
    frames = len(f0)
    numbers = [
        voiced.mean(), pitch.mean(), pitch.std(), np.log(frames), 100 / frames,
        changes * FRAMES_PER_SECOND / frames, low, high,
    ]  # fmt: skip
    return np.array(numbers, np.float32)
