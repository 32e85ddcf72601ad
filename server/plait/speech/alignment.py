"""From sounds to a segment's phonemes and words, each word as it was written.

A pronouncer says which characters of the script every sound stands for; the script says which
characters of the source those were. A word is a run of source without white space, together with
all of what was said for it (`$5` is `five dollars`), and without the punctuation around it.
Symbols the model does not know are dropped here. Does NOT know languages.
"""

# ruff: noqa: RUF001 -- writing systems are what this module is about
from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from plait.speech.rewriting import Script
from plait.speech.segment import Word
from plait.speech.vocabulary import SYMBOLS

_RUN = re.compile(r"[^\s—–]+")
_SILENT = frozenset(' ;:,.!?—…"()“”')


class Sound(NamedTuple):
    """`phonemes` are how `script.text[start:end]` is said. Sounds come in order."""

    start: int
    end: int
    phonemes: str


class Spoken(NamedTuple):
    """`phonemes` are of the vocabulary; words' ranges count in them."""

    phonemes: str
    words: tuple[Word, ...]


def align(source: str, script: Script, sounds: list[Sound]) -> Spoken:
    """Join `sounds`; nothing but punctuation is nothing to say."""
    phonemes: list[str] = []
    origins: list[int] = []  # of each phoneme: where its source begins
    for sound in sounds:
        for symbol in sound.phonemes:
            if symbol not in SYMBOLS or (symbol == " " and (not phonemes or phonemes[-1] == " ")):
                continue
            phonemes.append(symbol)
            origins.append(script.starts[min(sound.start, len(script.starts) - 1)])
    while phonemes and phonemes[-1] == " ":
        phonemes.pop()
    if all(symbol in _SILENT for symbol in phonemes):
        return Spoken("", ())
    return Spoken("".join(phonemes), tuple(_words(source, script, phonemes, origins)))


def _words(source: str, script: Script, phonemes: list[str], origins: list[int]) -> list[Word]:
    words: list[Word] = []
    index = 0
    for start, end in _written_words(source, script):
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


def _written_words(source: str, script: Script) -> list[tuple[int, int]]:
    """Runs without white space, those a rewrite spans joined, punctuation around them cut off."""
    sounding = [index for index, char in enumerate(source) if char.isalnum()]
    silent: set[int] = set()
    spans = [match.span() for match in _RUN.finditer(source)]
    for said in script.rewrites:
        silent.update(range(said.start, said.end))
        if said.spoken.strip():
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


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap become one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
