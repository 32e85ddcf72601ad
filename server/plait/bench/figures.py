"""Arithmetic on samples: quantiles, and the 99th percentile of a Prometheus histogram's growth.

Pure. A quantile is an observed value (nearest rank), never an interpolation: with 20 samples the
p99 is the worst one, which is the honest reading. Does NOT know what the samples mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Metrics = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
"""Samples of one `/metrics` page by name and labels."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Nearest-rank quantiles of `count` samples, in the samples' own unit."""

    count: int
    p50: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of(cls, samples: Iterable[float]) -> Spread | None:
        """None without samples."""
        ordered = sorted(samples)
        if not ordered:
            return None
        p50, p95, p99 = (quantile(ordered, share) for share in (0.5, 0.95, 0.99))
        return cls(len(ordered), p50, p95, p99, ordered[-1])


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` of all samples do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def histogram_bounds(
    before: Metrics, after: Metrics, name: str, share: float
) -> tuple[float, float] | None:
    """Edges of the bucket that holds the quantile of what was observed in between: (low, high).

    In the histogram's unit; high is inf beyond its last edge. None when nothing was observed.
    """
    grown = sorted(
        (float(dict(labels)["le"]), value - before.get((sample, labels), 0.0))
        for (sample, labels), value in after.items()
        if sample == f"{name}_bucket"
    )
    if not grown or grown[-1][1] <= 0:
        return None
    needed = share * grown[-1][1]
    reached = next(index for index, (_, count) in enumerate(grown) if count >= needed)
    return (grown[reached - 1][0] if reached else 0.0), grown[reached][0]
