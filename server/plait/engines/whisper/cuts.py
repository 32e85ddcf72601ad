"""Where a long stretch of speech may be cut: between words that are settled, or by force.

Words' times are rough, so a cut is made in the quietest moment around the place they tell. Does
NOT know items, nor what becomes of either part.
"""

from __future__ import annotations

from plait.engines.whisper.agreement import split_after
from plait.engines.whisper.speech import Speech
from plait.engines.whisper.tape import Tape, quietest
from plait.engines.whisper.words import SAMPLE_RATE

CUT_SLACK_SECONDS = 0.1  # words' times are that rough
FORCED_CUT_SAMPLES = 3 * SAMPLE_RATE  # where a cut by force may be
UNHEARD_SECONDS = 0.3  # between words: here the model stopped listening


class Cuts:
    """`split_at`, `force_at`: decoded samples from which on a stretch is cut where it is settled,
    and in any case."""

    def __init__(self, tape: Tape, split_at: int, force_at: int) -> None:
        self._tape = tape
        self._split_at = split_at
        self._force_at = force_at

    def of(self, speech: Speech) -> tuple[int, int] | None:
        """How many words go, and the sample after them; None: it is not long enough, or too few
        words are settled."""
        length = speech.decoded_to - speech.begin
        forced = length >= self._force_at
        if not forced and (length < self._split_at or speech.ended):
            return None
        return self._settled(speech) or (self._forced(speech) if forced else None)

    def _settled(self, speech: Speech) -> tuple[int, int] | None:
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

    def _forced(self, speech: Speech) -> tuple[int, int]:
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
