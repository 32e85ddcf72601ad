"""Which of the known borders a segment ends at.

First segment: at most about eight words, up to a clause border if there is one, else before a word
that opens a phrase; a short sentence stays whole. Later ones: a whole sentence; a clause when the
rest of the sentence has not arrived; the last clause border, else the last space, where a sentence
is too long. Lengths are guessed in characters here and checked in phonemes by the caller, who asks
for something `shorter` where the guess was wrong. Does NOT know where borders come from.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from plait.speech.borders import Border
from plait.speech.segment import Ending

FIRST_WORDS = 8
_FIRST_CLAUSE_WORDS = 2  # neither side of the first cut is shorter
_UNCUT_WORDS = 5  # a first sentence this short stays whole, whatever is in it
_CLAUSE_WORDS = 4  # shorter clauses wait for more: on their own they sound chopped
_CHARACTERS = {"zh": 48, "ja": 80}  # about 200 phonemes
_ALPHABETIC_CHARACTERS = 210

_GAP = re.compile(r"\S+\s+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SPEAKABLE = re.compile(r"[^\W_]")


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words a phrase begins with: a voice may take breath before them, never behind them.
_CONJUNCTIONS = words_of("""
    and but or because so that which who when while where if although though as than
    y pero o porque que cuando donde si aunque et mais ou parce quand où e ma perché mas se
""")
_PREPOSITIONS = words_of("""
    in on at of to for with from by into about over under after before between through during
    en de con por para sin sobre dans à pour avec sur par di da per su em com sem
""")
_DETERMINERS = words_of("""
    a an the my your his her its our their this these those some every
    el la los las un una unos unas le les du des il lo gli i os as um uma mon ma mes ses
""")
_LEANING = _DETERMINERS | words_of("is are was were be there such very more most not no two three")


class Cut(NamedTuple):
    """The segment ends before `position`, with this ending."""

    position: int
    ending: Ending


class Cutter:
    """One stream's borders that are not used yet, and whether anything was spoken."""

    def __init__(self, language: str) -> None:
        self.borders: list[Border] = []
        self._first = True
        self._limit = _CHARACTERS.get(language, _ALPHABETIC_CHARACTERS)

    def add(self, borders: list[Border]) -> None:
        self.borders += borders

    def drop(self, count: int, *, spoke: bool) -> None:
        """`count` characters were taken; `spoke`: there was something to say in them."""
        self.borders = [
            Border(border.position - count, border.kind)
            for border in self.borders
            if border.position > count
        ]
        self._first = self._first and not spoke

    def cut(self, window: str, *, complete: bool, full: bool) -> Cut | None:
        """-> where the next segment ends; None: more text has to come first.

        `complete`: the window holds all there is. `full`: it will not grow before a cut.
        """
        if not window:
            return None
        end = self._sentence_end(window, complete=complete)
        cut = self._first_cut(window, end) if self._first else None
        if cut is None and end is not None:
            cut = Cut(end, "sentence")
        if cut is None and not self._first:
            cut = self._clause(window)
        if cut is None and (full or len(window) > 2 * self._limit):
            cut = Cut(len(window), "split")
        if cut is not None and cut.position > self._limit:
            return self._long_cut(window)
        return cut

    def _sentence_end(self, window: str, *, complete: bool) -> int | None:
        """What has nothing to say for itself goes with its neighbour."""
        for border in self.borders:
            if border.kind == "sentence" and _SPEAKABLE.search(window, 0, border.position):
                silent_rest = complete and not _SPEAKABLE.search(window, border.position)
                return len(window) if silent_rest else border.position
        return len(window) if complete else None

    def _first_cut(self, window: str, end: int | None) -> Cut | None:
        if not self.borders and end is None and window.count(" ") < FIRST_WORDS:
            return None
        body = window[:end]
        words = _count_words(body, 2 * FIRST_WORDS)
        whole = words if end is not None else words + FIRST_WORDS  # unknown: there may be more
        if whole <= _UNCUT_WORDS:
            return None
        for border in self.borders:
            if border.kind == "clause" and border.position < len(body):
                count = _count_words(window[: border.position], FIRST_WORDS)
                if count > FIRST_WORDS:
                    break
                if _FIRST_CLAUSE_WORDS <= count <= whole - _FIRST_CLAUSE_WORDS:
                    return Cut(border.position, "clause")
        return _phrase_cut(body) if words > FIRST_WORDS else None

    def _long_cut(self, window: str) -> Cut:
        if not _SPEAKABLE.search(window):
            return Cut(len(window), "split")  # nothing to say: away with it
        return self.shorter(window, self._limit)

    def shorter(self, text: str, limit: int) -> Cut:
        """A cut of `text` at or before `limit`; shorter than `text` unless that is a character."""
        limit = max(1, min(limit, len(text) - 1))
        for border in reversed(self.borders):
            if limit // 4 <= border.position <= limit:
                return Cut(border.position, border.kind)
        return Cut(_last_space(text, limit), "split")

    def too_long_to_say(self, script: str) -> bool:
        """Whether normalised text is so long that it need not be tried."""
        return len(script) > 1.4 * self._limit

    def _clause(self, window: str) -> Cut | None:
        for border in reversed(self.borders):
            if border.kind == "clause" and border.position <= self._limit:
                enough = _count_words(window[: border.position], _CLAUSE_WORDS) >= _CLAUSE_WORDS
                return Cut(border.position, "clause") if enough else None
        return None


def _last_space(text: str, limit: int) -> int:
    """Behind the last white space up to `limit`, or `limit` where there is none near."""
    for position in range(limit, limit // 2, -1):
        if text[position - 1].isspace():
            return position
    return limit


def _count_words(text: str, enough: int) -> int:
    """Words with something to say; two characters of Chinese or Japanese count as one."""
    wide = len(_WIDE.findall(text)) if not text.isascii() else 0
    count = (wide + 1) // 2
    for word in text.split():
        if count > enough:
            break
        count += bool(_SPEAKABLE.search(word)) and not (wide and _WIDE.search(word))
    return count


def _phrase_cut(body: str) -> Cut | None:
    """Within the first words, before the one that best begins a phrase; None without spaces."""
    best, best_score = None, -2
    count = 0
    words = list(_GAP.finditer(body))[: 3 * FIRST_WORDS]
    for word, following in itertools.pairwise(words):
        count += bool(_SPEAKABLE.search(word[0]))
        if count > FIRST_WORDS:
            break
        score = _score(word[0].strip(), following[0].strip())
        if count >= FIRST_WORDS // 2 and score >= best_score:
            best, best_score = Cut(word.end(), "split"), score
    return best


def _score(word: str, following: str) -> int:
    if word[0].isupper() and following[0].isupper():
        return -1  # a name
    word, following = word.lower(), following.lower()
    if word in _LEANING or word in _PREPOSITIONS or word in _CONJUNCTIONS:
        return -1
    if following in _CONJUNCTIONS:
        return 2
    return 1 if following in _PREPOSITIONS or following in _DETERMINERS else 0
