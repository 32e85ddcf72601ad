"""Who may decode: in order, never more than there are cores, and everybody in the end."""

from __future__ import annotations

from hypothesis import given, strategies as st

from plait.engines.whisper.permits import PATIENCE_SECONDS, Permits


def test_no_more_are_granted_than_there_are() -> None:
    permits = Permits(2)
    for job in (1, 2, 3):
        permits.ask(job, 0.0, closing=False)

    assert permits.grant(0.0) == [1, 2]
    assert permits.grant(0.0) == []


def test_a_permit_given_back_goes_to_who_waits_longest() -> None:
    permits = Permits(1)
    for at, job in enumerate((5, 3, 4)):
        permits.ask(job, float(at), closing=False)
    permits.grant(3.0)

    permits.give_back(5)

    assert permits.grant(3.0) == [3]


def test_a_closing_decode_goes_first() -> None:
    permits = Permits(1)
    permits.ask(1, 0.0, closing=False)
    permits.ask(2, 1.0, closing=True)

    assert permits.grant(1.0) == [2]


def test_an_interim_that_waited_long_goes_before_a_younger_closing_decode() -> None:
    permits = Permits(1)
    permits.ask(1, 0.0, closing=False)
    permits.ask(2, 1.0, closing=True)

    assert permits.grant(PATIENCE_SECONDS) == [1]


def test_a_wish_becomes_urgent_in_its_place() -> None:
    permits = Permits(1)
    permits.ask(1, 0.0, closing=False)
    permits.ask(2, 1.0, closing=True)
    permits.ask(1, 2.0, closing=True)

    assert permits.grant(2.0) == [1]


def test_an_urgent_wish_stays_so() -> None:
    permits = Permits(1)
    permits.ask(1, 0.0, closing=True)
    permits.ask(1, 1.0, closing=False)
    permits.ask(2, 0.5, closing=True)

    assert permits.grant(1.0) == [1]


def test_a_wish_can_be_given_back_too() -> None:
    permits = Permits(1)
    permits.ask(1, 0.0, closing=True)
    permits.ask(2, 0.0, closing=False)

    permits.give_back(1)
    permits.give_back(7)  # never heard of

    assert permits.grant(0.0) == [2]


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 6), st.booleans(), st.booleans()), max_size=60),
)
def test_whatever_comes_all_are_served_and_never_too_many_at_once(
    count: int, moves: list[tuple[int, bool, bool]]
) -> None:
    permits = Permits(count)
    holding: set[int] = set()
    wishing: set[int] = set()

    def grant(now: float) -> None:
        granted = permits.grant(now)
        assert set(granted) <= wishing
        wishing.difference_update(granted)
        holding.update(granted)
        assert len(holding) == permits.held <= count
        assert not wishing or len(holding) == count

    for now, (job, gives, closing) in enumerate(moves):
        if gives or job in holding:
            permits.give_back(job)
            holding.discard(job)
            wishing.discard(job)
        else:
            permits.ask(job, float(now), closing=closing)
            wishing.add(job)
        grant(float(now))
    while holding:
        permits.give_back(holding.pop())
        grant(1000.0)
    assert not wishing


def test_under_closing_decodes_without_end_an_interim_still_has_its_turn() -> None:
    permits = Permits(1)
    permits.ask(0, 0.0, closing=False)
    served: list[int] = []

    for job in range(1, 12):
        permits.ask(job, float(job - 1), closing=True)
        served += permits.grant(float(job - 1))
        permits.give_back(served[-1])

    assert served.index(0) == PATIENCE_SECONDS
