"""One stream's ears: PCM bytes in, windows to decode and items out.

Where there is speech is told as it is heard, by speech events (see `activity`). The window of the
current stretch of it grows and is decoded again and again, and what two decodes agree on is
settled. A stretch is final once it has paused for `silence_ms` (a little sooner after the end of a
sentence), or in part where it is long and its text is settled. Held is at most one window and what
was heard and not yet decoded, which `backlog_seconds` tells, so that the reader can stop reading;
silence holds nothing.

Pure: no clock, no threads, no model. The caller lets it `hear`, and `follow` what was heard, asks
what is `due`, decodes it, and gives it to `take`; a window that was asked for and not taken does no
harm. What is heard during a decode is followed after it: so how long decodes take makes no
difference to where segments end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from plait.engines.whisper.activity import Judged, Verdict, VoiceActivity, silence_samples
from plait.engines.whisper.agreement import agreed_words, ends_sentence, without_overlap
from plait.engines.whisper.cuts import Cuts
from plait.engines.whisper.detector import Detector
from plait.engines.whisper.endpoint import Turn
from plait.engines.whisper.segment import Extent, Heard, SegmentWriter
from plait.engines.whisper.speech import Pace, Speech
from plait.engines.whisper.tape import Arrivals, Tape
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
        longest = params.get("max_segment_seconds", 12.0)
        split_at = int(longest * SAMPLE_RATE)
        pace = pace or Pace()
        if not params.get("interim", True):
            pace = pace.without_interims(split_at)
        self._pace = pace.within(silence_samples(params))
        self._force_at = int(min(2 * longest, LONGEST_WINDOW_SECONDS) * SAMPLE_RATE)
        self._prompt: str = params.get("prompt") or ""
        self._language: str | None = params.get("language")
        self._detects_language = multilingual and self._language is None
        self._events: bool = params.get("events", False)
        self._activity = VoiceActivity(params, detector)
        self._writer = SegmentWriter(
            interim=params.get("interim", True), words=params.get("words", False)
        )
        self._heard: deque[tuple[Judged, float]] = deque()  # not followed: see `backlog_seconds`
        self._latest = Verdict()  # of what was followed
        self._tape = Tape()
        self._cuts = Cuts(self._tape, split_at, self._force_at)
        self._arrivals = Arrivals()
        self._speeches: deque[Speech] = deque()  # bounded by whoever reads `backlog_seconds`
        self._free_from = 0
        self._finished = False

    # -- input --------------------------------------------------------------------------------

    def hear(self, data: bytes | memoryview, at: float) -> list[Heard]:
        """More audio, received `at` that time (monotonic seconds): the speech events in it, for
        which no decode is waited. Raises InvalidAudio."""
        assert not self._finished, "it hears after finish"
        judged = self._activity.hear(data)
        self._heard.append((judged, at))
        return self._told(judged)

    def follow(self, now: float) -> list[Heard]:
        """Make of what was heard what there is to decode, and finals where speech has paused."""
        items: list[Heard] = []
        while self._heard:
            judged, at = self._heard.popleft()
            self._arrivals.note(judged.received, at)
            self._tape.append(judged.samples)
            items += self._judge(judged, now)
            self._forget()
        return items

    def finish(self) -> list[Heard]:
        """No more audio: whatever was said becomes final, by `take` where it is not decoded yet."""
        assert not self._finished, "finished twice"
        assert not self._heard, "what was heard is followed first"
        self._finished = True
        judged = self._activity.finish()
        self._tape.append(judged.samples)
        now = self._arrivals.at(self._tape.end)
        return self._told(judged) + self._judge(judged, now) + self._settle(now)

    def _told(self, judged: Judged) -> list[Heard]:
        if not self._events:
            return []
        return [self._writer.event(f"speech_{turn.kind}", turn.at) for turn in judged.turns]

    def _judge(self, judged: Judged, now: float) -> list[Heard]:
        items: list[Heard] = []
        for verdict in judged.verdicts:
            self._latest = verdict
            if verdict.turn is not None:
                self._turn(verdict.turn)
            elif verdict.speaking:
                self._speeches[-1].voiced(verdict.voiced_to, self._pace)
            items += self._settle(now)
        return items

    def _turn(self, turn: Turn) -> None:
        if turn.kind == "started":
            begin = max(self._free_from, self._tape.begin, turn.at - self._pace.preroll)
            self._speeches.append(Speech(begin, turn.at, self._latest.voiced_to))
        else:
            self._speeches[-1].ended = True
            self._speeches[-1].voiced_to = turn.at
            self._free_from = turn.at

    # -- decoding -----------------------------------------------------------------------------

    def due(self) -> Window | None:
        """What to decode now, or None. The newest state: who asks later gets a wider window."""
        if not self._speeches:
            return None
        assert not self._heard, "what was heard is followed first"
        speech = self._speeches[0]
        pace = self._pace.guessing() if self._detects_language else self._pace
        reach = speech.reach(self._latest.position, self._tape.end, self._force_at, pace)
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
        quiet = self._latest.position - speech.voiced_to
        return speech.has_voice and quiet >= self._pace.sentence and ends_sentence(speech.words)

    def _split(self, speech: Speech, now: float) -> list[Heard]:
        """Of a long stretch the beginning becomes final where it is settled, or by force."""
        cut = self._cuts.of(speech)
        if cut is None:
            return []
        count, at = cut
        first, rest = speech.words[:count], speech.words[count:]
        items = self._writer.final(first, self._extent(speech, now, end=at))
        speech.go_on(at, rest, said=[plain(word.text) for word in first[-OVERLAP_WORDS:]])
        return items

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
            needed = self._latest.undecided_from - self._pace.preroll
        self._tape.drop_before(min(needed, self._latest.position))
        self._arrivals.drop_before(self._tape.begin)

    @property
    def backlog_seconds(self) -> float:
        """Speech that was heard and not decoded yet: what bounds reading. Silence is none, once
        it was followed."""
        ahead = sum(len(judged.samples) for judged, _ in self._heard)
        return (ahead + sum(speech.undecoded for speech in self._speeches)) / SAMPLE_RATE

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
