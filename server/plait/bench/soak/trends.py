"""How fast a figure grows over a long run: a slope that outliers cannot move, and how sure it is.

Pure. The slope is Theil's and Sen's (the median of those between all pairs), its interval Sen's
(95 %). Neighbouring samples of memory are alike, which an interval for independent ones takes for
certainty: so medians of blocks are compared, not samples. Does NOT know what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

BLOCKS = 24
LEAST_BLOCKS = 6
Z_95 = 1.96


@dataclass(frozen=True, slots=True)
class Slope:
    """Per unit of time, with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def below(self, bound: float) -> bool | None:
        """None: the run was too short, or too uneven, to tell."""
        if self.high <= bound:
            return True
        return False if self.low > bound else None


def slope_of(times: Sequence[float], values: Sequence[float]) -> Slope | None:
    """None with too few samples."""
    blocks = _blocks(list(zip(times, values, strict=True)))
    if len(blocks) < LEAST_BLOCKS:
        return None
    slopes = sorted((y2 - y1) / (t2 - t1) for (t1, y1), (t2, y2) in combinations(blocks, 2))
    n, pairs = len(blocks), len(slopes)
    reach = Z_95 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, math.floor((pairs - reach) / 2))
    high = min(pairs - 1, math.ceil((pairs + reach) / 2))
    return Slope(median(slopes), slopes[low], slopes[high])


def second_half(times: Sequence[float]) -> int:
    """Index of the first sample of the second half of the time."""
    middle = (times[0] + times[-1]) / 2 if times else 0.0
    return sum(time < middle for time in times)


def _blocks(samples: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """(time, value), both medians; at most BLOCKS, in the order of time."""
    size = max(1, math.ceil(len(samples) / BLOCKS))
    parts = [samples[at : at + size] for at in range(0, len(samples), size)]
    return [(median(t for t, _ in part), median(v for _, v in part)) for part in parts]
