"""What one speech job sends: its audio in frames, the marks before it, the silence between.

One `SpeechOutput` counts the samples of one stream, so offsets and times come from one place. The
texts of its marks, joined, are the job's text to the character: what is not spoken rides along
with the next mark, or ends up in a mark of no length. Silence is sent between two segments, never
before the first or after the last. Does NOT know models, turns or cancels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from plait.engines.base import Item
from plait.engines.kokoro.model import SAMPLE_RATE
from plait.speech.segment import Ending, Segment
from plait.wire.frames import MAX_AUDIO_FRAME_BYTES, BinaryFlags, BinaryKind

Samples = NDArray[np.int16]
Offsets = NDArray[np.int64]

# A third of a second: a frame under the protocol's bound, and a round number of milliseconds.
FRAME_SAMPLES = 8000
# The offset of a frame is 32 bits wide and wraps, after some 50 hours of one stream.
OFFSET_MODULUS = 2**32
SAMPLES_PER_MS = SAMPLE_RATE // 1000
# A mark is one message of at most 64 KiB; its text may be escaped and is there twice (words).
MAX_MARK_CHARACTERS = 4096

PAUSE_SAMPLES: dict[Ending, int] = {
    "sentence": SAMPLE_RATE // 4,
    "clause": SAMPLE_RATE // 10,
    "split": 0,
}

assert 2 * FRAME_SAMPLES <= MAX_AUDIO_FRAME_BYTES


class SpeechOutput:
    """The items of job `job`, in order. Each method returns what is to be sent next."""

    def __init__(self, job: int) -> None:
        self._job = job
        self._samples = 0
        self._pause_samples = 0
        self._unspoken = ""

    @property
    def audio_ms(self) -> int:
        """How much was sent, silence included; the sum of the items' units."""
        return self._samples // SAMPLES_PER_MS

    def leave_out(self, segment: Segment) -> None:
        """A segment without phonemes: nothing is heard of it but the pause it ends with."""
        self._unspoken += segment.text
        self._owe_pause(segment)

    def overflow(self) -> list[Item]:
        """What was left out, once it is more than the next mark could carry."""
        return self.rest() if len(self._unspoken) > MAX_MARK_CHARACTERS else []

    def rest(self) -> list[Item]:
        """What was left out and has no mark yet, in marks of no length."""
        text, self._unspoken = self._unspoken, ""
        return [self._mark(part, 0, []) for part in _parts(text)]

    def pause(self) -> list[Item]:
        """The silence between what was said and what is to be said next; once."""
        silence, self._pause_samples = np.zeros(self._pause_samples, np.int16), 0
        return self.audio(silence)

    def mark(self, segment: Segment, samples: int, symbol_samples: Offsets) -> list[Item]:
        """To be sent before the segment's first audio.

        `samples` is how much audio the segment has; `symbol_samples` [len(phonemes) + 1] are the
        offsets in it at which its phonemes begin, and the last one ends.
        """
        lead: list[Item] = []
        if len(self._unspoken) + len(segment.text) > MAX_MARK_CHARACTERS:
            lead = self.rest()
        text, self._unspoken = self._unspoken + segment.text, ""
        head, *tail = _parts(text) or [""]
        mark = self._mark(head, samples, list(self._words(segment, symbol_samples)))
        return [*lead, mark, *(self._mark(part, 0, [], after=samples) for part in tail)]

    def audio(self, pcm: Samples, *, last_of: Segment | None = None) -> list[Item]:
        """`pcm` in frames. `last_of`: the segment whose audio ends with it."""
        frames = [pcm[i : i + FRAME_SAMPLES] for i in range(0, len(pcm), FRAME_SAMPLES)]
        items = [self._frame(frame) for frame in frames]
        if last_of is not None:
            self._owe_pause(last_of)
            if items and last_of.ending == "sentence":
                items[-1].flags = BinaryFlags.LAST_OF_SENTENCE
        return items

    def _frame(self, pcm: Samples) -> Item:
        begin, before_ms = self._samples, self.audio_ms
        self._samples += len(pcm)
        return Item(
            self._job,
            pcm.astype("<i2", copy=False).tobytes(),
            units=self.audio_ms - before_ms,
            kind=BinaryKind.AUDIO_OUT,
            aux=begin % OFFSET_MODULUS,
        )

    def _owe_pause(self, segment: Segment) -> None:
        if self._samples:
            self._pause_samples = max(self._pause_samples, PAUSE_SAMPLES[segment.ending])

    def _mark(self, text: str, samples: int, words: list[Any], *, after: int = 0) -> Item:
        start = self._samples + after
        mark = {
            "text": text,
            "start": _seconds(start),
            "end": _seconds(start + samples),
            "words": words,
        }
        return Item(self._job, msgspec.json.encode({"mark": mark}), units=0)

    def _words(self, segment: Segment, symbol_samples: Offsets) -> Iterator[dict[str, Any]]:
        for word in segment.words:
            start, end = int(symbol_samples[word.first]), int(symbol_samples[word.last])
            yield {
                "text": word.text,
                "start": _seconds(self._samples + start),
                "end": _seconds(self._samples + end),
            }


def _parts(text: str) -> list[str]:
    step = MAX_MARK_CHARACTERS
    return [text[i : i + step] for i in range(0, len(text), step)]


def _seconds(samples: int) -> float:
    return round(samples / SAMPLE_RATE, 3)
