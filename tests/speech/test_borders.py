"""Where sentences and clauses end, and that a border waits for what may change it."""

# ruff: noqa: RUF001 -- writing systems are what is tested
from __future__ import annotations

import pytest

from plait.speech.borders import BorderFinder


def pieces(text: str, language: str = "en-us") -> list[str]:
    """`text` cut at its borders; `|` before the piece a clause border begins."""
    cut, kind, at = [], "", 0
    for border in BorderFinder(language).scan(text, complete=True):
        cut.append(kind + text[at : border.position])
        kind, at = ("|" if border.kind == "clause" else ""), border.position
    return [*cut, kind + text[at:]]


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith", "St. Louis", "It costs 3.14 euros", "J. R. Smith", "e.g. this", "10 a.m. it",
        "the U.S. economy", "No. 5", "see fig. 3", "example.com is up", "1. Apples", "a) pears",
        "version 1.2.3 is out", "1,000 and 10:30", "5 - 3", "well-known", "Apple Inc. said",
        "a line that is long enough to have been wrapped by an editor in\nthe middle of a sentence",
    ],
)  # fmt: skip
def test_this_is_one_piece(text: str) -> None:
    assert pieces(text) == [text]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
        ("Yes, no; so: done", ["Yes, ", "|no; ", "|so: ", "|done"]),
        ("He left... then came", ["He left... ", "|then came"]),
        ("“Go.” She went", ["“Go.” ", "She went"]),
        ('"Really?" he asked', ['"Really?" ', "|he asked"]),
        ("**Bold.** Next", ["**Bold.** ", "Next"]),
        ("wait — here - there", ["wait — ", "|here - ", "|there"]),
        ("One\n\ntwo", ["One\n\n", "two"]),
        ("List:\n- one\n- two", ["List:\n", "- one\n", "- two"]),
        ("It was big. See p. 5 there", ["It was big. ", "See p. 5 there"]),
        ("I live in the U.S. He does too", ["I live in the U.S. ", "He does too"]),
    ],
)
def test_english_is_cut_here(text: str, cut: list[str]) -> None:
    assert pieces(text) == cut


@pytest.mark.parametrize(
    ("language", "text", "cut"),
    [
        ("ja", "はい。今日は、いい", ["はい。", "今日は、", "|いい"]),
        ("zh", "你好！“世界。”再见，走", ["你好！", "“世界。”", "再见，", "|走"]),
        ("hi", "नमस्ते। कैसे हो", ["नमस्ते। ", "कैसे हो"]),
        ("fr", "M. Dupont est là. Oui", ["M. Dupont est là. ", "Oui"]),
        ("es", "¿Qué tal? Bien", ["¿Qué tal? ", "Bien"]),
    ],
)
def test_other_languages_are_cut_here(language: str, text: str, cut: list[str]) -> None:
    assert pieces(text, language) == cut


@pytest.mark.parametrize(
    "text", ["It is 3.", "Hello.", "Hello. ", "Dr.", "Wait,", "Wait, ", "Well -", "Go.”"]
)
def test_a_border_is_not_certain_before_its_next_character(text: str) -> None:
    finder = BorderFinder("en-us")

    assert finder.scan(text, complete=False) == []
    assert finder.scan(text + " Then", complete=False) != [] or text in ("It is 3.", "Dr.")


def test_each_border_is_found_once_whatever_the_pieces() -> None:
    text = 'Well, one. "Two," he said! Dr. Who? 3.14\n\nFour: five; the end...'
    finder, grown, found = BorderFinder("en-us"), "", []

    for char in text:
        grown += char
        found += finder.scan(grown, complete=False)
    found += finder.scan(grown, complete=True)

    assert found == BorderFinder("en-us").scan(text, complete=True)
