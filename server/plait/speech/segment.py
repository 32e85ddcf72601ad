"""A segment: a piece of text with its phonemes, the unit in which speech is computed.

The texts of a stream's segments, joined, are its input to the character: nothing is dropped, and
what cannot be spoken (an emoji) rides along with what can. Does NOT know models, audio or time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX_PHONEMES = 500  # Kokoro reads 510 symbols; the front end stays clear of that

Ending = Literal["sentence", "clause", "split"]


@dataclass(frozen=True, slots=True)
class Word:
    """One word as written; `phonemes[first:last]` of its segment are how it sounds."""

    text: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Segment:
    """`text` is verbatim source, white space included.

    `phonemes` are symbols of the model's vocabulary only, at most `MAX_PHONEMES`; empty when there
    is nothing to say. `ending` says what follows the segment: a sentence's pause, a clause's, or
    none where a text without punctuation had to be split.
    """

    text: str
    phonemes: str
    words: tuple[Word, ...]
    ending: Ending
