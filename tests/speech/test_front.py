"""The front end's own decisions: what is loaded, what is left out, what is refused."""

from __future__ import annotations

import pytest

from plait.errors import InvalidRequest
from plait.speech.front import FrontEnd
from plait.speech.languages import LANGUAGES
from plait.speech.pronouncing import Pronouncer

from .peers import LetterPronouncer, read_whole


class ToyFrontEnd(FrontEnd):
    """Every language but French can be loaded, and that is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []

    def _load(self, code: str) -> Pronouncer:
        self.loads.append(code)
        if code == "fr":
            raise OSError("no such library")
        return LetterPronouncer()


def test_a_language_is_loaded_once_and_under_any_of_its_names() -> None:
    front = ToyFrontEnd.load(["en"])

    segments = [read_whole(front.open(name), "Hello") for name in ("en-us", "EN", "en_us")]

    assert [segment.phonemes for (segment,) in segments] == ["hello."] * 3
    assert isinstance(front, ToyFrontEnd)
    assert front.loads == ["en-us"]


def test_a_language_that_cannot_be_loaded_takes_no_other_with_it() -> None:
    front = ToyFrontEnd.load(["fr", "es"])

    for _ in range(2):
        with pytest.raises(InvalidRequest, match="cannot be loaded") as caught:
            front.open("fr")

    assert caught.value.param == "language"
    assert read_whole(front.open("es"), "Hola")[0].phonemes == "hola."
    assert isinstance(front, ToyFrontEnd)
    assert front.loads == ["fr", "es"]


@pytest.mark.parametrize("language", ["tlh", "", "en-us\0", "x" * 10_000])
def test_an_unknown_language_is_refused(language: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ToyFrontEnd().open(language)

    assert caught.value.param == "language"
    assert len(caught.value.message) < 200


def test_a_load_tells_how_it_goes() -> None:
    told: list[tuple[str, int | None]] = []

    ToyFrontEnd.load(["en-us", "es"], report=lambda phase, percent: told.append((phase, percent)))

    assert told == [("pronunciation of en-us", 0), ("pronunciation of es", 50)]


def test_the_languages_listed_are_those_that_can_be_opened() -> None:
    assert set(FrontEnd.languages()) <= LANGUAGES.keys()
