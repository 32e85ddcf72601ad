"""The filters that turn a spectrum into Whisper's mel bands.

Triangles on Slaney's scale (linear below 1 kHz, logarithmic above), each of unit area: what
OpenAI's mel_filters.npz holds, computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SAMPLE_RATE_HZ = 16_000
_WINDOW_SAMPLES = 400
_LINEAR_HZ_PER_MEL = 200 / 3
_CORNER_HZ = 1000
_CORNER_MEL = _CORNER_HZ / _LINEAR_HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27


def mel_filters(bands: int) -> NDArray[np.float32]:
    """float32 [bands, 201], over 0 to 8 kHz."""
    top = _CORNER_MEL + np.log(_SAMPLE_RATE_HZ / 2 / _CORNER_HZ) / _LOG_STEP
    edges = _hz(np.linspace(0, top, bands + 2))
    slopes = edges[:, None] - np.fft.rfftfreq(_WINDOW_SAMPLES, 1 / _SAMPLE_RATE_HZ)[None]
    widths = np.diff(edges)[:, None]
    rising, falling = -slopes[:-2] / widths[:-1], slopes[2:] / widths[1:]
    heights = 2 / (edges[2:] - edges[:-2])[:, None]
    # Rounded before it is scaled, as librosa did: the same bits as OpenAI's.
    filters = np.maximum(0.0, np.minimum(rising, falling) + 0.0).astype(np.float32)
    filters *= heights
    return filters


def _hz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    above: NDArray[np.float64] = _CORNER_HZ * np.exp(_LOG_STEP * (mels - _CORNER_MEL))
    return np.where(mels < _CORNER_MEL, mels * _LINEAR_HZ_PER_MEL, above)
