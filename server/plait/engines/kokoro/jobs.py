"""One speech job: from its text to its samples, one bounded unit of work at a time.

A unit is a segment of the text (its pronunciation), the beginning of a segment's utterance, or a
window of it, of which the first are work without audio (durations, features). The next segment is
looked at once the last window of the one before is computed: computing is faster than speech, so
that is when the listener has most in hand, and text that came meanwhile is spoken in longer
breaths. A unit that is interrupted leaves the job as it was. Does NOT know other jobs, flags or
the worker's contract of a job's end.
"""

from __future__ import annotations

import enum
import time
import zlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from plait.engines.base import Consumed, Event, Starved, Usage
from plait.engines.kokoro.model import SAMPLE_RATE, Floats
from plait.engines.kokoro.output import Offsets, Samples, SpeechOutput
from plait.speech.segment import Segment

# Less left to hear than the longest window of another job may take.
PRESSED_SECONDS = 0.5
SILENCE: Samples = np.zeros(0, np.int16)


class Utterance(Protocol):
    """A segment being spoken; its times are known before its first audio."""

    @property
    def samples(self) -> int:
        """How much audio it has, 24 kHz."""

    @property
    def symbol_samples(self) -> Offsets:
        """[len(phonemes) + 1]: where each phoneme begins, and the last one ends."""

    @property
    def done(self) -> bool:
        """All windows were computed."""

    @property
    def held_bytes(self) -> int:
        """What its arrays take."""

    def next_window(self) -> Samples | None:
        """The next samples; empty when there was only work to do; None at the end.

        Raises Interrupted, and may then be called again.
        """


class Synthesizer(Protocol):
    def begin(self, phonemes: str, pack: Floats, speed: float, seed: int) -> Utterance:
        """`pack` [510, 256]: a voice's styles by length. Returns at once: windows are the work."""


class SpokenText(Protocol):
    """A text in segments. `feed` is cheap; the work is done segment by segment."""

    @property
    def done(self) -> bool:
        """It was finished, and all of it was handed out."""

    def feed(self, text: str) -> None: ...

    def finish(self) -> None:
        """There is no more text; repeats do no harm."""

    def next_segment(self) -> Segment | None:
        """None when more text is needed, or there will be none."""


class Work(enum.Enum):
    SEGMENT = enum.auto()
    BEGIN = enum.auto()
    WINDOW = enum.auto()


class SpeechJob:
    """`fed`: its text comes by `feed`. `blend_bytes`: of `pack`, if no other job shares it.

    What it sends is returned by `advance` and `take_window`, in order.
    """

    def __init__(
        self,
        job: int,
        spoken: SpokenText,
        synthesizer: Synthesizer,
        pack: Floats,
        *,
        speed: float,
        fed: bool,
        blend_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = job
        self.fed = fed
        self.started = False
        self.paused = False
        self.input_ended = False
        self.leaving = False  # it is over, but for the window under way
        self.turn_over = False  # the last unit of work ended the job's turn
        self.ended = False
        self._clock = clock
        self._awaited = True  # nothing was said since the start, or since there was no more text
        self._heard_until = 0.0  # when a listener who plays all at once has heard it
        self._spoken = spoken
        self._synthesizer = synthesizer
        self._pack = pack
        self._speed = speed
        self._blend_bytes = blend_bytes
        self._output = SpeechOutput(job)
        self._characters = 0
        self._segments = 0
        # Not yet given to `_spoken`: bounded by the stream's upload credit.
        self._inbox: deque[str] = deque()
        self._starved = False  # nothing to say until there is more text
        self._upcoming: Segment | None = None
        self._segment: Segment | None = None
        self._marked = False
        self._utterance: Utterance | None = None

    # --- its text ------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        self._inbox.append(text)
        self._starved = False

    def finish_input(self) -> None:
        self.input_ended = True
        self._starved = False

    def look_ahead(self, characters: int) -> bool:
        """Read to the first segment that can be spoken, or about that far.

        False when the text ended with nothing to speak.
        """
        self._take_input()
        while self._characters < characters:
            segment = self._spoken.next_segment()
            if segment is None:
                return not self._spoken.done
            if segment.phonemes:
                self._upcoming = segment
                return True
            # A text's job has no credit to give back and no mark to send before it starts.
            self._characters += len(segment.text)
            self._output.leave_out(segment)
        return not self._spoken.done

    def _take_input(self) -> None:
        while self._inbox:
            self._spoken.feed(self._inbox.popleft())
        if self.input_ended:
            self._spoken.finish()

    # --- its state -----------------------------------------------------------------------------

    @property
    def work(self) -> Work | None:
        """The next unit of work, if it may be done now."""
        if not self.started or self.paused or self.ended or self.leaving:
            return None
        if self._utterance is not None:
            return Work.WINDOW
        if self._upcoming is not None:
            return Work.BEGIN
        return None if self._starved else Work.SEGMENT

    @property
    def has_work(self) -> bool:
        return self.work is not None

    @property
    def silent(self) -> bool:
        """It said nothing."""
        return self._output.audio_ms == 0

    @property
    def dry(self) -> bool:
        """Its listener has nothing to hear, and will have none before its next audio."""
        return self._awaited and self._clock() >= self._heard_until

    @property
    def pressed(self) -> bool:
        """Its listener has little left to hear."""
        return self._clock() + PRESSED_SECONDS >= self._heard_until

    @property
    def usage(self) -> Usage:
        return {"characters": self._characters, "audio_ms": self._output.audio_ms}

    @property
    def held_bytes(self) -> int:
        """What a started job keeps: its utterance, and a blend (a voice by itself is shared)."""
        if not self.started:
            return 0
        utterance_bytes = 0 if self._utterance is None else self._utterance.held_bytes
        return self._blend_bytes + utterance_bytes

    # --- its work ------------------------------------------------------------------------------

    def advance(self) -> list[Event]:
        """Do one unit of `work` other than a window. Raises what the front end raises."""
        return self._read_segment() if self.work is Work.SEGMENT else self._begin()

    @property
    def window(self) -> Callable[[], Samples | None]:
        """Computes the next window, in any thread; `take_window` wants what it returns.

        Raises Interrupted, with no effect, and what the model raises.
        """
        assert self._utterance is not None
        return self._utterance.next_window

    def take_window(self, pcm: Samples | None) -> list[Event]:
        """What to send of a window that was computed."""
        segment, utterance = self._segment, self._utterance
        assert segment is not None
        assert utterance is not None
        over = pcm is None or utterance.done
        if pcm is None or not len(pcm):
            self.turn_over = over
            return self._speak(SILENCE, utterance, segment) if over else []
        self.turn_over = True
        return self._speak(pcm, utterance, segment)

    def _read_segment(self) -> list[Event]:
        self._take_input()
        segment = self._spoken.next_segment()
        if segment is None:
            self.turn_over = True
            return self._run_out()
        if segment.phonemes:
            self.turn_over = False
            self._upcoming = segment
            return [*self._output.pause()]  # known only now: there is no pause after the last
        self.turn_over = True
        self._output.leave_out(segment)
        return [*self._output.overflow(), *self._take(segment)]

    def _run_out(self) -> list[Event]:
        """No segment is to be had: the end, or a wait for more text."""
        self._awaited = True
        if not self._spoken.done:
            self._starved = True
            return [Starved(self.id, self.held_bytes)]
        self.ended = True
        return [*self._output.rest()]

    def _take(self, segment: Segment) -> list[Event]:
        """The segment is computed or left out: its room in the upload window is free again."""
        self._characters += len(segment.text)
        size_bytes = len(segment.text.encode(errors="surrogatepass"))
        return [Consumed(self.id, size_bytes)] if self.fed and size_bytes else []

    def _begin(self) -> list[Event]:
        segment = self._upcoming
        assert segment is not None
        self.turn_over = False
        seed = zlib.crc32(f"{self._segments} {segment.phonemes}".encode())
        self._utterance = self._synthesizer.begin(segment.phonemes, self._pack, self._speed, seed)
        self._upcoming, self._segment, self._marked = None, segment, False
        self._segments += 1
        return self._take(segment)

    def _speak(self, pcm: Samples, utterance: Utterance, segment: Segment) -> list[Event]:
        events: list[Event] = []
        if not self._marked:
            self._marked = True
            events += self._output.mark(segment, utterance.samples, utterance.symbol_samples)
        if len(pcm):
            self._awaited = False
            now = self._clock()
            self._heard_until = max(now, self._heard_until) + len(pcm) / SAMPLE_RATE
        over = utterance.done or not len(pcm)
        events += self._output.audio(pcm, last_of=segment if over else None)
        if over:
            self._utterance = self._segment = None
            self._take_input()
            if self._spoken.done:
                events += self._run_out()
        return events
