"""What the gateway bench makes of its samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.bench.figures import Spread
from plait.bench.gateway import charting, report
from plait.bench.gateway.costs import LoadCost, paced
from plait.bench.gateway.fanout import FanOut
from plait.bench.gateway.latency import Latency
from plait.bench.gateway.memory import Growth
from plait.bench.gateway.rates import Load, LoadRates, Round
from plait.bench.gateway.sides import Sample
from plait.bench.gateway.windows import Curve
from plait.bench.serving import BenchError


def sample(frames: int, server_cpu: float, items: int | None = None) -> Sample:
    items = frames if items is None else items
    return Sample(2.0, frames, items, server_cpu, worker_cpu=0.2, client_cpu=0.4)


def spread(value: float) -> Spread:
    return Spread(10, value, value, value, value)


def test_a_sample_is_told_per_second_and_per_cpu_second() -> None:
    measured = sample(1000, server_cpu=0.5, items=4000)
    assert measured.items_per_second == 2000
    assert measured.frames_per_cpu_second == 2000
    assert measured.items_per_cpu_second == 8000
    assert measured.cpu_us_per_item == pytest.approx(125)
    assert measured.shares == (0.25, 0.1, 0.2)


def test_ratios_are_of_a_round_and_their_median_counts() -> None:
    rates = LoadRates(Load(1, 1))
    for cpu in (0.5, 1.0, 4.0):
        rates.rounds.append(Round(sample(1000, cpu), sample(1000, 0.5), sample(1000, 1.0)))
    assert (rates.of_push, rates.of_echo) == (0.5, 1.0)
    targets = report.rate_targets([rates])
    assert [target.met for target in targets] == [True, False]


def test_a_client_that_needs_a_whole_core_is_said_to_bound_the_rate() -> None:
    busy = Sample(1.0, 10, 10, 0.5, 0.0, client_cpu=0.9)
    rates = LoadRates(Load(1, 1), [Round(busy, busy, busy)])
    assert report.rate_targets([rates])[-1].met is None


def test_the_cost_of_more_streams_is_compared_in_the_same_cycle() -> None:
    one = LoadCost(Load(1, 1), [sample(100, 0.1), sample(100, 0.2), sample(100, 0.4)])
    many = LoadCost(Load(1, 9), [sample(100, 0.2), sample(100, 0.4), sample(100, 0.4)])
    assert many.ratio_to(one) == pytest.approx(2)
    assert [target.met for target in report.cost_targets([one, many])] == [False]


def test_the_pace_of_many_streams_adds_up_to_the_rate() -> None:
    assert "step_ms=250.000" in paced(1000, 4000)


def test_added_latency_is_the_difference_in_a_round() -> None:
    result = Latency(1000, [spread(3), spread(9), spread(4)], [spread(1), spread(1), spread(3)])
    assert result.added("p99") == 2
    assert report.latency_targets(result)[0].met


def test_a_window_is_enough_from_where_all_larger_ones_bring_nothing() -> None:
    windows = (1, 2, 4, 8, 16)
    curve = Curve(20, windows, (10, 60, 40, 96, 100), (1, 2, 4, 8, 9))
    assert curve.flat_from == 8
    flat = Curve(0, windows, (100, 100, 100, 100, 100), (1, 1, 1, 1, 1))
    assert flat.flat_from == 1
    assert [target.met for target in report.window_targets([curve, flat])] == [True, True]


def test_memory_is_judged_by_what_each_more_took() -> None:
    growths = {
        "idle connection": Growth(10, 500_000, 410_000),
        "quiet stream": Growth(10, 60_000, 50_000),
    }
    assert [target.met for target in report.memory_targets(growths)] == [False, True]


def test_others_beside_a_slow_reader_are_compared_with_the_same_cycle() -> None:
    alone = FanOut("nobody slow", [100, 50], [spread(1), spread(3)])
    beside = FanOut("one acks late", [90, 45], [spread(2), spread(4)])
    assert beside.rate_ratio(alone) == pytest.approx(0.9)
    assert beside.more_ms(alone, "p99") == 1
    assert [target.met for target in report.fanout_targets([alone, beside])] == [False]


def test_a_chart_of_parts_that_none_shows_is_refused_before_they_are_measured() -> None:
    with pytest.raises(BenchError, match="nothing to draw"):
        charting.check(Path("chart.svg"), ["rate", "memory"])


def test_the_chart_shows_what_was_measured() -> None:
    cost = {"load": {"connections": 1, "streams": 10}, "cpu_us_per_item": 30.0}
    curve = {"windows": [1, 2], "rates": [5.0, 6.0], "round_trip_ms": 20}
    assert [panel.title for panel in charting.panels({"cost": [cost]})] == ["Cost of an item"]
    [panel] = charting.panels({"window": [curve]})
    assert panel.lines == {"ack 20 ms later": [5.0, 6.0]}
