"""A speech engine without a model: every phoneme is 25 ms of a sine, every letter a phoneme.

`ToyFrontEnd` cuts a text after `.`, `!`, `?` (sentences) and `,` (clauses). `ToyModel.during` is
called inside every unit of computing, as if it came from another thread.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from plait.engines.base import (
    Consumed,
    Event,
    Failed,
    Feed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Released,
)
from plait.engines.computing import CallThread
from plait.engines.kokoro.engine import KokoroEngine
from plait.engines.kokoro.model import Floats, Interrupted
from plait.engines.kokoro.output import Samples
from plait.engines.kokoro.voices import PACK_SHAPE, KokoroVoices
from plait.errors import InvalidRequest
from plait.speech.segment import Ending, Segment, Word
from plait.wire.frames import BinaryKind
from tests.engines.flags import Flags as Flags

SYMBOL_SAMPLES = 600
HELD_BYTES = 1000  # of a toy utterance
BROKEN = "zzz"  # the front end cannot pronounce it
OUT_OF_MEMORY = "qqq"  # the model has no memory for it


class ToyModel:
    """As much of `KokoroModel` as the engine itself uses."""

    def __init__(self) -> None:
        self.during: Callable[[], None] = lambda: None
        self.units = 0
        self.closed = False
        self._interrupted = False

    def compute(self) -> None:
        self.during()
        if self._interrupted:
            raise Interrupted
        self.units += 1

    def interrupt(self) -> None:
        self._interrupted = True

    def rearm(self) -> None:
        self._interrupted = False

    def close(self) -> None:
        self.closed = True


class ToyUtterance:
    held_bytes = HELD_BYTES

    def __init__(
        self, model: ToyModel, pcm: NDArray[np.int16], windows: list[int], *, fails: bool
    ) -> None:
        self._model = model
        self._pcm = pcm
        self._windows = windows
        self._fails = fails
        self._begin = 0
        self.samples = len(pcm)
        self.symbol_samples = np.arange(0, len(pcm) + 1, SYMBOL_SAMPLES, dtype=np.int64)

    @property
    def done(self) -> bool:
        return self._begin == self.samples

    def next_window(self) -> NDArray[np.int16] | None:
        if self.done:
            return None
        self._model.compute()
        if self._fails:
            raise MemoryError
        size = self._windows.pop(0) if len(self._windows) > 1 else self._windows[0]
        begin, self._begin = self._begin, min(self._begin + size, self.samples)
        return self._pcm[begin : self._begin]


class ToySynthesizer:
    """`windows`: their samples in order, the last one repeats; 0 is work without audio."""

    def __init__(self, windows: tuple[int, ...] = (0, 1200, 2400)) -> None:
        self.model: Any = ToyModel()
        self.windows = windows

    def begin(self, phonemes: str, pack: Floats, speed: float, seed: int) -> ToyUtterance:
        count = len(phonemes) * SYMBOL_SAMPLES
        step = 0.01 * (1 + float(pack[0, 0])) * speed
        pcm = (10_000 * np.sin(step * np.arange(count) + seed)).astype(np.int16)
        fails = OUT_OF_MEMORY in phonemes
        return ToyUtterance(self.model, pcm, list(self.windows), fails=fails)


class ToyText:
    """Takes whole sentences and clauses; the rest waits for `finish`."""

    def __init__(self) -> None:
        self._text = ""
        self._finished = False

    @property
    def done(self) -> bool:
        return self._finished and not self._text

    def feed(self, text: str) -> None:
        self._text += text

    def finish(self) -> None:
        self._finished = True

    def next_segment(self) -> Segment | None:
        match = re.match(r"[^.!?,]*([.!?,])\s*", self._text)
        if match is None and not (self._finished and self._text):
            return None
        text = self._text if match is None else match[0]
        self._text = self._text[len(text) :]
        if BROKEN in text:
            raise ValueError(f"no sound for {text}")
        ending: Ending = "clause" if match is not None and match[1] == "," else "sentence"
        return Segment(text, "".join(re.findall(r"[a-z]", text)), tuple(_words(text)), ending)


def _words(text: str) -> list[Word]:
    words, first = [], 0
    for match in re.findall(r"[a-z]+", text):
        words.append(Word(match, first, first + len(match)))
        first += len(match)
    return words


class NoThread:
    """Computes a window at once, so that a step is a unit of work."""

    def __init__(self) -> None:
        self._take: Callable[[], NDArray[np.int16] | None] | None = None

    def submit(self, call: Callable[[], NDArray[np.int16] | None]) -> None:
        assert self._take is None
        try:
            pcm = call()
        except Exception as error:  # noqa: BLE001 - raised by take
            self._take = partial(_throw, error)
        else:
            self._take = lambda: pcm

    def wait(self, seconds: float) -> bool:
        return True

    def wake(self) -> None:
        """Nobody waits."""

    def take(self) -> NDArray[np.int16] | None:
        take, self._take = self._take, None
        assert take is not None
        return take()

    def close(self) -> None:
        assert self._take is None


def _throw(error: Exception) -> NoReturn:
    raise error


class ToyFrontEnd:
    def open(self, language: str) -> ToyText:
        if language not in ("en-us", "en-gb"):
            raise InvalidRequest(f"language {language}: cannot be pronounced.", param="language")
        return ToyText()


class SpeechRig:
    """Drives one engine as the worker loop does and sorts its events by job."""

    def __init__(self, engine: KokoroEngine, flags: Flags) -> None:
        self.engine = engine
        self.flags = flags
        self.items: dict[int, list[Item]] = {}
        self.consumed: dict[int, int] = {}
        self.ends: dict[int, Finished | Failed] = {}
        self.released: dict[int, Released] = {}
        self.order: list[int] = []  # the job of every audio frame
        self._last_job = 0

    # --- commands

    def prepare(self, text: str | None = None, **params: Any) -> int:
        """Raises what `prepare` raises."""
        self._last_job += 1
        asked = params if text is None else {"text": text, **params}
        self.engine.prepare(Prepare(self._last_job, "synthesize", asked, "s"))
        return self._last_job

    def start(self, text: str | None = None, **params: Any) -> int:
        job = self.prepare(text, **params)
        self.engine.start(job)
        return job

    def feed(self, job: int, text: str) -> None:
        self.engine.feed(Feed(job, texts=[text]))

    def arrive_cancel(self, job: int) -> None:
        """What the reader thread does; the loop tells the engine a moment later."""
        self.flags.stamps[job] = time.monotonic()
        self.engine.interrupt()

    def cancel(self, job: int) -> None:
        self.arrive_cancel(job)
        self.engine.cancel(job)

    # --- steps

    def step(self) -> list[Event]:
        for job in self.flags.stamps:
            self.engine.cancel(job)  # as the loop does once it knows
        events = self.engine.step()
        for event in events:
            self._sort(event)
        return events

    def _sort(self, event: Event) -> None:
        if isinstance(event, Item):
            assert event.job not in self.released, "an item after the release"
            self.items.setdefault(event.job, []).append(event)
            if event.kind:
                self.order.append(event.job)
        elif isinstance(event, Consumed):
            self.consumed[event.job] = self.consumed.get(event.job, 0) + event.bytes
        elif isinstance(event, Finished | Failed):
            self.ends[event.job] = event
        elif isinstance(event, Released):
            assert event.job not in self.released, "released twice"
            self.released[event.job] = event

    def step_until(self, done: Callable[[], bool], most: int = 5000) -> None:
        for _ in range(most):
            if done():
                return
            self.step()
        raise AssertionError(f"not done after {most} steps")

    def finish(self) -> None:
        self.step_until(lambda: self.engine.idle)

    def say(self, text: str, **params: Any) -> bytes:
        """One text by itself: its whole audio."""
        job = self.start(text, **params)
        self.finish()
        return self.pcm(job)

    # --- what a job sent

    def frames(self, job: int) -> list[Item]:
        return [item for item in self.items.get(job, []) if item.kind == BinaryKind.AUDIO_OUT]

    def marks(self, job: int) -> list[dict[str, Any]]:
        return [json.loads(item.data)["mark"] for item in self.items.get(job, []) if not item.kind]

    def pcm(self, job: int) -> bytes:
        return b"".join(frame.data for frame in self.frames(job))

    def spoken_text(self, job: int) -> str:
        return "".join(mark["text"] for mark in self.marks(job))


def write_voices(directory: Path, *names: str) -> KokoroVoices:
    """Every style of the n-th voice is n / 10 throughout."""
    for number, name in enumerate(names or ("af_heart", "bf_emma")):
        np.full(PACK_SHAPE, number / 10, "<f4").tofile(directory / f"{name}.bin")
    return KokoroVoices(directory)


def make_rig(
    directory: Path,
    synthesizer: ToySynthesizer,
    thread: CallThread[Samples | None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> SpeechRig:
    """On an empty directory, for the voices. Close the engine if you give it a real thread."""
    flags = Flags()
    spec = LoadSpec("kokoro-onnx", "toy", slots=4, context_tokens=0, max_tokens=0)
    voices = write_voices(directory)
    used = thread or NoThread()
    engine = KokoroEngine(spec, flags, synthesizer, ToyFrontEnd(), voices, thread=used, clock=clock)
    return SpeechRig(engine, flags)
