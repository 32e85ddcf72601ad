"""The other languages for real, each where its libraries are installed."""

# ruff: noqa: RUF001 -- phonemes are what is tested
from __future__ import annotations

import pytest

from plait.speech.segment import Segment
from plait.speech.vocabulary import SYMBOLS

from .conftest import Say

pytestmark = pytest.mark.timeout(180)


def words(segments: list[Segment]) -> list[tuple[str, str]]:
    return [
        (word.text, segment.phonemes[word.first : word.last])
        for segment in segments
        for word in segment.words
    ]


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("es", "Tengo 25 años.", [("Tengo", "tˈɛŋɡo"), ("25", "βˌAntiθˈinko"), ("años", "ˈaɲos")]),
        ("fr", "Les amis, non !", [("Les", "lez"), ("amis", "amˈi"), ("non", "nˈɔ̃")]),
        ("hi", "नमस्ते दुनिया।", [("नमस्ते", "nəmˈʌsteː"), ("दुनिया", "dˈʊnɪjˌaː")]),
        ("it", "Ciao, come stai?", [("Ciao", "ʧˈao"), ("come", "kˌome"), ("stai", "stˈaj")]),
        ("pt-br", "Não sei.", [("Não", "nˌɐ̃ʊ̃"), ("sei", "sˈA")]),
        ("ja", "こんにちは、世界。", [("こんにちは", "koɲɲiʨiβa"), ("世界", "sekai")]),
        ("zh", "你好，世界。", [("你好", "ni↓xau↓"), ("世界", "ʂɨ↘ʨje↘")]),
    ],
)
def test_words_sound_like_this(
    say: Say, language: str, text: str, said: list[tuple[str, str]]
) -> None:
    assert words(say(text, language)) == said


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_latin_words_are_said_in_english(say: Say, language: str) -> None:
    assert ("hello", "həlˈO") in words(say("我喜欢hello", language))


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("zh", "今天天气很好我们一起去公园散步"),
        ("ja", "今日は天気がいいので公園を散歩します"),
        ("es", "hoy hace buen tiempo y vamos al parque "),
        ("hi", "आज मौसम अच्छा है और हम पार्क जाएंगे "),
    ],
)
def test_f01_a_long_text_without_punctuation_loses_nothing(
    say: Say, language: str, sentence: str
) -> None:
    text = sentence * (1500 // len(sentence))

    segments = say(text, language)

    assert "".join(segment.text for segment in segments) == text
    assert all(0 < len(segment.phonemes) <= 240 for segment in segments)


@pytest.mark.parametrize("language", ["es", "fr", "hi", "it", "pt-br", "ja", "zh"])
def test_f10_odd_text_is_said_as_far_as_it_goes(say: Say, language: str) -> None:
    segments = say("Hello мир 世界 नमस्ते 1,5 € ² 😀 \ud800 \x07 «x» ゝゞ 〇 ( 50%", language)

    sound = "".join(segment.phonemes for segment in segments)
    assert sound
    assert set(sound) <= SYMBOLS.keys()
