"""One stream's ears: PCM bytes in, windows to decode and items out.

Speech is found by the detector; the window of the current stretch of it grows and is decoded again
and again, and what two decodes agree on is settled. A stretch is final once it has paused for
`silence_ms` (a little sooner after the end of a sentence), or in part where it is long and its
text is settled. Held is at most one window and what was heard and not yet decoded, which
`backlog_seconds` tells, so that the reader can stop reading; silence holds nothing.

Pure: no clock, no threads, no model. The caller feeds, asks what is `due`, decodes it, and gives it
to `take`; a window that was asked for and not taken does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from plait.engines.whisper.agreement import (
    agreed_words,
    ends_sentence,
    split_after,
    without_overlap,
)
from plait.engines.whisper.detector import FRAME_SAMPLES, Detector
from plait.engines.whisper.endpoint import Endpointer, Turn
from plait.engines.whisper.intake import Intake
from plait.engines.whisper.segment import Extent, Heard, SegmentWriter
from plait.engines.whisper.speech import Pace, Speech
from plait.engines.whisper.tape import Arrivals, Tape, quietest
from plait.engines.whisper.words import (
    SAMPLE_RATE,
    Decoded,
    Window,
    Word,
    guessed,
    plain,
    settled_words,
)

__all__ = ["Decoded", "Detector", "Heard", "Hearing", "Pace", "Window", "Word"]

LONGEST_WINDOW_SECONDS = 28.0  # the model hears 30
OVERLAP_WORDS = 4
CUT_SLACK_SECONDS = 0.1  # words' times are that rough
FORCED_CUT_SAMPLES = 3 * SAMPLE_RATE  # where a cut by force may be
UNHEARD_SECONDS = 0.3  # between words: here the model stopped listening


class Hearing:
    """`params`: TranscribeParams as a plain dict, defaults left out; `pace` only for tuning."""

    def __init__(
        self,
        params: Mapping[str, Any],
        detector: Detector,
        *,
        multilingual: bool,
        pace: Pace | None = None,
    ) -> None:
        silence = params.get("silence_ms", 500) * SAMPLE_RATE // 1000
        longest = params.get("max_segment_seconds", 12.0)
        self._split_at = int(longest * SAMPLE_RATE)
        pace = pace or Pace()
        if not params.get("interim", True):
            pace = pace.without_interims(self._split_at)
        self._pace = pace.within(silence)
        self._force_at = int(min(2 * longest, LONGEST_WINDOW_SECONDS) * SAMPLE_RATE)
        self._prompt: str = params.get("prompt") or ""
        self._language: str | None = params.get("language")
        self._detects_language = multilingual and self._language is None
        self._events: bool = params.get("events", False)
        self._intake = Intake(
            params["sample_rate"], params.get("channels", 1), params.get("encoding", "pcm_s16le")
        )
        self._detector = detector
        self._endpointer = Endpointer(params.get("speech_threshold", 0.5), silence)
        self._writer = SegmentWriter(
            interim=params.get("interim", True), words=params.get("words", False)
        )
        self._tape = Tape()
        self._arrivals = Arrivals()
        self._speeches: deque[Speech] = deque()  # bounded by whoever reads `backlog_seconds`
        self._free_from = 0
        self._finished = False

    # -- input --------------------------------------------------------------------------------

    def feed(self, data: bytes | memoryview, now: float) -> list[Heard]:
        """More audio, received at `now` (monotonic seconds). Raises InvalidAudio."""
        assert not self._finished, "fed after finish"
        samples = self._intake.take(data)
        self._arrivals.note(self._intake.received_samples, now)
        self._tape.append(samples)
        items = self._judge_frames(now)
        self._forget()
        return items

    def finish(self) -> list[Heard]:
        """No more audio: whatever was said becomes final, by `take` where it is not decoded yet."""
        assert not self._finished, "finished twice"
        self._finished = True
        self._tape.append(self._intake.finish())
        at = self._arrivals.at(self._tape.end)
        total = self._tape.end
        rest = total - self._endpointer.position
        self._tape.append(np.zeros(-rest % FRAME_SAMPLES, np.float32))
        items = self._judge_frames(at)
        for turn in self._endpointer.finish(total):
            items += self._turn(turn)
        return items + self._settle(at)

    def _judge_frames(self, now: float) -> list[Heard]:
        items: list[Heard] = []
        ears = self._endpointer
        while self._tape.end - ears.position >= FRAME_SAMPLES:
            frame = self._tape.view(ears.position, ears.position + FRAME_SAMPLES)
            turn = ears.judge(self._detector(frame))
            if turn is not None:
                items += self._turn(turn)
            elif ears.speaking:
                self._speeches[-1].voiced(ears.voiced_to, self._pace)
            items += self._settle(now)
        return items

    def _turn(self, turn: Turn) -> list[Heard]:
        if turn.kind == "started":
            begin = max(self._free_from, self._tape.begin, turn.at - self._pace.preroll)
            self._speeches.append(Speech(begin, turn.at, self._endpointer.voiced_to))
        else:
            self._speeches[-1].ended = True
            self._speeches[-1].voiced_to = turn.at
            self._free_from = turn.at
        return [self._writer.event(f"speech_{turn.kind}", turn.at)] if self._events else []

    # -- decoding -----------------------------------------------------------------------------

    def due(self) -> Window | None:
        """What to decode now, or None. The newest state: who asks later gets a wider window."""
        if not self._speeches:
            return None
        speech = self._speeches[0]
        pace = self._pace.guessing() if self._detects_language else self._pace
        reach = speech.reach(self._endpointer.position, self._tape.end, self._force_at, pace)
        if reach is None:
            return None
        end, closing = reach
        return Window(
            samples=self._tape.copy(speech.begin, end),
            start_seconds=speech.begin / SAMPLE_RATE,
            closing=closing,
            language=self._language,
            prompt=self._prompt,
            end_sample=end,
        )

    def take(self, window: Window, decoded: Decoded, now: float) -> list[Heard]:
        """What `window` was decoded to. A window that time has overtaken is ignored."""
        speech = self._speeches[0] if self._speeches else None
        begin = round(window.start_seconds * SAMPLE_RATE)
        if speech is None or speech.begin != begin or window.end_sample <= speech.decoded_to:
            return []
        self._writer.decoded(window.end_sample - max(begin, speech.decoded_to))
        self._learn_language(window, decoded)
        words = [_moved(word, window) for word in settled_words(decoded.words)]
        words = without_overlap(words, speech.said, OVERLAP_WORDS)
        if guessed(words) and not window.closing:
            words = []
        speech.agreed = agreed_words(words, speech.words)
        speech.words = words
        speech.decoded_to = window.end_sample
        items = self._settle(now) or self._split(speech, now) + self._settle(now)
        items += self._show(now)
        self._forget()
        return items

    def _learn_language(self, window: Window, decoded: Decoded) -> None:
        if not self._detects_language or decoded.language is None or not decoded.words:
            return
        if window.closing or len(window.samples) >= self._pace.language:
            self._language = self._writer.language = decoded.language
            self._detects_language = False

    # -- output -------------------------------------------------------------------------------

    @property
    def _front(self) -> Speech | None:
        return self._speeches[0] if self._speeches else None

    def _settle(self, now: float) -> list[Heard]:
        """The final of the stretch in front, if all of it is decoded and it has ended."""
        items: list[Heard] = []
        while self._speeches:
            speech = self._speeches[0]
            if not speech.covered(self._tape.end, self._pace):
                break
            if speech.ended:
                items += self._writer.final(speech.words, self._extent(speech, now))
                self._speeches.popleft()
            elif self._ended_early(speech):
                items += self._writer.final(speech.words, self._extent(speech, now))
                speech.go_on(speech.decoded_to)
            else:
                break
        return items

    def _ended_early(self, speech: Speech) -> bool:
        quiet = self._endpointer.position - speech.voiced_to
        return speech.has_voice and quiet >= self._pace.sentence and ends_sentence(speech.words)

    def _split(self, speech: Speech, now: float) -> list[Heard]:
        """Of a long stretch the beginning becomes final where it is settled, or by force."""
        length = speech.decoded_to - speech.begin
        forced = length >= self._force_at
        if not forced and (length < self._split_at or speech.ended):
            return []
        cut = self._settled_cut(speech) or (self._forced_cut(speech) if forced else None)
        if cut is None:
            return []
        count, at = cut
        first, rest = speech.words[:count], speech.words[count:]
        items = self._writer.final(first, self._extent(speech, now, end=at))
        speech.go_on(at, rest, said=[plain(word.text) for word in first[-OVERLAP_WORDS:]])
        return items

    def _settled_cut(self, speech: Speech) -> tuple[int, int] | None:
        """How many words, and the sample after them; None where too few are settled."""
        agreed = min(speech.agreed, len(speech.words) - 1)  # the last one may not be over
        if agreed < 1:
            return None
        count = split_after(speech.words, agreed)
        last, following = speech.words[count - 1], speech.words[count]
        low = int((last.end - CUT_SLACK_SECONDS) * SAMPLE_RATE)
        high = int((max(last.end, following.start) + CUT_SLACK_SECONDS) * SAMPLE_RATE)
        low = max(low, speech.begin + self._split_at // 3)
        high = min(high, speech.decoded_to)
        return (count, low + quietest(self._tape.view(low, high))) if low < high else None

    def _forced_cut(self, speech: Speech) -> tuple[int, int]:
        """In the quietest moment of the window's end, whatever was said; but what the model left
        out before it is given to the next window."""
        low = max(speech.begin, speech.decoded_to - FORCED_CUT_SAMPLES)
        at = low + quietest(self._tape.view(low, speech.decoded_to))
        seconds = at / SAMPLE_RATE
        first = [word for word in speech.words if (word.start + word.end) / 2 < seconds]
        if first and seconds - first[-1].end > UNHEARD_SECONDS:
            slack = int(CUT_SLACK_SECONDS * SAMPLE_RATE)
            border = int(first[-1].end * SAMPLE_RATE)
            low = max(border - slack, speech.begin + self._force_at // 4)
            if low < border + slack:  # else hardly anything was heard: it would not get on
                at = low + quietest(self._tape.view(low, border + slack))
        return len(first), at

    def _show(self, now: float) -> list[Heard]:
        speech = self._front
        if speech is None:
            return []
        return self._writer.interim(speech.words, speech.agreed, self._extent(speech, now))

    def _extent(self, speech: Speech, now: float, end: int | None = None) -> Extent:
        covers = min(speech.voiced_to, speech.decoded_to) if end is None else end
        start = max(speech.begin, speech.onset)
        lag = now - self._arrivals.at(covers)
        return Extent(min(start, covers), covers, lag)

    # -- state --------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop what no window will ever need."""
        if self._speeches:
            needed = self._speeches[0].begin
        else:
            needed = self._endpointer.undecided_from - self._pace.preroll
        self._tape.drop_before(min(needed, self._endpointer.position))
        self._arrivals.drop_before(self._tape.begin)

    @property
    def backlog_seconds(self) -> float:
        """Speech that was heard and not decoded yet: what bounds reading. Silence is none."""
        return sum(speech.undecoded for speech in self._speeches) / SAMPLE_RATE

    @property
    def resting(self) -> bool:
        """No stretch of speech is open: nothing to do until more audio comes."""
        return not self._speeches

    @property
    def over(self) -> bool:
        """Finished, and everything is final."""
        return self._finished and not self._speeches


def _moved(word: Word, window: Window) -> Word:
    """`word` in seconds of the stream, within the window."""
    length = len(window.samples) / SAMPLE_RATE
    start = min(max(0.0, word.start), length)
    end = min(max(start, word.end), length)
    offset = window.start_seconds
    return Word(word.text, start + offset, end + offset, word.probability)
