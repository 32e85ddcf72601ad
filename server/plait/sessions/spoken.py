"""What of a stream's text its audio says, and by when: from marks to `cancelled.heard`.

Kept per word as two numbers, where it ends in its text and in the audio. At most MAX_CHARACTERS
of text (some 20 hours of speech) are remembered; of a longer stream the beginning is forgotten,
and what was heard is told from there on. Does NOT know which samples have left.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

import msgspec

MAX_CHARACTERS = 1024 * 1024


class _Word(msgspec.Struct):
    text: str
    end: float


class _Mark(msgspec.Struct):
    text: str
    end: float
    words: list[_Word] = []


class _MarkItem(msgspec.Struct):
    mark: _Mark


_decoder = msgspec.json.Decoder(_MarkItem)


@dataclass(frozen=True, slots=True)
class _Passage:
    """One mark: its text, the audio's milliseconds at its end, and its words' ends."""

    text: str
    end_ms: float
    word_ends: array[int]  # offsets into `text`
    word_ends_ms: array[float]


class Spoken:
    """Owned by one stream. Fed with marks in the order of the audio."""

    def __init__(self) -> None:
        self.characters = 0
        self._passages: deque[_Passage] = deque()
        self._held_characters = 0

    def add(self, item: bytes) -> None:
        """`item`: the JSON data of a mark item (PROTOCOL.md §3, `synthesize`)."""
        mark = _decoder.decode(item).mark
        self.characters += len(mark.text)
        self._held_characters += len(mark.text)
        self._passages.append(_passage(mark))
        while self._held_characters > MAX_CHARACTERS and len(self._passages) > 1:
            self._held_characters -= len(self._passages.popleft().text)

    def until(self, audio_ms: float) -> str:
        """The text spoken in the first `audio_ms`, to the last word that was over by then."""
        heard: list[str] = []
        for passage in self._passages:
            if passage.end_ms <= audio_ms:
                heard.append(passage.text)
                continue
            words = bisect_right(passage.word_ends_ms, audio_ms)
            if words:
                heard.append(passage.text[: passage.word_ends[words - 1]])
            break
        return "".join(heard)


def _passage(mark: _Mark) -> _Passage:
    ends, ends_ms = array("I"), array("d")
    at = 0
    for word in mark.words:
        found = mark.text.find(word.text, at)
        at = (at if found < 0 else found) + len(word.text)
        ends.append(min(at, len(mark.text)))
        ends_ms.append(_ms(word.end))
    return _Passage(mark.text, _ms(mark.end), ends, ends_ms)


def _ms(seconds: float) -> float:
    # Seconds as JSON shows them are rounded: 1.4 must not be later than 1400.
    return round(seconds * 1000, 3)
