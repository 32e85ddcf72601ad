"""The front end of speech: a reading per language, loaded in a worker.

Languages are loaded once per worker and shared by its streams; one thread uses them. Does NOT know
voices' sounds, models or audio.
"""

# ruff: noqa: RUF001 -- samples of other languages
from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from plait.errors import InvalidRequest
from plait.speech.languages import LANGUAGES, canonical, improvable, missing, require
from plait.speech.pronouncing import Pronouncer
from plait.speech.reading import Reading
from plait.speech.spoken_text import SpokenText

Report = Callable[[str, int | None], None]

_SAMPLES = {"ja": "こんにちは、世界。", "zh": "你好，世界。", "hi": "नमस्ते दुनिया, 25।"}
_SAMPLE = "Hello there, 25 of you; it is 10:30 at Plaitville."


class FrontEnd:
    """Readings of some languages; `open` gives a stream's `SpokenText`."""

    def __init__(self) -> None:
        self._readings: dict[str, Reading] = {}
        self._broken: set[str] = set()  # not tried again: a try takes seconds
        self._english: Pronouncer | None = None

    @classmethod
    def load(cls, languages: Iterable[str] | None = None, report: Report | None = None) -> FrontEnd:
        """Load `languages` now; by default English. Others are loaded when they are first opened.

        `report(phase, percent)` is told how it goes. What cannot be loaded is left out: one broken
        dictionary takes no other language with it, and `open` says what is the matter.
        """
        front = cls()
        wanted = [canonical(one) for one in languages] if languages is not None else ["en-us"]
        for number, language in enumerate(dict.fromkeys(wanted)):
            if report is not None:
                report(f"pronunciation of {language}", 100 * number // len(wanted))
            with suppress(InvalidRequest):
                front.warm(language)
        return front

    @staticmethod
    def languages() -> list[str]:
        """Those that can be spoken with what is installed."""
        return [language for language in LANGUAGES if missing(language) is None]

    def open(self, language: str) -> SpokenText:
        """A new stream's text. Raises InvalidRequest (param `language`)."""
        return SpokenText(self._reading(require(language)))

    def warm(self, language: str) -> None:
        """Load `language` and say something, so that a stream's first clause takes milliseconds."""
        reading = self._reading(require(language))
        sample = _SAMPLES.get(reading.language, _SAMPLE)
        reading.sound(sample, reading.script(sample))

    def _reading(self, code: str) -> Reading:
        if code in self._broken:
            raise _broken(code)
        if code not in self._readings:
            try:
                self._readings[code] = Reading(code, self._load(code))
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                self._broken.add(code)
                raise _broken(code) from error
        return self._readings[code]

    def _load(self, code: str) -> Pronouncer:
        """Imports the language's libraries: seconds, the first time."""
        if code == "en-us":
            return self._american()
        if code == "en-gb":
            return _load_english(british=True)
        if code in ("ja", "zh"):
            latin = self._american() if missing("en-us") is None else None
            return _load_east_asian(code, latin)
        from plait.speech.espeak import EspeakPronouncer

        return EspeakPronouncer(code)

    def _american(self) -> Pronouncer:
        """Also what words in Latin letters are said by in Japanese and Chinese."""
        if self._english is None:
            self._english = _load_english(british=False)
        return self._english


def _broken(code: str) -> InvalidRequest:
    return InvalidRequest(
        f"language {code}: its pronunciation is installed here but cannot be loaded. Its operator "
        f"can mend it: pip install --force-reinstall {LANGUAGES[code].install}.",
        param="language",
    )


def _load_english(*, british: bool) -> Pronouncer:
    """misaki where it is installed; espeak alone knows fewer words and no context."""
    code = "en-gb" if british else "en-us"
    if improvable(code) is None:
        from plait.speech.english import EnglishPronouncer

        return EnglishPronouncer(british=british)
    from plait.speech.espeak import EspeakPronouncer

    return EspeakPronouncer(code)


def _load_east_asian(code: str, latin: Pronouncer | None) -> Pronouncer:
    if code == "ja":
        from plait.speech.japanese import JapanesePronouncer

        return JapanesePronouncer(latin)
    from plait.speech.chinese import ChinesePronouncer

    return ChinesePronouncer(latin)
