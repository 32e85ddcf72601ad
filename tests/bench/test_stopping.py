"""Stops of streams of any method: how they are measured, and the verdicts on them."""

from __future__ import annotations

from plait.bench.stopping import Cancels, cancel_record, cancel_table, cancel_targets


def test_unconfirmed_cancels_do_not_pass_for_quick_ones() -> None:
    quick, late = Cancels(4, [10.0], [12.0], [0]), Cancels(4, [10.0], [12.0, 110.0], [0], late=1)

    assert [cancel_targets(c, 30.0)[0].met for c in (quick, late)] == [True, False]


def test_slow_stops_miss_their_bound_and_none_at_all_is_no_verdict() -> None:
    slow, none = Cancels(4, [10.0, 40.0], [12.0, 42.0]), Cancels(4)

    assert [cancel_targets(c, 30.0)[0].met for c in (slow, none)] == [False, None]
    assert cancel_record(none)["stop_ms_spread"] is None
    assert {len(cells) for _, cells in cancel_table(none, "x").rows} == {1}
