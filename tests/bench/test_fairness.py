"""Short chats beside a flood: arithmetic and the verdict."""

from __future__ import annotations

from plait.bench.fairness import Pair, Plan, Result
from plait.bench.fairness_report import fairness_record, fairness_table, fairness_targets

PLAN = Plan("scripted", slots=4, flood=8, words=900, rounds=1, chats=2)


def test_the_ratio_is_the_median_of_pairs_so_that_a_busy_moment_of_the_machine_counts_once() -> (
    None
):
    pairs = [Pair([10.0], [20.0]), Pair([100.0], [300.0]), Pair([10.0], [500.0])]

    assert Result(pairs).ratio == 3.0


def test_waiting_for_a_long_chat_to_end_misses_the_bound() -> None:
    soon, late = Result([Pair([100.0], [1400.0])]), Result([Pair([100.0], [1600.0])])

    assert [fairness_targets(result, PLAN)[0].met for result in (soon, late)] == [True, False]


def test_nothing_measured_is_no_verdict() -> None:
    assert fairness_targets(Result(), PLAN)[0].met is None


def test_the_record_holds_every_chat_and_the_table_both_sides() -> None:
    result = Result([Pair([1.0, 2.0], [3.0, 4.0])], flood_tokens=50, flood_seconds=10.0)

    record = fairness_record(result, PLAN)

    assert record["pairs"] == [{"alone_ms": [1.0, 2.0], "beside_ms": [3.0, 4.0]}]
    assert (record["flood_tokens_per_second"], record["ratio"]) == (5.0, 2.0)
    assert {len(cells) for _, cells in fairness_table(result, PLAN).rows} == {2}
