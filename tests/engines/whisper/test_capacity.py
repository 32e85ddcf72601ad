from __future__ import annotations

import pytest

from plait.engines.whisper.capacity import (
    FORKED_BYTES,
    MIB,
    MOST_SLOTS,
    WIDEST_STEP_SECONDS,
    slots_for,
    stream_bytes,
)


@pytest.mark.parametrize(
    ("decode_seconds", "cores", "slots"),
    [
        (0.5, 2, 5),  # tiny.en where it was measured
        (1.0, 2, 2),
        (0.5, 8, 21),
        (30.0, 1, 1),  # too slow for even one: it lags, and says so
        (0.0, 64, MOST_SLOTS),
    ],
)
def test_slots_follow_from_what_a_decode_costs(
    decode_seconds: float, cores: int, slots: int
) -> None:
    assert slots_for(decode_seconds, cores) == slots


@pytest.mark.parametrize("cores", [1, 2, 4, 16])
@pytest.mark.parametrize("decode_seconds", [0.05, 0.2, 0.7, 1.3])
def test_the_slots_together_never_want_more_than_the_cores(
    decode_seconds: float, cores: int
) -> None:
    slots = slots_for(decode_seconds, cores)

    assert slots == 1 or slots * decode_seconds / WIDEST_STEP_SECONDS <= cores


def test_a_forked_stream_shares_the_weights_and_a_spawned_one_does_not() -> None:
    assert stream_bytes(75 * MIB, forked=True) == FORKED_BYTES
    assert stream_bytes(75 * MIB, forked=False) > 75 * MIB
