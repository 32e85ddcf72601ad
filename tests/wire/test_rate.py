"""The token bucket, with the time passed in."""

from __future__ import annotations

from hypothesis import given, strategies as st

from plait.wire.rate import TokenBucket


def test_a_burst_passes_then_the_bucket_is_empty() -> None:
    bucket = TokenBucket(per_second=10, burst=3)
    assert [bucket.take(5.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.wait_seconds == 0.1


def test_waiting_as_told_gives_a_token() -> None:
    bucket = TokenBucket(per_second=10, burst=1)
    assert bucket.take(0.0)
    assert not bucket.take(0.0)
    assert bucket.take(bucket.wait_seconds)


def test_several_tokens_are_taken_at_once_or_not_at_all_and_never_more_than_a_burst() -> None:
    bucket = TokenBucket(per_second=1, burst=3)
    assert bucket.take(0.0, 2)
    assert not bucket.take(0.0, 2)
    assert bucket.take(2.0, 100)
    assert not bucket.take(2.0)


def test_time_going_backwards_gives_and_takes_nothing() -> None:
    bucket = TokenBucket(per_second=1, burst=1)
    assert bucket.take(100.0)
    assert not bucket.take(0.0)


@given(st.lists(st.floats(0, 1), max_size=200))
def test_never_more_than_burst_plus_rate(gaps: list[float]) -> None:
    bucket, now, taken = TokenBucket(per_second=5, burst=10), 0.0, 0
    for gap in gaps:
        now += gap
        taken += bucket.take(now)
    assert taken <= 10 + 5 * now + 1e-6
