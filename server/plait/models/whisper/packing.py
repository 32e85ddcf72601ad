"""How a tensor's values are laid down in a ggml file: float32, float16, or Q8_0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.models.whisper.tensors import F32, Q8_0, TensorKind


def packed(array: NDArray[Any], kind: TensorKind) -> bytes:
    """`array` as `kind`, which is one of F32, F16 and Q8_0 (then rows are whole blocks)."""
    if kind is Q8_0:
        return _quantized(array.astype(np.float32))
    return array.astype("<f4" if kind is F32 else "<f2").tobytes()


def _quantized(array: NDArray[np.float32]) -> bytes:
    """Blocks of 32 values: a float16 scale, then each value as a multiple of it, -127 to 127."""
    blocks = array.reshape(-1, Q8_0.block)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    steps = np.round(blocks / np.where(scales == 0, np.float32(1), scales)).astype(np.int8)
    return np.concatenate([scales.astype("<f2").view(np.int8), steps], axis=1).tobytes()
