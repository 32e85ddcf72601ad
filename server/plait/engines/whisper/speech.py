"""A stretch of speech on its way to text: where it lies, how far it is decoded, when to decode.

`Pace` holds the times that make latency, cost and accuracy what they are. All positions are
samples from the stream's beginning. Does NOT know the model, JSON or other stretches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from plait.engines.whisper.detector import FRAME_SAMPLES
from plait.engines.whisper.words import SAMPLE_RATE, Word


def _samples(seconds: float) -> int:
    return int(seconds * SAMPLE_RATE)


LONG_STEP = 10  # the step is at least so great a part of the window, which costs by its length
MOST_UNDECODED = _samples(10.0)  # where interims are not wanted: less than a reader lets wait


@dataclass(frozen=True, slots=True)
class Pace:
    """In samples. What each costs and gains was measured on real speech (tests/engines/whisper)."""

    first: int = _samples(0.40)  # speech before the first decode
    least: int = 0  # audio in a window that is not the closing one
    step: int = _samples(0.80)  # least new audio between two decodes
    pause: int = _samples(0.10)  # silence after which the closing decode begins
    pause_unseen: int = _samples(0.25)  # the same where a decode too many would be for nobody
    doubt: int = _samples(0.06)  # silence after which no interim is begun
    tail: int = _samples(0.20)  # silence that goes with the speech before it
    cover: int = _samples(0.08)  # a window that goes that far beyond the voice has heard it all
    sentence: int = _samples(0.20)  # least silence that ends a segment at the end of a sentence
    preroll: int = _samples(0.30)  # audio before the first frame that was speech
    guess: int = _samples(1.00)  # speech before the first decode where the language is not known
    language: int = _samples(2.00)  # audio that a language is told by for good

    def without_interims(self, split_at: int) -> Pace:
        """Nobody sees what comes between: only long stretches are decoded before they pause."""
        least = min(MOST_UNDECODED, split_at - self.step)
        return replace(self, least=least, pause=self.pause_unseen)

    def guessing(self) -> Pace:
        """While the language has to be told first."""
        return replace(self, first=max(self.first, self.guess))

    def within(self, silence: int) -> Pace:
        """No pause is longer than the `silence` that ends a segment, and the end of a sentence
        needs seven tenths of it."""
        sentence = min(silence, max(self.sentence, silence * 7 // 10))
        return replace(self, pause=min(self.pause, silence), sentence=sentence)


LEAST_FRAMES = 3  # voiced, of a stretch that goes on after a pause


@dataclass(slots=True)
class Speech:
    begin: int
    onset: int
    voiced_to: int
    ended: bool = False
    decoded_to: int = 0
    words: list[Word] = field(default_factory=list)
    agreed: int = 0
    said: list[str] = field(default_factory=list)
    """The end of what was split off before `begin`, as plain words."""
    has_voice: bool = True
    _voiced_frames: int = 0

    def voiced(self, voiced_to: int, pace: Pace) -> None:
        """Its newest frame of speech ends at `voiced_to`."""
        if voiced_to <= self.voiced_to:
            return
        self.voiced_to = voiced_to
        if self.has_voice:
            return
        if self._voiced_frames == 0:
            self.onset = voiced_to - FRAME_SAMPLES
        self._voiced_frames += 1
        if self._voiced_frames >= LEAST_FRAMES:
            self.has_voice = True
            self.begin = max(self.begin, self.onset - pace.preroll)

    def reach(
        self, judged_to: int, heard_to: int, longest: int, pace: Pace
    ) -> tuple[int, bool] | None:
        """How far to decode now, and if that closes it; None: not yet, or nothing new."""
        if not self.has_voice or self.covered(heard_to, pace):
            return None
        limit = self.begin + longest
        paused = self.ended or judged_to - self.voiced_to >= pace.pause
        if paused and self.voiced_to + pace.cover <= limit:
            return min(heard_to, limit, self.voiced_to + pace.tail), True
        quiet = not self.ended and judged_to - self.voiced_to >= pace.doubt
        end = min(heard_to, limit)
        if self.ended or end == limit:
            return (end, False) if end > self.decoded_to else None
        if end - self.begin < pace.least:
            return None
        if quiet:  # perhaps a pause: an interim now would keep its closing decode waiting
            return None
        if self.decoded_to <= self.begin:
            return (end, False) if end - self.onset >= pace.first else None
        step = max(pace.step, (end - self.begin) // LONG_STEP) if self.words else pace.first
        return (end, False) if end - self.decoded_to >= step else None

    def covered(self, heard_to: int, pace: Pace) -> bool:
        """All of its voice so far is decoded."""
        if not self.has_voice:
            return True
        return self.decoded_to >= min(heard_to, self.voiced_to + pace.cover)

    @property
    def undecoded(self) -> int:
        return max(0, self.voiced_to - max(self.onset, self.decoded_to)) if self.has_voice else 0

    def go_on(self, at: int, words: Sequence[Word] = (), said: Sequence[str] = ()) -> None:
        """What lies before `at` is final; it goes on as a stretch of its own with the `words` that
        are heard of it already, or with nothing, and then what is left may be silence."""
        self.agreed = max(0, self.agreed - (len(self.words) - len(words)))
        self.begin = self.onset = at
        self.words, self.said = list(words), list(said)
        self._voiced_frames = 0
        self.has_voice = bool(words) or self.voiced_to - at >= LEAST_FRAMES * FRAME_SAMPLES
