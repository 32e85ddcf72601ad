"""Windows tile an utterance, small ones first."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from plait.engines.kokoro.windows import CONTEXT, FIRST, LARGEST, SHORTEST, plan_windows

spans = st.tuples(st.integers(0, 60), st.integers(1, 3000))


@given(spans)
def test_windows_tile_the_spoken_frames_exactly(span: tuple[int, int]) -> None:
    first, length = span

    windows = plan_windows(first, first + length)

    assert windows[0].start == first
    assert windows[-1].stop == first + length
    assert all(before.stop == after.start for before, after in pairwise(windows))


@given(spans)
def test_no_window_is_too_long_for_a_turn_or_too_short_to_be_worth_it(
    span: tuple[int, int],
) -> None:
    first, length = span

    sizes = [window.stop - window.start for window in plan_windows(first, first + length)]

    assert max(sizes) < LARGEST + SHORTEST
    assert min(sizes) >= min(SHORTEST, length)


def test_the_first_window_is_small_and_the_next_ones_grow() -> None:
    sizes = [window.stop - window.start for window in plan_windows(20, 320)]

    assert sizes[0] == FIRST
    assert all(after >= before for before, after in pairwise(sizes[:-1]))


def test_the_plan_depends_on_nothing_but_the_length() -> None:
    here = plan_windows(0, 500)
    there = plan_windows(37, 537)

    assert [w.stop - w.start for w in here] == [w.stop - w.start for w in there]


def test_a_window_is_looked_at_with_its_context_on_both_sides() -> None:
    window = plan_windows(0, 100)[1]

    assert (window.start - window.left, window.right - window.stop) == (CONTEXT, CONTEXT)
