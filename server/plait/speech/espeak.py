"""Spanish, French, Hindi, Italian and Portuguese by espeak, in Kokoro's symbols.

misaki holds the table from espeak's phonemes to the model's. Text is said phrase by phrase, so
liaisons within a phrase are heard and punctuation stays what it is; within a phrase the words of
the sound are matched with those of the text in order. Does NOT normalise.
"""

from __future__ import annotations

import re

from plait.speech.pronouncing import Sound

_VOICES = {"fr": "fr-fr", "es": "es", "hi": "hi", "it": "it", "pt-br": "pt-br"}
_MARKS = ';:,.!?—…"()“”'
_ALSO = {"।": ".", "॥": ".", "¿": "", "¡": "", "«": "“", "»": "”"}
_PIECE = re.compile(r"[;:,.!?—…\"()“”।॥¿¡«»\[\]{}<>|/\\]|[^;:,.!?—…\"()“”।॥¿¡«»\[\]{}<>|/\\]+")
_WORD = re.compile(r"\S+")


class EspeakPronouncer:
    """One language. Loading takes tens of milliseconds."""

    spaced = True

    def __init__(self, language: str) -> None:
        from misaki import espeak

        self._g2p = espeak.EspeakG2P(language=_VOICES[language])

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
        heard = str(self._g2p(phrase)[0]).split() if written else []
        sounds = [Sound(offset, offset + 1, " ")] if phrase[:1].isspace() else []
        for number, sound in enumerate(heard):
            start, end = written[number * len(written) // len(heard)]
            sounds += [Sound(start, end, sound), Sound(end - 1, end, " ")]
        if heard and not phrase[-1:].isspace():
            sounds.pop()
        return sounds
