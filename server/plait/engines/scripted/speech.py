"""Speech without a model: every word of the text is a tone of its own, and marks say where it is.

A passage ends with `.`, `!` or `?`, and where the input ends. Each word lasts `word_ms` over the
speed; its pitch comes from its letters, so the audio of a text can be foretold (`tone`). Fed text
counts as consumed when its passage begins. Does NOT know steps nor slots (see `scripted`).
"""

from __future__ import annotations

import functools
import math
import re
import zlib
from array import array
from collections import deque
from dataclasses import dataclass, field

import msgspec

from plait.engines.base import Consumed, Event, Feed, Item, Usage
from plait.engines.scripted.jobs import ScriptedJob
from plait.engines.scripted.script import parse_script
from plait.wire.frames import BinaryFlags, BinaryKind
from plait.wire.messages import Format

SAMPLE_RATE = 24_000
FORMAT = Format("pcm_s16le", SAMPLE_RATE, 1)
FRAME_SAMPLES = 7200  # 300 ms: whole milliseconds, below the largest audio frame
SCRIPT_CHARACTERS = 4096  # of fed text; what comes later is only spoken

_PASSAGE = re.compile(r"[^.!?]*[.!?]+\s*")


@functools.lru_cache(maxsize=512)
def tone(word: str, samples: int) -> bytes:
    """PCM16 of `word`."""
    step = 2 * math.pi * (200 + 20 * (zlib.crc32(word.encode()) % 40)) / SAMPLE_RATE
    return array("h", [round(8000 * math.sin(step * i)) for i in range(samples)]).tobytes()


@dataclass(slots=True)
class SpeechJob(ScriptedJob):
    speed: float = 1.0
    fed: bool = False  # its text comes as input
    input_ended: bool = False
    text: str = ""  # not yet cut into passages
    heard: str = ""  # the beginning of what was fed: the script
    words: deque[str] = field(default_factory=deque)  # of the passage being spoken
    characters: int = 0
    samples: int = 0

    @property
    def ready(self) -> bool:
        return bool(self.words) or self.input_ended or _PASSAGE.match(self.text) is not None

    @property
    def usage(self) -> Usage:
        audio_ms = self.samples * 1000 // SAMPLE_RATE
        return {"characters": self.characters, "audio_ms": audio_ms}

    @property
    def word_samples(self) -> int:
        return round(self.script.word_ms / self.speed) * SAMPLE_RATE // 1000

    def feed(self, feed: Feed) -> None:
        """Raises InvalidRequest for a bad script."""
        text = "".join(feed.texts or ())
        self.text += text
        self.starved = False
        if len(self.heard) < SCRIPT_CHARACTERS:
            self.heard += text
            own = self.script
            self.script = parse_script(self.heard, tokens=own.tokens, step_ms=own.step_ms)

    def finish_input(self) -> None:
        self.input_ended = True
        self.starved = False

    def advance(self) -> list[Event]:
        """One word, with what has to precede it."""
        events: list[Event] = []
        while not self.words and (passage := self._take_passage()):
            events += self._begin(passage)
        if self.words:
            events += self._speak(self.words.popleft())
            self.produced += 1
        if not self.words and not self.text and self.input_ended:
            self.finish_reason = "stop"
        return events

    def _take_passage(self) -> str:
        found = _PASSAGE.match(self.text)
        passage = found[0] if found else self.text if self.input_ended else ""
        self.text = self.text[len(passage) :]
        return passage

    def _begin(self, passage: str) -> list[Event]:
        self.characters += len(passage)
        self.words.extend(passage.split())
        start, each = self.samples / SAMPLE_RATE, self.word_samples / SAMPLE_RATE
        ends = [(word, start + each * (i + 1)) for i, word in enumerate(self.words)]
        words = [
            {"text": word, "start": round(end - each, 3), "end": round(end, 3)}
            for word, end in ends
        ]
        end = words[-1]["end"] if words else round(start, 3)
        mark = {"text": passage, "start": round(start, 3), "end": end, "words": words}
        item = Item(self.job, msgspec.json.encode({"mark": mark}), units=0)
        return [Consumed(self.job, len(passage.encode())), item] if self.fed else [item]

    def _speak(self, word: str) -> list[Event]:
        audio = tone(word, self.word_samples)
        events: list[Event] = []
        for begin in range(0, len(audio), FRAME_SAMPLES * 2):
            data = audio[begin : begin + FRAME_SAMPLES * 2]
            ends = not self.words and begin + len(data) == len(audio)
            flags = BinaryFlags.LAST_OF_SENTENCE if ends else BinaryFlags.NONE
            units = len(data) // 2 * 1000 // SAMPLE_RATE
            kind = int(BinaryKind.AUDIO_OUT)
            events.append(Item(self.job, data, units, kind, int(flags), self.samples))
            self.samples += len(data) // 2
        return events
