"""What is settled between two decodes, where a long segment is split, and what is no speech."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.whisper.agreement import (
    agreed_words,
    ends_sentence,
    split_after,
    without_overlap,
)
from plait.engines.whisper.words import Word, plain, settled_words, text_of, without_loops


def words(text: str) -> list[Word]:
    return [Word(f" {word}", number, number + 1) for number, word in enumerate(text.split())]


@pytest.mark.parametrize(
    ("now", "before", "count"),
    [
        ("and so my fellow", "and so my", 3),
        ("And so, my Fellow", "and so my fellow.", 4),
        ("and so my", "or so my", 0),
        ("and", "", 0),
        ("", "", 0),
    ],
)
def test_agreed_is_the_common_beginning(now: str, before: str, count: int) -> None:
    assert agreed_words(words(now), words(before)) == count


@pytest.mark.parametrize(
    ("text", "ends"),
    [("so.", True), ("so?", True), ('so!"', True), ("so", False), ("so...", False), ("", False)],
)
def test_the_end_of_a_sentence_is_told_by_its_punctuation(text: str, ends: bool) -> None:
    assert ends_sentence(words(text)) is ends


@pytest.mark.parametrize(
    ("text", "agreed", "count"),
    [
        ("one two. three four five", 5, 2),
        ("one two three four five six", 5, 4),
        ("one. two three four five six", 6, 5),
        ("one two", 1, 1),
    ],
)
def test_a_split_prefers_the_end_of_a_sentence(text: str, agreed: int, count: int) -> None:
    assert split_after(words(text), agreed) == count


def test_what_was_said_before_the_split_is_not_said_again() -> None:
    said = ["for", "your", "country"]

    assert text_of(without_overlap(words("your country, can do"), said)) == "can do"
    assert text_of(without_overlap(words("can do"), said)) == "can do"
    assert text_of(without_overlap(words("country"), said)) == ""


@pytest.mark.parametrize(
    "text",
    ["[BLANK_AUDIO]", "(door slams)", "*sighs*", "♪ la la la ♪", "[Music", "♪", "... --", ""],
)
def test_sounds_are_no_words(text: str) -> None:
    assert settled_words(words(text)) == []


def test_sounds_among_words_are_left_out() -> None:
    assert text_of(settled_words(words("Well (coughs softly) I think [noise] so."))) == (
        "Well I think so."
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("no no", "no no"),
        ("no no no no no no", "no no"),
        ("thank you thank you thank you so", "thank you thank you"),
        ("and so my fellow and so my fellow", "and so my fellow"),
        ("a b c a b c", "a b c a b c"),
        ("it was a very very good day", "it was a very very good day"),
    ],
)
def test_a_loop_ends_where_it_begins_to_repeat(text: str, kept: str) -> None:
    assert text_of(without_loops(words(text))) == kept


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_no_loop_is_left(letters: list[str]) -> None:
    kept = [plain(word.text) for word in without_loops(words(" ".join(letters)))]

    assert letters[: len(kept)] == kept
    assert not any(kept[i] == kept[i + 1] == kept[i + 2] for i in range(len(kept) - 2))
