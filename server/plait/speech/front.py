"""The front end of speech: a pronouncer and the rules per language, loaded in a worker.

Languages are loaded once per worker and shared by its streams; one thread uses them. Does NOT know
voices' sounds, models or audio.
"""

# ruff: noqa: RUF001 -- writing systems are what this module is about
from __future__ import annotations

from collections.abc import Callable, Iterable

from plait.speech.alignment import Spoken, align
from plait.speech.languages import LANGUAGES, canonical, missing, require
from plait.speech.normalisation import script_of
from plait.speech.pronouncing import Pronouncer
from plait.speech.segment import MAX_PHONEMES
from plait.speech.spoken_text import SpokenText

Report = Callable[[str, int | None], None]

_SAMPLES = {"ja": "こんにちは、世界。", "zh": "你好，世界。", "hi": "नमस्ते दुनिया, 25।"}
_SAMPLE = "Hello there, 25 of you; it is 10:30."


class FrontEnd:
    """Pronouncers of some languages; `open` gives a stream's `SpokenText`."""

    def __init__(self) -> None:
        self._pronouncers: dict[str, Pronouncer] = {}

    @classmethod
    def load(cls, languages: Iterable[str] | None = None, report: Report | None = None) -> FrontEnd:
        """Load `languages` now; by default English, and others when they are first opened.

        `report(phase, percent)` is told how it goes. Raises InvalidRequest (param `language`) for
        a language that is not installed.
        """
        front = cls()
        wanted = [canonical(one) for one in languages] if languages is not None else ["en-us"]
        for number, language in enumerate(dict.fromkeys(wanted)):
            if report is not None:
                report(f"pronunciation of {language}", 100 * number // len(wanted))
            if languages is not None or missing(language) is None:
                front.warm(language)
        return front

    @staticmethod
    def languages() -> list[str]:
        """Those that can be spoken with what is installed."""
        return [language for language in LANGUAGES if missing(language) is None]

    def open(self, language: str) -> SpokenText:
        """A new stream's text. Raises InvalidRequest (param `language`)."""
        code = require(language)
        pronouncer = self._pronouncer(code)
        return SpokenText(code, lambda text: speak(code, pronouncer, text))

    def warm(self, language: str) -> None:
        """Load `language` and say something, so that a stream's first clause takes milliseconds."""
        code = require(language)
        speak(code, self._pronouncer(code), _SAMPLES.get(code, _SAMPLE))

    def _pronouncer(self, code: str) -> Pronouncer:
        if code not in self._pronouncers:
            self._pronouncers[code] = _load_pronouncer(code)
        return self._pronouncers[code]


def speak(code: str, pronouncer: Pronouncer, text: str) -> Spoken:
    """Normalise and pronounce one segment's `text`."""
    script = script_of(text, code)
    spoken = align(text, script, pronouncer.pronounce(script.text))
    if len(text) <= 1:  # it cannot be cut any further; a ligature may be a whole phrase
        return Spoken(spoken.phonemes[:MAX_PHONEMES], spoken.words)
    return spoken


def _load_pronouncer(code: str) -> Pronouncer:
    """Imports the language's libraries: seconds, the first time."""
    if code in ("en-us", "en-gb"):
        from plait.speech.english import EnglishPronouncer

        return EnglishPronouncer(british=code == "en-gb")
    if code == "ja":
        from plait.speech.japanese import JapanesePronouncer

        return JapanesePronouncer()
    if code == "zh":
        from plait.speech.chinese import ChinesePronouncer

        return ChinesePronouncer()
    from plait.speech.espeak import EspeakPronouncer

    return EspeakPronouncer(code)
