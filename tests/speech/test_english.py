"""English for real: misaki, spaCy and espeak, through the front end."""

# ruff: noqa: RUF001 -- phonemes are what is tested
from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.speech.front import FrontEnd
from plait.speech.segment import MAX_PHONEMES, Segment
from plait.speech.vocabulary import SYMBOLS

from .conftest import Say
from .peers import read_out, take_all

pytestmark = pytest.mark.timeout(180)  # the libraries are loaded by the first test
CLAUSES = ("Good morning, ", "Good evening, ", "Dear friends, ")


def phonemes(segments: list[Segment]) -> str:
    return " ".join(segment.phonemes for segment in segments if segment.phonemes)


@pytest.mark.parametrize(
    ("written", "sound"),
    [
        ("Hello there, my friend.", "həlˈO ðˈɛɹ, mI fɹˈɛnd."),
        ("I read it. I will read it.", "ˌI ɹˈɛd ɪt. ˌI wɪl ɹˈid ɪt."),
        ("button kitten written", "bˈʌtn kˈɪtn ɹˈɪtn."),
        ("10:30 a.m.", "tˈɛn θˈɜɹTi ˌAˈɛm."),
        ("In 2024, NASA", "ɪn twˈɛnti twˈɛnti fˈɔɹ, nˈæsə."),
        ("**$5** 😀 (about 5 km/h)", "fˈIv dˈɑləɹz (əbˈWt fˈIv kəlˈɑməTəɹz pɜɹ ˈWəɹ)."),
    ],
)
def test_english_sounds_like_this(say: Say, written: str, sound: str) -> None:
    assert phonemes(say(written)) == sound


def test_british_english_is_another_accent(say: Say) -> None:
    assert phonemes(say("I can't dance.", "en-gb")) == "ˌI kˈɑːnt dˈɑːns."


def test_an_unknown_word_is_said_all_the_same(say: Say) -> None:
    assert phonemes(say("Zyxglorb")).strip(".") != ""


def test_words_are_as_written_however_many_were_said(say: Say) -> None:
    (segment,) = say("Pay $1,234.56 (now), don’t wait!")

    assert [word.text for word in segment.words] == ["Pay", "$1,234.56", "now", "don’t", "wait"]
    assert all(a.last <= b.first for a, b in pairwise(segment.words))
    spoken = [segment.phonemes[word.first : word.last] for word in segment.words]
    assert spoken[-1] == "wˈAt"
    assert spoken[1].endswith("sˈɛnts")


def test_f01_a_long_paragraph_is_said_to_its_last_sentence(say: Say) -> None:
    text = "It was a cold evening, and the streets were nearly empty. " * 52 + "The very last word."

    segments = say(text)

    assert len(text) > 3000
    assert "".join(segment.text for segment in segments) == text
    assert segments[-1].phonemes == phonemes(say("The very last word."))


@pytest.mark.parametrize("length", [509, 510, 511, 512, 1200])
def test_f02_text_without_punctuation_is_said_to_its_end(say: Say, length: int) -> None:
    text = ("the quick brown fox jumps over the lazy dog " * 40)[:length]

    segments = say(text)

    assert "".join(segment.text for segment in segments) == text
    assert sum(len(segment.words) for segment in segments) == len(text.split())


def test_f02_a_word_of_600_characters_is_said(say: Say) -> None:
    segments = say("supercali" * 67)

    assert all(0 < len(segment.phonemes) <= MAX_PHONEMES for segment in segments)
    assert len(segments) >= 2


@pytest.mark.parametrize("text", ["", " ", "\n", "!!!", "😀", "\u200b", "—"])
def test_f08_nothing_to_say_has_no_phonemes(say: Say, text: str) -> None:
    assert phonemes(say(text)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "IPA ʘ ǃ ɧ and ʭ",
        "Hello مرحبا friend",
        "Hello 你好 friend",
        "a\x00b \x07 c",
        "x \ud800 y",
        "ﷺ x",
    ],
)
def test_f10_a_symbol_the_model_does_not_know_is_dropped(say: Say, text: str) -> None:
    sound = phonemes(say(text))

    assert sound
    assert set(sound) <= SYMBOLS.keys()
    assert "lˈɛTəɹ" not in sound  # "arabic letter ..."


def test_markup_is_not_spoken(say: Say) -> None:
    plain = phonemes(say("Title\n\nFirst bold, then code."))

    assert phonemes(say("# Title\n\n**First** *bold*, then `code`.")) == plain


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(max_size=120), st.integers(1, 30))
def test_any_text_in_any_pieces_is_verbatim_bounded_and_of_the_vocabulary(
    front: FrontEnd, text: str, size: int
) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    segments = read_out(front.open("en-us"), pieces)

    assert "".join(segment.text for segment in segments) == text
    assert all(len(segment.phonemes) <= MAX_PHONEMES for segment in segments)
    assert set(phonemes(segments)) <= SYMBOLS.keys()


def test_a_first_clause_takes_milliseconds_once_warm(front: FrontEnd) -> None:
    rest = "everyone, and welcome to this rather long sentence about things."

    took = [cpu_seconds(front, f"{clause}{rest}", clause) for clause in CLAUSES]

    # About 5 ms on an idle core; of several one, as Python tidies its memory when it likes.
    assert min(took) < 0.1


def cpu_seconds(front: FrontEnd, text: str, clause: str) -> float:
    stream = front.open("en-us")
    stream.feed(text)
    start = time.process_time()
    segment = stream.next_segment()
    took = time.process_time() - start
    assert segment is not None
    assert segment.text == clause
    return took


@pytest.mark.parametrize("part", ["1-", "-1", "I'm"])
def test_a_word_of_many_parts_does_not_hold_up_everybody(front: FrontEnd, part: str) -> None:
    stream = front.open("en-us")
    stream.feed(part * 1000)
    stream.next_segment()
    start = time.process_time()

    segment = stream.next_segment()

    assert segment is not None
    assert segment.phonemes
    assert time.process_time() - start < 0.4  # 2 s as one word; other streams' cancels wait for it


def test_streams_do_not_share_state(front: FrontEnd) -> None:
    one, other = front.open("en"), front.open("en-us")
    one.feed("One sentence here. A")
    other.feed("Another one. B")

    assert [segment.text for segment in take_all(one)] == ["One sentence here. "]
    assert [segment.text for segment in take_all(other)] == ["Another one. "]
