"""How the tokens' vectors of a text become one: sentence-transformers' poolings, dense layers.

Arithmetic alone, on whole batches. Does NOT know where the numbers come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.models.embedding.settings import Activation, Pooling

Floats = NDArray[np.float32]
Mask = NDArray[np.int64]


def pool(hidden: Floats, mask: Mask, poolings: Sequence[Pooling]) -> Floats:
    """`hidden` [texts, tokens, size], `mask` [texts, tokens]: 1 up to a text's end, then 0.

    [texts, size x poolings]. What padding holds counts for nothing, not even if it is not finite.
    """
    kept = np.where(mask[:, :, None] != 0, hidden, np.float32(0))
    parts = [_POOLINGS[name](kept, mask) for name in poolings]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _cls(kept: Floats, mask: Mask) -> Floats:
    found: Floats = kept[:, 0]
    return found


def _last(kept: Floats, mask: Mask) -> Floats:
    ends = mask.sum(axis=1) - 1
    found: Floats = kept[np.arange(len(kept)), ends]
    return found


def _max(kept: Floats, mask: Mask) -> Floats:
    found: Floats = np.where(mask[:, :, None] != 0, kept, np.float32(-1e9)).max(axis=1)
    return found


def _mean(kept: Floats, mask: Mask) -> Floats:
    found: Floats = _sum(kept) / _counts(mask)
    return found


def _mean_sqrt_len(kept: Floats, mask: Mask) -> Floats:
    found: Floats = (_sum(kept) / np.sqrt(_counts(mask))).astype(np.float32)
    return found


def _weighted_mean(kept: Floats, mask: Mask) -> Floats:
    places = np.arange(1, mask.shape[1] + 1, dtype=np.float32)
    weights = (mask * places).astype(np.float32)
    found: Floats = _sum(kept * weights[:, :, None]) / weights.sum(axis=1, keepdims=True)
    return found


def _sum(kept: Floats) -> Floats:
    found: Floats = kept.sum(axis=1, dtype=np.float32)
    return found


def _counts(mask: Mask) -> Floats:
    found: Floats = mask.sum(axis=1, keepdims=True).astype(np.float32)
    return found


_POOLINGS: Final[dict[Pooling, Callable[[Floats, Mask], Floats]]] = {
    "cls": _cls,
    "last": _last,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len": _mean_sqrt_len,
    "weighted_mean": _weighted_mean,
}


@dataclass(frozen=True, slots=True, eq=False)
class DenseLayer:
    """`weight` [out, in], `bias` [out]."""

    weight: Floats
    bias: Floats
    activation: Activation

    def apply(self, vectors: Floats) -> Floats:
        found: Floats = vectors @ self.weight.T + self.bias
        return np.tanh(found) if self.activation == "tanh" else found


def normalized(vector: Floats) -> Floats:
    """Of unit length, or as it is where it has none. In double precision, so nothing overflows."""
    wide = vector.astype(np.float64)
    length = float(np.linalg.norm(wide))
    return vector if length == 0 else (wide / length).astype(np.float32)
