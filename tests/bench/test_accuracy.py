"""Word error rates: what counts as a word, and as an error."""

from __future__ import annotations

from hypothesis import given, strategies as st

from plait.bench.accuracy import WordErrors, common_words, edit_distance, words_of

WORDS = st.lists(st.sampled_from("abc"), max_size=8)


def test_case_punctuation_and_hyphens_do_not_count() -> None:
    said = "“And Mr. John — an ill-disposed man's 'dog'…”"

    assert words_of(said) == ["and", "mister", "john", "an", "ill", "disposed", "man's", "dog"]


def test_substitutions_insertions_and_deletions_each_count_once() -> None:
    assert WordErrors.of("a b c d", "a x c d") == WordErrors(1, 4)
    assert WordErrors.of("a b c d", "a b x c d") == WordErrors(1, 4)
    assert WordErrors.of("a b c d", "a b d") == WordErrors(1, 4)
    assert WordErrors.of("a b c d", "").rate == 1.0


def test_nothing_said_of_nothing_is_no_error_and_something_is() -> None:
    assert WordErrors.of("", "").rate == 0
    assert WordErrors.of("", "you").rate == float("inf")


def test_rates_add_up_by_words() -> None:
    parts = [WordErrors(1, 2), WordErrors(0, 6)]

    assert WordErrors.sum(parts).rate == 0.125


@given(WORDS, WORDS)
def test_a_distance_is_symmetric_bounded_and_zero_only_for_equals(
    one: list[str], other: list[str]
) -> None:
    distance = edit_distance(one, other)

    assert distance == edit_distance(other, one)
    assert abs(len(one) - len(other)) <= distance <= max(len(one), len(other))
    assert (distance == 0) == (one == other)


@given(WORDS, WORDS, WORDS)
def test_common_words_are_those_both_begin_with(
    head: list[str], one: list[str], other: list[str]
) -> None:
    assert common_words(head + one, head + other) >= len(head)
    assert common_words([*head, "x"], [*head, "y"]) == len(head)
