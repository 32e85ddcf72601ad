"""Japanese by misaki's cutlet: MeCab's readings (fugashi, unidic-lite), kana to Kokoro's symbols.

Words in Latin letters are said by an English pronouncer where there is one. Does NOT normalise.
"""

# ruff: noqa: RUF001 -- Japanese punctuation
from __future__ import annotations

import re
from typing import Any

from plait.speech.pronouncing import Pronouncer, Sound

_PIECE = re.compile(
    r"[A-Za-z][A-Za-z' -]*[A-Za-z]|[A-Za-z]|[^A-Za-z、。，．！？：；…!?,.:;\s]+|.", re.DOTALL
)
_MARKS = {
    "、": ", ", "，": ", ", "。": ". ", "．": ". ", "！": "! ", "？": "? ", "：": ": ", "；": "; ",
    "…": "…", "!": "! ", "?": "? ", ",": ", ", ".": ". ", ":": ": ", ";": "; ",
}  # fmt: skip


class JapanesePronouncer:
    """Loading takes about half a second: the dictionary is mapped into memory."""

    spaced = False

    def __init__(self, latin: Pronouncer | None = None) -> None:
        self._cutlet = _make_cutlet()
        self._latin = latin

    def pronounce(self, text: str) -> list[Sound]:
        sounds: list[Sound] = []
        for piece in _PIECE.finditer(text):
            start, end = piece.span()
            if piece[0] in _MARKS:
                sounds.append(Sound(start, end, _MARKS[piece[0]]))
            elif piece[0].isspace():
                sounds.append(Sound(start, end, " "))
            elif piece[0][0].isascii() and piece[0][0].isalpha():
                sounds += said_in_latin(self._latin, piece[0], start)
            else:
                sounds += self._phrase(piece[0], start)
        return sounds

    def _phrase(self, phrase: str, offset: int) -> list[Sound]:
        """Words in order; each is found in the phrase by its surface, or assumed to follow."""
        self._cutlet.said.clear()
        whole = str(self._cutlet(phrase)[0])
        sounds: list[Sound] = []
        position = heard = 0
        for surface, sound in self._cutlet.said:
            found = phrase.find(surface, position)
            start = min(found if found >= 0 else position, len(phrase) - 1)
            position = min(start + max(1, len(surface)), len(phrase))
            if not sound:
                continue
            at = whole.find(sound, heard)
            gap = " " if at > heard or at < 0 else ""
            heard = at + len(sound) if at >= 0 else heard
            sounds += [Sound(offset + start, offset + start, gap)] if gap else []
            sounds.append(Sound(offset + start, offset + position, sound))
        return sounds


def said_in_latin(latin: Pronouncer | None, text: str, offset: int) -> list[Sound]:
    """A word of Latin letters in a text of another script, set apart by spaces."""
    said = latin.pronounce(text) if latin is not None else []
    inner = [Sound(offset + one.start, offset + one.end, one.phonemes) for one in said]
    end = offset + len(text)
    return [Sound(offset, offset, " "), *inner, Sound(end - 1, end - 1, " ")] if inner else []


def _make_cutlet() -> Any:
    from misaki.cutlet import Cutlet

    class TellingCutlet(Cutlet):  # type: ignore[misc]
        """misaki's, and it tells how each word was said."""

        def __init__(self) -> None:
            super().__init__()
            self.said: list[tuple[str, str]] = []

        def _romaji_word(self, word: Any) -> str:
            said = str(super()._romaji_word(word))
            self.said.append((word.surface, said.replace("っ", "")))
            return said

    return TellingCutlet()
