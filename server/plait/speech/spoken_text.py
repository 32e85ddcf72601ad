"""One stream's text on its way to speech: fed in pieces, taken out in segments.

A stream's first segment is short, so that sound starts early; then come whole sentences of at most
about 200 phonemes. Where the next sentence is not complete yet and more text may come, a clause
is spoken as soon as it ends. Segments' texts joined are what was fed; each is at most
`MAX_PHONEMES` long. Work is linear in the text: only a bounded window is ever looked at. Does NOT
know voices, audio or time; not bounded itself, its caller bounds what it feeds ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from plait.speech.alignment import Spoken
from plait.speech.borders import BorderFinder
from plait.speech.cutting import Cut, Cutter, shorter
from plait.speech.segment import MAX_PHONEMES, Segment

Speak = Callable[[str], Spoken]

WINDOW = 2_000  # characters looked at together
_COMFORTABLE = 230  # phonemes of a segment that is not cut further
_WANTED = 200


class SpokenText:
    """`feed` pieces of text, then `finish`; `next_segment` until `done`."""

    def __init__(self, language: str, speak: Speak) -> None:
        self.language = language
        self._speak = speak
        self._arrived: deque[str] = deque()
        self._used = 0  # characters of the oldest piece that are in the window already
        self._window = ""
        self._finished = False
        self._finder = BorderFinder(language)
        self._cutter = Cutter(language)

    def feed(self, text: str) -> None:
        assert not self._finished, "text after finish"
        if text:
            self._arrived.append(text)

    def finish(self) -> None:
        """No more text will come: what is left is spoken to its end."""
        self._finished = True

    @property
    def done(self) -> bool:
        return self._finished and not self._window and not self._arrived

    def next_segment(self) -> Segment | None:
        """The next piece to speak; None until more text is fed, or for good when `done`."""
        self._fill()
        complete = self._finished and not self._arrived
        self._cutter.add(self._finder.scan(self._window, complete=complete))
        cut = self._cutter.cut(self._window, complete=complete, full=len(self._window) >= WINDOW)
        return None if cut is None else self._take(cut)

    def _fill(self) -> None:
        room = WINDOW - len(self._window)
        pieces = []
        while room > 0 and self._arrived:
            piece = self._arrived[0][self._used : self._used + room]
            self._used += len(piece)
            if self._used == len(self._arrived[0]):
                self._arrived.popleft()
                self._used = 0
            pieces.append(piece)
            room -= len(piece)
        if pieces:
            self._window += "".join(pieces)

    def _take(self, cut: Cut) -> Segment:
        text = self._window[: cut.position]
        spoken = self._speak(text)
        while len(spoken.phonemes) > _COMFORTABLE:
            cut = shorter(text, spoken, _WANTED, self._cutter.borders)
            if cut.position >= len(text):
                break
            text = text[: cut.position]
            spoken = self._speak(text)
        self._window = self._window[cut.position :]
        self._finder.drop(cut.position)
        self._cutter.drop(cut.position, spoke=bool(spoken.phonemes))
        assert len(spoken.phonemes) <= MAX_PHONEMES, len(spoken.phonemes)
        return Segment(text, spoken.phonemes, spoken.words, cut.ending)
