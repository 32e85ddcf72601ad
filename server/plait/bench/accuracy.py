"""Word error rate: the fewest words to substitute, insert or delete, over the words there are.

Case, punctuation and hyphens do not count, and "Mr" is "mister". Pure. Does NOT know recordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NO_WORD = re.compile(r"[^\w']+")
_SPOKEN = {"mr": "mister", "mrs": "missus"}


@dataclass(frozen=True, slots=True)
class WordErrors:
    """`errors` against `words` of reference."""

    errors: int
    words: int

    @property
    def rate(self) -> float:
        """May be above 1. Of an empty reference: 0 when nothing was said, else infinite."""
        if not self.words:
            return float("inf") if self.errors else 0.0
        return self.errors / self.words

    @classmethod
    def of(cls, reference: str, said: str) -> WordErrors:
        expected = words_of(reference)
        return cls(edit_distance(expected, words_of(said)), len(expected))

    @classmethod
    def sum(cls, parts: Iterable[WordErrors]) -> WordErrors:
        pairs = [(part.errors, part.words) for part in parts]
        return cls(sum(errors for errors, _ in pairs), sum(words for _, words in pairs))


def words_of(text: str) -> list[str]:
    """As they are compared."""
    words = (word.strip("'") for word in _NO_WORD.split(text.lower()))
    return [_SPOKEN.get(word, word) for word in words if word]


def edit_distance(expected: Sequence[str], said: Sequence[str]) -> int:
    """Levenshtein's, by words; memory of one row."""
    row = list(range(len(said) + 1))
    for count, word in enumerate(expected, 1):
        diagonal, row[0] = row[0], count
        for place, other in enumerate(said, 1):
            kept = diagonal + (word != other)
            diagonal, row[place] = row[place], min(kept, row[place] + 1, row[place - 1] + 1)
    return row[-1]


def common_words(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
