"""A stream's text in segments: verbatim, bounded, soon, and with linear work."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from plait.speech.reading import Reading
from plait.speech.segment import MAX_PHONEMES, Segment
from plait.speech.spoken_text import SpokenText
from plait.speech.vocabulary import SYMBOLS

from .fragments import FRAGMENTS
from .peers import LetterPronouncer, read_out, read_whole, take_all

LONG = (
    "The quick brown fox jumps over the lazy dog, and the five boxing wizards jump quickly around "
    "the old garden while nobody is looking, because it is a cold and very rainy evening, which "
    "is why everybody who could stay at home has stayed at home. Then it was over."
)
NASTY = "aB é1.,;:!?'\"()[]<>@#$%&*_+-=/\\|~`\n\t—…€あ你\u0301\u200b😀\ud800।。、"


def spoken(language: str = "en-us") -> SpokenText:
    return SpokenText(Reading(language, LetterPronouncer()))


def texts(segments: list[Segment]) -> list[str]:
    return [segment.text for segment in segments]


def test_a_short_first_sentence_stays_whole() -> None:
    segments = read_whole(spoken(), "Hello there, friend. How are you today, my dear old friend?")

    assert texts(segments) == [
        "Hello there, friend. ",
        "How are you today, my dear old friend?",
    ]
    assert [segment.ending for segment in segments] == ["sentence", "sentence"]


def test_a_long_first_sentence_begins_with_its_first_clause() -> None:
    segments = read_out(spoken(), ["On a cold day, " + LONG[0].lower() + LONG[1:]])

    assert segments[0].text == "On a cold day, "
    assert segments[0].ending == "clause"


def test_a_first_sentence_without_a_clause_is_cut_before_a_phrase() -> None:
    segments = read_out(spoken(), [LONG])

    assert segments[0].text == "The quick brown fox jumps "
    assert segments[0].ending == "split"


def test_a_first_clause_of_one_word_is_not_cut_off() -> None:
    segments = read_out(spoken(), ["Well, I really do think that this is so, my friend."])

    assert segments[0].text == "Well, I really do think "


def test_a_long_sentence_is_cut_at_its_clauses() -> None:
    segments = read_out(spoken(), ["Yes. " + LONG])

    assert all(len(segment.phonemes) <= 230 for segment in segments)
    assert segments[1].text.endswith(", ")
    assert segments[-1].text == "Then it was over."


def test_text_without_punctuation_is_cut_at_spaces() -> None:
    segments = read_out(spoken(), ["the quick brown fox " * 60])

    assert len(segments) > 5
    assert all(segment.text.endswith(" ") for segment in segments)
    assert {segment.ending for segment in segments[:-1]} == {"split"}


@pytest.mark.parametrize("length", [1, 499, 500, 501, 509, 510, 511, 512, 600, 5000])
def test_one_word_of_any_length_is_said_to_its_end(length: int) -> None:
    segments = read_out(spoken(), ["o" * length])

    assert "".join(texts(segments)) == "o" * length
    assert sum(segment.phonemes.count("o") for segment in segments) == length


def test_what_cannot_be_said_rides_along_with_what_can() -> None:
    assert texts(read_whole(spoken(), "!!! Hello. 😀 \u200b")) == ["!!! Hello. 😀 \u200b"]


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "!!!", "😀", "\u200b", "—", "...", "\ud800", "*_*"]
)
def test_nothing_to_say_is_a_segment_without_phonemes_or_none(text: str) -> None:
    segments = read_out(spoken(), [text])

    assert "".join(texts(segments)) == text
    assert all(segment.phonemes == "" and segment.words == () for segment in segments)


def test_a_clause_is_spoken_while_the_sentence_is_still_being_written() -> None:
    stream = spoken()
    stream.feed("Hello there, ")
    assert take_all(stream) == []

    stream.feed("m")
    assert texts(take_all(stream)) == ["Hello there, "]

    stream.feed("y friend, this is a long clause, a")
    assert texts(take_all(stream)) == ["my friend, this is a long clause, "]


def test_a_complete_sentence_is_spoken_whole_even_in_a_stream() -> None:
    stream = spoken()
    stream.feed("Yes. It is so, my friend, as you said. W")

    assert texts(take_all(stream)) == ["Yes. ", "It is so, my friend, as you said. "]


def test_a_number_or_a_title_is_not_cut_in_a_stream() -> None:
    stream = spoken()

    for piece in ("It is 3", ".", "14 says Dr", ".", " Smith", " e.g", ". here"):
        stream.feed(piece)

    assert take_all(stream) == []


def test_finish_flushes_and_then_it_is_done() -> None:
    stream = spoken()
    stream.feed("no end")
    before = stream.done
    stream.finish()

    assert texts(take_all(stream)) == ["no end"]
    assert (before, stream.done) == (False, True)
    assert stream.next_segment() is None


def test_words_stand_in_the_text_with_their_phonemes() -> None:
    (segment,) = read_whole(spoken(), "Pay (about) $5, now!")

    words = [(word.text, segment.phonemes[word.first : word.last]) for word in segment.words]
    assert words == [
        ("Pay", "pay"),
        ("about", "about"),
        ("$5", "five dollars"),
        ("now", "now"),
    ]


def test_a_heading_falls_like_a_sentence() -> None:
    segments = read_out(spoken(), ["# Title\n\nText"])

    assert [segment.phonemes for segment in segments] == ["title.", "text."]


def pieces_of(text: str, sizes: list[int]) -> list[str]:
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=300)
    | st.text(alphabet=NASTY, max_size=600)
    | st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(" ".join),
    st.lists(st.integers(1, 50), min_size=1, max_size=5),
    st.sampled_from(["en-us", "fr", "hi", "ja"]),
)
def test_any_text_in_any_pieces_comes_out_verbatim_and_bounded(
    text: str, sizes: list[int], language: str
) -> None:
    segments = read_out(spoken(language), pieces_of(text, sizes))

    assert "".join(texts(segments)) == text
    assert all(segment.text for segment in segments)
    for segment in segments:
        assert len(segment.phonemes) <= MAX_PHONEMES
        assert set(segment.phonemes) <= SYMBOLS.keys()
        assert_words_in_order(segment)


def assert_words_in_order(segment: Segment) -> None:
    position = last = 0
    for word in segment.words:
        found = segment.text.find(word.text, position)
        assert found >= 0
        assert last <= word.first < word.last <= len(segment.phonemes)
        position, last = found + len(word.text), word.last


@pytest.mark.parametrize(
    "unit", ["Hello there, my friend. ", "word ", "a", "!", " ", "😀", "a. ", ", ", "1", "[(", "你"]
)
def test_work_is_linear_in_the_text_even_character_by_character(unit: str) -> None:
    text = (unit * 6_000)[:6_000]
    pronouncer = LetterPronouncer()

    segments = read_out(SpokenText(Reading("en-us", pronouncer)), text)

    assert "".join(texts(segments)) == text
    assert pronouncer.characters <= 12 * len(text)  # a digit is up to five letters, tried twice


def test_a_million_characters_are_not_looked_at_for_the_first_segment() -> None:
    pronouncer = LetterPronouncer()
    stream = SpokenText(Reading("en-us", pronouncer))
    stream.feed("Hello there, my friend. " * 45_000)

    assert stream.next_segment() is not None
    assert pronouncer.characters < 300
