"""Quantiles are observed values; a histogram's quantile is known by its bucket."""

from __future__ import annotations

import math

import pytest

from plait.bench.figures import Metrics, Spread, histogram_bounds


def lag_page(**buckets: float) -> Metrics:
    """`le` edges as b<ms>; `binf` is +Inf."""
    return {
        (
            "lag_bucket",
            frozenset({("le", "+Inf" if name == "binf" else str(int(name[1:]) / 1000))}),
        ): value
        for name, value in buckets.items()
    }


def test_quantiles_are_the_nearest_ranks() -> None:
    spread = Spread.of(range(1, 101))

    assert spread == Spread(count=100, p50=50, p95=95, p99=99, max=100)


def test_the_p99_of_few_samples_is_the_worst_of_them() -> None:
    spread = Spread.of([3.0, 1.0, 2.0])

    assert spread is not None
    assert (spread.p50, spread.p99) == (2.0, 3.0)


def test_there_is_no_spread_of_nothing() -> None:
    assert Spread.of([]) is None


def test_only_what_was_observed_in_between_counts() -> None:
    before = lag_page(b1=0, b10=500, binf=500)
    after = lag_page(b1=100, b10=600, binf=600)

    assert histogram_bounds(before, after, "lag", 0.99) == (0.0, 0.001)


@pytest.mark.parametrize(
    ("share", "bounds"), [(0.5, (0.0, 0.001)), (0.99, (0.001, 0.01)), (1.0, (0.01, math.inf))]
)
def test_a_histogram_quantile_lies_in_a_bucket(share: float, bounds: tuple[float, float]) -> None:
    after = lag_page(b1=600, b10=990, binf=1000)

    assert histogram_bounds({}, after, "lag", share) == bounds


def test_a_histogram_that_did_not_grow_has_no_quantile() -> None:
    page = lag_page(b1=5, binf=5)

    assert histogram_bounds(page, page, "lag", 0.99) is None
