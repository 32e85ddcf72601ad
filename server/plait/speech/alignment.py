"""From sounds to a segment's phonemes and words, each word as it was written.

A pronouncer says which characters of the script every sound stands for; the script says which
characters of the source those were. A word is a run of source without white space, together with
all of what was said for it (`$5` is `five dollars`), and without the punctuation around it; where
words are not written apart, it is what the pronouncer took for one. Symbols the model does not
know are dropped here. Does NOT know languages.
"""

# ruff: noqa: RUF001 -- dashes
from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from typing import NamedTuple

from plait.speech.pronouncing import Sound
from plait.speech.rewriting import Script
from plait.speech.segment import Word
from plait.speech.vocabulary import SYMBOLS

_RUN = re.compile(r"[^\s—–]+")
_SILENT = frozenset(' ;:,.!?—…"()“”')
_MARKS = frozenset(",;:.!?")
_PAUSES = frozenset(",;:")

Spans = list[tuple[int, int]]


class Spoken(NamedTuple):
    """`phonemes` are of the vocabulary; words' ranges count in them."""

    phonemes: str
    words: tuple[Word, ...]


def align(source: str, script: Script, sounds: list[Sound], *, spaced: bool) -> Spoken:
    """Join `sounds`; nothing but punctuation is nothing to say.

    `spaced`: white space tells words, else sounds do.
    """
    joined = _Joined()
    for sound in sounds:
        origin = script.starts[min(sound.start, len(script.starts) - 1)]
        for symbol in sound.phonemes:
            if symbol in SYMBOLS:
                joined.add(symbol, origin)
    phonemes, origins = joined.phonemes, joined.origins
    while phonemes and phonemes[-1] == " ":
        phonemes.pop()
    if all(symbol in _SILENT for symbol in phonemes):
        return Spoken("", ())
    written = _written_words(source, script) if spaced else _sounding_words(script, sounds)
    return Spoken("".join(phonemes), tuple(_words(source, written, phonemes, origins)))


class _Joined:
    """Symbols in order, each with where its source begins; marks and spaces tidied up.

    Nothing opens with a pause, no two spaces follow each other, no space goes before a mark, and
    of two marks in a row one is left: what was rewritten leaves such things behind.
    """

    def __init__(self) -> None:
        self.phonemes: list[str] = []
        self.origins: list[int] = []

    def add(self, symbol: str, origin: int) -> None:
        if symbol == " " or symbol in _MARKS:
            if not self.phonemes:
                return
            if self.phonemes[-1] == " ":
                self._drop_last()
            if self.phonemes[-1] in _PAUSES and symbol in _PAUSES:
                return
            if self.phonemes[-1] in _PAUSES and symbol in _MARKS:
                self._drop_last()
            elif self.phonemes[-1] in _MARKS and symbol in _PAUSES:
                return
        self.phonemes.append(symbol)
        self.origins.append(origin)

    def _drop_last(self) -> None:
        self.phonemes.pop()
        self.origins.pop()


def _words(source: str, written: Spans, phonemes: list[str], origins: list[int]) -> list[Word]:
    words: list[Word] = []
    index = 0
    for start, end in written:
        while index < len(phonemes) and origins[index] < start:
            index += 1
        first = index
        while index < len(phonemes) and origins[index] < end:
            index += 1
        last = index
        while first < last and phonemes[first] in _SILENT:
            first += 1
        while last > first and phonemes[last - 1] in _SILENT:
            last -= 1
        if first < last:
            words.append(Word(source[start:end], first, last))
    return words


def _written_words(source: str, script: Script) -> Spans:
    """Runs without white space, those a rewrite spans joined, punctuation around them cut off."""
    sounding = [index for index, char in enumerate(source) if _is_of_a_word(char)]
    silent: set[int] = set()
    spans = [match.span() for match in _RUN.finditer(source)]
    for said in script.rewrites:
        silent.update(range(said.start, said.end))
        if any(char.isalnum() for char in said.spoken):
            spans.append((said.start, said.end))
            sounding += (said.start, said.end - 1)
            silent.difference_update((said.start, said.end - 1))
    kept = sorted({index for index in sounding if index not in silent})
    words = []
    for start, end in _joined(spans):
        inside = kept[bisect_left(kept, start) : bisect_left(kept, end)]
        if inside:
            words.append((inside[0], inside[-1] + 1))
    return words


def _is_of_a_word(char: str) -> bool:
    """Letters, digits, and the vowel signs of Indic scripts."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def _sounding_words(script: Script, sounds: list[Sound]) -> Spans:
    """What every sound stands for."""
    last = len(script.starts) - 1
    spans = [
        (script.starts[min(sound.start, last)], script.ends[min(sound.end - 1, last)])
        for sound in sounds
        if sound.end > sound.start and sound.phonemes.strip(' ;:,.!?—…"()“”')
    ]
    return _joined(spans)


def _joined(spans: Spans) -> Spans:
    """Spans that overlap become one."""
    joined: Spans = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
