"""Peers for the front end's tests: a pronouncer without libraries, and a stream's whole life."""

from __future__ import annotations

from collections.abc import Iterable

from plait.speech.pronouncing import Sound
from plait.speech.segment import Segment
from plait.speech.spoken_text import SpokenText


class LetterPronouncer:
    """Says every letter as itself, so that phonemes can be counted; knows how much it was given."""

    spaced = True

    def __init__(self) -> None:
        self.characters = 0

    def pronounce(self, text: str) -> list[Sound]:
        self.characters += len(text)
        return [Sound(index, index + 1, char.lower()) for index, char in enumerate(text)]


def take_all(spoken: SpokenText) -> list[Segment]:
    segments = []
    while (segment := spoken.next_segment()) is not None:
        segments.append(segment)
    return segments


def read_whole(spoken: SpokenText, text: str) -> list[Segment]:
    """All of the text is there before the first segment is taken."""
    spoken.feed(text)
    spoken.finish()
    return take_all(spoken)


def read_out(spoken: SpokenText, pieces: Iterable[str]) -> list[Segment]:
    """Feed piece by piece, taking segments in between, to the end."""
    segments = []
    for piece in pieces:
        spoken.feed(piece)
        segments += take_all(spoken)
    spoken.finish()
    return segments + take_all(spoken)
