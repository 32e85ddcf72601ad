"""Reserved cells: whoever leaves, those that stay have reserved what a padded batch takes."""

from __future__ import annotations

from itertools import combinations

from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.mlx.reservations import Reservations

SLOTS = 3


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 5)), max_size=12))
def test_any_rows_that_can_be_together_have_reserved_what_padding_makes_of_them(
    steps: list[tuple[int, int]],
) -> None:
    reservations = Reservations(SLOTS)
    live: dict[int, tuple[int, int]] = {}  # job -> (cells, reserved)
    for job, (length, leaves) in enumerate(steps):
        live[job] = (256 * length, reservations.add(job, 256 * length))
        for count in range(1, SLOTS + 1):
            for rows in combinations(live.values(), count):
                longest = max(cells for cells, _ in rows)
                assert sum(reserved for _, reserved in rows) >= count * longest
        if leaves and len(live) > leaves:
            gone = list(live)[leaves - 1]
            reservations.drop(gone)
            del live[gone]


def test_a_job_alone_reserves_what_it_takes() -> None:
    reservations = Reservations(SLOTS)
    reservations.add(1, 2048)
    reservations.drop(1)

    assert reservations.add(2, 512) == 512


def test_a_short_job_beside_a_long_one_is_as_long() -> None:
    reservations = Reservations(SLOTS)
    reservations.add(1, 2048)

    assert reservations.add(2, 512) == 2048


def test_a_long_job_pays_for_the_short_ones_that_can_be_beside_it() -> None:
    reservations = Reservations(SLOTS)
    for job in range(5):
        reservations.add(job, 512)

    assert reservations.add(5, 2048) == 2048 + 2 * 1536
