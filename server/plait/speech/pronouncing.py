"""What every language's pronouncer satisfies, and how odd text is kept from breaking one.

`pronounce` takes text as it is to be said (normalised: words and punctuation, single spaces) and
tells the sounds of its characters, in order; what it cannot say it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Sound(NamedTuple):
    """`phonemes` are how characters `start` to `end` of the text are said."""

    start: int
    end: int
    phonemes: str


class Pronouncer(Protocol):
    """One language. `spaced`: its words are written apart, so white space tells words."""

    spaced: bool

    def pronounce(self, text: str) -> list[Sound]: ...


def tolerant(pronounce: Callable[[str], list[Sound]], text: str) -> list[Sound]:
    """`pronounce(text)`; where that raises, only the words that made it raise are left out."""
    try:
        return pronounce(text)
    except Exception:  # noqa: BLE001 -- dictionary code asserts and raises anything on odd text
        middle = text.rfind(" ", 0, len(text) // 2 + 1) + 1 or len(text) // 2
        if len(text) < 2 or middle == 0:
            return []
        head, tail = tolerant(pronounce, text[:middle]), tolerant(pronounce, text[middle:])
        return head + [Sound(middle + one.start, middle + one.end, one.phonemes) for one in tail]
