"""espeak's phonemes in Kokoro's symbols: five languages, and English where misaki has no word.

The tables are misaki's (misaki/espeak.py, Apache-2.0): what the model was trained with. Text is
said phrase by phrase, so liaisons within a phrase are heard and punctuation stays what it is;
within a phrase the words of the sound are matched with those of the text in order. Does NOT
normalise.
"""

# ruff: noqa: RUF001 -- writing systems are what this module is about
from __future__ import annotations

import re

from plait.speech.espeak_library import espeak
from plait.speech.pronouncing import Sound

_VOICES = {
    "en-us": "gmw/en-US",
    "en-gb": "gmw/en",
    "es": "roa/es",
    "fr": "roa/fr",
    "hi": "inc/hi",
    "it": "roa/it",
    "pt-br": "roa/pt-BR",
}
_SYMBOLS = {
    "a^ɪ": "I", "a^ʊ": "W", "d^z": "ʣ", "d^ʒ": "ʤ", "e^ɪ": "A", "o^ʊ": "O", "ə^ʊ": "Q", "s^s": "S",
    "t^s": "ʦ", "t^ʃ": "ʧ", "ɔ^ɪ": "Y", "^": "", "-": "",
}  # fmt: skip
# Longest first: each replaces in what the ones before it left.
_ENGLISH = {
    "ʔˌn\u0329": "ʔn", "ʔn\u0329": "ʔn",
    "a^ɪ": "I", "a^ʊ": "W", "d^ʒ": "ʤ", "e^ɪ": "A", "t^ʃ": "ʧ", "ɔ^ɪ": "Y", "ə^l": "ᵊl",
    "ʲo": "jo", "ʲə": "jə", "e": "A", "ʲ": "", "ɚ": "əɹ", "r": "ɹ", "x": "k", "ç": "k", "ɐ": "ə",
    "ɬ": "l", "\u0303": "",
}  # fmt: skip
_BRITISH = {"e^ə": "ɛː", "iə": "ɪə", "ə^ʊ": "Q"}
_AMERICAN = {"o^ʊ": "O", "ɜːɹ": "ɜɹ", "ɜː": "ɜɹ", "ɪə": "iə", "ː": ""}
_LAST = {"o": "ɔ", "ɾ": "T", "ʔ": "t", "^": ""}
_SYLLABIC = re.compile(r"(\S)\u0329")

_MARKS = ';:,.!?—…"()“”'
_ALSO = {"।": ".", "॥": ".", "¿": "", "¡": "", "«": "“", "»": "”"}
_SPLIT = r";:,.!?—…\"()“”।॥¿¡«»\[\]{}<>|/\\"
_PIECE = re.compile(rf"[{_SPLIT}]|[^{_SPLIT}]+")
_WORD = re.compile(r"\S+")


class EspeakPronouncer:
    """One language. Loading takes milliseconds."""

    spaced = True

    def __init__(self, language: str) -> None:
        self._language = language
        espeak()

    def pronounce(self, text: str) -> list[Sound]:
        sounds: list[Sound] = []
        for piece in _PIECE.finditer(text):
            mark = _ALSO.get(piece[0], piece[0])
            if len(piece[0]) == 1 and (mark in _MARKS or not mark):
                sounds.append(Sound(piece.start(), piece.end(), mark))
            else:
                sounds += self._phrase(piece[0], piece.start())
        return sounds

    def _phrase(self, phrase: str, offset: int) -> list[Sound]:
        written = [(offset + one.start(), offset + one.end()) for one in _WORD.finditer(phrase)]
        heard = said(phrase, self._language).split() if written else []
        sounds = [Sound(offset, offset + 1, " ")] if phrase[:1].isspace() else []
        for number, sound in enumerate(heard):
            start, end = written[number * len(written) // len(heard)]
            sounds += [Sound(start, end, sound), Sound(end - 1, end, " ")]
        if heard and not phrase[-1:].isspace():
            sounds.pop()
        return sounds


def said(text: str, language: str) -> str:
    """Words without punctuation in the model's symbols. Raises ImportError, OSError."""
    ipa = espeak().ipa(text, _VOICES[language])
    if language not in ("en-us", "en-gb"):
        return _replaced(ipa, _SYMBOLS)
    ipa = _SYLLABIC.sub(r"ᵊ\1", _replaced(ipa, _ENGLISH)).replace("\u0329", "")
    return _replaced(_replaced(ipa, _BRITISH if language == "en-gb" else _AMERICAN), _LAST)


def _replaced(ipa: str, table: dict[str, str]) -> str:
    for old, new in table.items():
        ipa = ipa.replace(old, new)
    return ipa
