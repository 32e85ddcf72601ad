"""What goes into the decoder and what comes out: windows of samples, words with times.

`settled_words` is the guard every result passes: what a model says about silence, music or noise
(`[BLANK_AUDIO]`, `(coughs)`, notes), and what it says over and over, is no speech. The cuts are
those of whisper.cpp's own output conventions and of repetition loops that were measured. Does NOT
know the model, segments or revisions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 16_000  # of everything after the intake

Floats = NDArray[np.float32]

_NO_WORD = re.compile(r"[\W_]*")
_NOT_IN_A_WORD = re.compile(r"[^\w']")
_OPENING, _CLOSING = "[(*♪", "])*♪"

LEAST_CONFIDENCE = 0.2
LONGEST_LOOP_WORDS = 12
SAID_TWICE_WORDS = 4  # that many words said again at once: the model stutters, nobody does


@dataclass(frozen=True, slots=True)
class Word:
    """`text` with the space before it, as the model gave it; seconds from the window's start."""

    text: str
    start: float
    end: float
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Window:
    """Samples to decode now. `closing`: speech has paused, so a reader waits for the final.

    `language` None asks the decoder to detect it. `end_sample` is how `Hearing` knows the window
    again; nobody else's business.
    """

    samples: Floats
    start_seconds: float
    closing: bool
    language: str | None
    prompt: str
    end_sample: int = 0


@dataclass(frozen=True, slots=True)
class Decoded:
    words: list[Word] = field(default_factory=list)
    language: str | None = None


def plain(text: str) -> str:
    """The word as it is compared: lower case, letters, digits and apostrophes."""
    return _NOT_IN_A_WORD.sub("", text.lower())


def text_of(words: Sequence[Word]) -> str:
    return "".join(word.text for word in words).strip()


def guessed(words: Sequence[Word]) -> bool:
    """The model itself does not believe in them: the beginning of a word, heard too early."""
    return sum(word.probability for word in words) < LEAST_CONFIDENCE * len(words)


def settled_words(words: Sequence[Word]) -> list[Word]:
    """`words` without sounds that are no speech and without loops; [] if nothing was said."""
    kept = without_loops(without_sounds(words))
    return [] if _NO_WORD.fullmatch(text_of(kept)) else kept


def without_sounds(words: Sequence[Word]) -> list[Word]:
    """Drops `[BLANK_AUDIO]`, `(door slams)`, `*music*`, `♪ la la ♪`; an unclosed one to its end."""
    kept: list[Word] = []
    closing = ""
    for word in words:
        text = word.text.strip()
        if not closing and text[:1] and text[0] in _OPENING:
            closing = _CLOSING[_OPENING.index(text[0])]
            text = text[1:]
        elif not closing:
            kept.append(word)
            continue
        if closing in text:
            closing = ""
    return kept


def without_loops(words: Sequence[Word]) -> list[Word]:
    """Cuts where a loop begins: what is said more than twice in a row is kept twice, and ends it.

    Four words or more are kept once: on a short context the model says a short utterance twice.
    """
    plains = [plain(word.text) for word in words]
    for size in range(1, min(LONGEST_LOOP_WORDS, len(plains) // 2) + 1):
        keep = 1 if size >= SAID_TWICE_WORDS else 2
        for first in range(len(plains) - size * (keep + 1) + 1):
            if _repeats(plains, first, size) > keep:
                return list(words[: first + size * keep])
    return list(words)


def _repeats(plains: list[str], first: int, size: int) -> int:
    said = plains[first : first + size]
    count = 1
    while plains[first + count * size : first + (count + 1) * size] == said:
        count += 1
    return count
