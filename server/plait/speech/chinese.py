"""Mandarin by misaki's table: jieba's words, pypinyin's readings, tones as arrows.

Words in Latin letters are said by an English pronouncer where there is one. Does NOT normalise:
numbers arrive in characters.
"""

# ruff: noqa: RUF001 -- Chinese punctuation
from __future__ import annotations

import logging
import re
from typing import Any

from plait.speech.japanese import said_in_latin
from plait.speech.pronouncing import Pronouncer, Sound

_PIECE = re.compile(r"[\u4e00-\u9fff]+|[A-Za-z][A-Za-z' -]*[A-Za-z]|[A-Za-z]|.", re.DOTALL)
_MARKS = {
    "、": ", ", "，": ", ", "。": ". ", "．": ". ", "！": "! ", "？": "? ", "：": ": ", "；": "; ",
    "«": " “", "»": "” ", "《": " “", "》": "” ", "「": " “", "」": "” ", "『": " “", "』": "” ",
    "【": " “", "】": "” ", "（": " (", "）": ") ", "(": " (", ")": ") ", "…": "… ", "—": "— ",
    ",": ", ", ".": ". ", "!": "! ", "?": "? ", ":": ": ", ";": "; ", "“": " “", "”": "” ",
}  # fmt: skip
_COMBINING = str.maketrans("", "", "\u032f")


class ChinesePronouncer:
    """Loading takes seconds the first time: jieba builds its dictionary and caches it."""

    spaced = False

    def __init__(self, latin: Pronouncer | None = None) -> None:
        self._words, self._say = _libraries()
        self._latin = latin

    def pronounce(self, text: str) -> list[Sound]:
        sounds: list[Sound] = []
        for piece in _PIECE.finditer(text):
            start, end = piece.span()
            if "\u4e00" <= piece[0][0] <= "\u9fff":
                sounds += self._phrase(piece[0], start)
            elif piece[0][0].isascii() and piece[0][0].isalpha():
                sounds += said_in_latin(self._latin, piece[0], start)
            else:
                mark = " " if piece[0].isspace() else _MARKS.get(piece[0], "")
                sounds.append(Sound(start, end, mark))
        return sounds

    def _phrase(self, phrase: str, position: int) -> list[Sound]:
        sounds: list[Sound] = []
        for word in self._words(phrase):
            end = position + len(word)
            said = str(self._say(word)).translate(_COMBINING)
            sounds += [Sound(position, end, said), Sound(end - 1, end - 1, " ")]
            position = end
        return sounds[:-1]


def _libraries() -> tuple[Any, Any]:
    import jieba

    jieba.setLogLevel(logging.WARNING)  # it reports its loading on stderr otherwise
    jieba.initialize()
    from misaki.zh import ZHG2P

    return jieba.lcut, ZHG2P.word2ipa
