"""Latencies, revisions and rewriting, of made-up segments at made-up moments."""

from __future__ import annotations

import pytest

from plait.bench import transcribe_figures as figures
from plait.bench.clips import Utterance
from plait.bench.transcribe_figures import Rewriting, Shown
from plait.client import Segment

SAID = [Utterance(1.0, 3.0, "one two three four"), Utterance(5.0, 6.0, "five six")]


def interim(at: float, index: int, text: str, end: float, stable: str = "") -> Shown:
    start = SAID[index].start
    return Shown(at, Segment(index, 1, text, start, end, is_final=False, stable=stable))


def final(at: float, index: int, text: str, start: float, end: float) -> Shown:
    return Shown(at, Segment(index, 9, text, start, end, is_final=True))


RUN = [
    interim(1.8, 0, "One", 1.4),
    interim(2.6, 0, "One too three", 2.4, stable="One too"),
    interim(3.2, 0, "One two three", 2.9, stable="One two"),
    final(3.6, 0, "One two three four.", 1.0, 3.0),
    interim(5.9, 1, "Five", 5.5, stable=""),
    final(6.4, 1, "Five six.", 5.0, 5.9),
]


def test_the_first_text_counts_from_the_utterances_first_sound() -> None:
    assert figures.first_text_seconds(RUN, SAID) == pytest.approx([0.8, 0.9])


def test_a_late_final_of_the_last_utterance_is_not_the_next_ones_first_text() -> None:
    late = [final(5.3, 0, "One two three four.", 1.0, 3.1), RUN[4]]

    assert figures.first_text_seconds(late, SAID) == pytest.approx([4.3, 0.9])


def test_text_that_came_before_anything_was_said_is_no_first_text() -> None:
    invented = [final(0.5, 0, "You.", 0.2, 1.2), *RUN]

    assert figures.first_text_seconds(invented, SAID) == pytest.approx([0.8, 0.9])


def test_finals_count_from_the_last_sound_and_from_their_own_end() -> None:
    assert figures.final_after_speech_seconds(RUN, SAID) == pytest.approx([0.6, 0.4])
    assert figures.final_after_segment_seconds(RUN) == pytest.approx([0.6, 0.5])


def test_of_an_utterance_in_several_segments_the_last_final_counts() -> None:
    run = [final(2.5, 0, "one two", 1.0, 2.0), final(3.4, 1, "three four", 2.1, 3.0)]

    assert figures.final_after_speech_seconds(run, SAID[:1]) == pytest.approx([0.4])


def test_what_was_never_shown_has_no_latency() -> None:
    assert figures.first_text_seconds([], SAID) == []
    assert figures.final_after_speech_seconds(RUN[:1], SAID) == []


def test_a_final_that_takes_back_what_was_shown_is_no_text() -> None:
    run = [interim(2.0, 0, "uh", 1.5), final(2.5, 0, "", 1.0, 1.5)]

    assert figures.final_text(run).strip() == ""
    assert figures.final_after_segment_seconds(run) == []
    assert figures.word_seconds(run) == []


def test_revisions_are_counted_per_segment() -> None:
    assert figures.revision_counts(RUN) == [4, 2]


def test_words_that_changed_are_rewritten_and_those_said_to_be_stable_count_apart() -> None:
    # "too" became "two", which also moved "three"; "One too" had been called stable.
    assert figures.rewriting(RUN) == Rewriting(1 + 3 + 3 + 1, 2, 4, 1)


def test_a_word_is_seen_when_it_first_stands_at_its_place() -> None:
    # The words end at 1.5, 2, 2.5, 3 and at 5.45, 5.9.
    expected = [1.8 - 1.5, 3.2 - 2.0, 2.6 - 2.5, 3.6 - 3.0, 5.9 - 5.45, 6.4 - 5.9]

    assert figures.word_seconds(RUN) == pytest.approx(expected)
