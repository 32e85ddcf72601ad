"""espeak alone: English where misaki cannot be installed, and text it should survive."""

# ruff: noqa: RUF001 -- phonemes are what is tested
from __future__ import annotations

import pytest

from plait.speech.reading import Reading
from plait.speech.spoken_text import SpokenText
from plait.speech.vocabulary import SYMBOLS

from .peers import read_whole

pytest.importorskip("espeakng_loader")
pytest.importorskip("num2words")


@pytest.mark.parametrize(
    ("language", "sound"),
    [("en-us", "həlˈO, twˈɛnti fˈIv fɹˈɛndz!"), ("en-gb", "həlˈQ, twˈɛnti fˈIv fɹˈɛndz!")],
)
def test_english_can_be_said_without_misaki(language: str, sound: str) -> None:
    from plait.speech.espeak import EspeakPronouncer

    (segment,) = read_whole(
        SpokenText(Reading(language, EspeakPronouncer(language))), "Hello, 25 friends!"
    )

    assert segment.phonemes == sound
    assert [word.text for word in segment.words] == ["Hello", "25", "friends"]


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "a\0b", "\ud800", "(en)", "<x>", "[[h@]]", "é" * 400]
)
def test_no_text_hangs_or_breaks_the_library(text: str) -> None:
    from plait.speech.espeak import said

    assert isinstance(said(text, "en-us"), str)


@pytest.mark.parametrize("language", ["en-us", "es", "fr", "hi", "it", "pt-br"])
def test_text_that_crashes_the_bare_library_does_not_reach_it(language: str) -> None:
    from plait.speech.espeak import said

    for text in ("\u201b-\u0514", "'-\u1ec4", "---\u1ebb", "'-\u0900", "\u096c-\u095f\u091f"):
        assert isinstance(said(text, language), str)


def test_letters_with_rare_accents_are_read_as_letters() -> None:
    from plait.speech.espeak import said

    assert said("Nguy\u1ec5n", "en-us") == said("Nguyen", "en-us")


def test_voices_may_take_turns() -> None:
    from plait.speech.espeak import said

    alone = [said("casa", "es"), said("maison", "fr")]

    assert [said("casa", "es"), said("maison", "fr")] == alone
    assert set("".join(alone)) <= SYMBOLS.keys()
