"""One stream's text on its way to speech: fed in pieces, taken out in segments.

A stream's first segment is short, so that sound starts early; then come whole sentences of at most
about 200 phonemes. Where the next sentence is not complete yet and more text may come, a clause
is spoken as soon as it ends. Segments' texts joined are what was fed; each is at most
`MAX_PHONEMES` long. Work is linear in the text: only a bounded window is ever looked at. Does NOT
know voices, audio or time; not bounded itself, its caller bounds what it feeds ahead.
"""

from __future__ import annotations

from collections import deque

from plait.speech.borders import BorderFinder
from plait.speech.cutting import Cut, Cutter
from plait.speech.reading import Reading
from plait.speech.rewriting import Script
from plait.speech.segment import MAX_PHONEMES, Ending, Segment

WINDOW = 2_000  # characters looked at together
COMFORTABLE = 230  # phonemes of a segment that is not cut further
WANTED = 200


class SpokenText:
    """`feed` pieces of text, then `finish`; `next_segment` until `done`."""

    def __init__(self, reading: Reading) -> None:
        self.language = reading.language
        self._reading = reading
        self._arrived: deque[str] = deque()
        self._used = 0  # characters of the oldest piece that are in the window already
        self._window = ""
        self._finished = False
        self._finder = BorderFinder(reading.language)
        self._cutter = Cutter(reading.language)

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
        """Pronounce up to `cut`, or up to an earlier one where that is too long."""
        text = self._window[: cut.position]
        while True:
            script = self._reading.script(text)
            if len(text) > 1 and self._cutter.too_long_to_say(script.text):
                limit = _reach(script, len(text))
            else:
                spoken = self._reading.sound(text, script)
                if len(spoken.phonemes) <= COMFORTABLE or len(text) == 1:
                    break
                limit = len(text) * WANTED // len(spoken.phonemes)
            cut = self._cutter.shorter(text, limit)
            text = text[: cut.position]
        self._window = self._window[cut.position :]
        self._finder.drop(cut.position)
        self._cutter.drop(cut.position, spoke=bool(spoken.phonemes))
        assert len(spoken.phonemes) <= MAX_PHONEMES, len(spoken.phonemes)
        return Segment(text, _rounded_off(spoken.phonemes, cut.ending), spoken.words, cut.ending)


def _rounded_off(phonemes: str, ending: Ending) -> str:
    """A heading or a list item falls like a sentence, though no full stop is written."""
    unfinished = ending == "sentence" and phonemes and phonemes[-1] not in ".!?…,;:—"
    return f"{phonemes}." if unfinished else phonemes


def _reach(script: Script, length: int) -> int:
    """How much of a source of `length` characters a comfortable part of its script covers."""
    share = length * WANTED // len(script.text)
    start = script.starts[min(WANTED, len(script.text) - 1)]
    return start if start > share // 2 else share  # one rewrite may cover all of the source
