"""What speech sounds like, coarsely: 20 columns a second of 16 mel bands, whole decibels.

Coarse enough that another CPU, library or seed of the source noise hardly changes it, and fine
enough that no two sentences look alike (test_speech_heard.py has both numbers). Does NOT know
where audio comes from, nor what distance is still good.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 24_000
BANDS = 16
HOP = SAMPLE_RATE // 20
FRAME = 2048
LOWEST_HERTZ, HIGHEST_HERTZ = 100.0, 8000.0
FLOOR_DB = -80  # of full scale; what is quieter is silence
AUDIBLE_DB = -55  # cells below this on both sides are not compared

Fingerprint = NDArray[np.int8]


def fingerprint(samples: NDArray[np.int16]) -> Fingerprint:
    """Samples [N], 24 kHz -> [columns, BANDS], in dB of full scale."""
    padded = np.pad(samples.astype(np.float64) / 32768, FRAME // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(FRAME))) ** 2
    bands = power @ _mel_filters() / (FRAME / 4) ** 2
    decibels = 10 * np.log10(bands + 10 ** (FLOOR_DB / 10))
    return np.clip(np.round(decibels), FLOOR_DB, 0).astype(np.int8)


def distance_db(one: Fingerprint, other: Fingerprint) -> float:
    """Mean difference of audible cells, the shorter one stretched to the longer one's length."""
    columns = max(len(one), len(other))
    a, b = (_stretch(each.astype(np.float64), columns) for each in (one, other))
    audible = np.maximum(a, b) > AUDIBLE_DB
    a, b = np.maximum(a, AUDIBLE_DB), np.maximum(b, AUDIBLE_DB)
    return float(np.abs(a - b)[audible].mean()) if audible.any() else 0.0


def pack(print_: Fingerprint) -> str:
    return base64.b85encode(zlib.compress(print_.tobytes(), 9)).decode()


def unpack(packed: str) -> Fingerprint:
    raw = zlib.decompress(base64.b85decode(packed))
    return np.frombuffer(raw, np.int8).reshape(-1, BANDS)


def _stretch(cells: NDArray[np.float64], columns: int) -> NDArray[np.float64]:
    if len(cells) == columns:
        return cells
    places = np.linspace(0, len(cells) - 1, columns)
    known = np.arange(len(cells))
    return np.stack([np.interp(places, known, cells[:, band]) for band in range(BANDS)], axis=1)


def _mel_filters() -> NDArray[np.float64]:
    """[FRAME // 2 + 1, BANDS] of triangles."""
    mels = np.linspace(_mel(LOWEST_HERTZ), _mel(HIGHEST_HERTZ), BANDS + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    hertz = np.fft.rfftfreq(FRAME, 1 / SAMPLE_RATE)[:, None]
    rising = (hertz - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - hertz) / np.diff(edges)[1:]
    filters: NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling))
    return filters


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))
