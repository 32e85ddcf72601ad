"""Speech on Kokoro: the `Engine` around a synthesizer, a front end and the voices.

A step is one unit of work of one job (see `kokoro_jobs`), whose turn it is (see `kokoro_turns`).
A cancel cuts the unit of its own job short, and no other: a unit that was cut by mistake is done
again and gives the same samples. The same request gives the same bytes, alone or beside others.
What one job's text, phonemes or memory break is that job's failure. Used by both backends; knows
neither, and no sockets, streams or scheduling.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from typing import Protocol

import msgspec

from plait.engines.base import (
    CancelFlags,
    EngineInfo,
    Event,
    Failed,
    Fault,
    Feed,
    Finished,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Stats,
)
from plait.engines.kokoro_jobs import SpeechJob, SpokenText, Synthesizer
from plait.engines.kokoro_model import SAMPLE_RATE, Interrupted, KokoroModel
from plait.engines.kokoro_turns import Turns
from plait.engines.kokoro_voices import KokoroVoices
from plait.errors import (
    EmptyText,
    GenerationFailed,
    InvalidRequest,
    OutOfMemory,
    PlaitError,
    UnsupportedMethod,
)
from plait.speech.voices import voice_language
from plait.wire.messages import Format
from plait.wire.params import SynthesizeParams

# How far `prepare` reads to find something to speak; the rest is read in turns.
PREPARE_CHARACTERS = 500
# A bound: the longest utterance (500 phonemes at half speed, 72 s) holds 24 MB while it begins.
JOB_BYTES = 32 * 1024 * 1024
# Paused streams keep their memory and yield their slot, so there is room for more than the slots.
JOBS_PER_SLOT = 8


class InterruptibleSynthesizer(Synthesizer, Protocol):
    @property
    def model(self) -> KokoroModel: ...


class FrontEnd(Protocol):
    def open(self, language: str) -> SpokenText:
        """Raises InvalidRequest (param language) for one that cannot be pronounced here."""


class KokoroEngine:
    """Implements `Engine` for synthesize; see the module's docstring."""

    def __init__(
        self,
        spec: LoadSpec,
        flags: CancelFlags,
        synthesizer: InterruptibleSynthesizer,
        front_end: FrontEnd,
        voices: KokoroVoices,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = spec
        self._flags = flags
        self._synthesizer = synthesizer
        self._model = synthesizer.model
        self._front_end = front_end
        self._voices = voices
        self._clock = clock
        self._jobs: dict[int, SpeechJob] = {}
        self._turns: Turns[SpeechJob] = Turns()
        self._events: list[Event] = []
        self._computing: int | None = None  # also read by the command reader thread

    @property
    def info(self) -> EngineInfo:
        spec = self._spec
        return EngineInfo(
            engine=spec.engine,
            model=spec.model,
            methods=["synthesize"],
            slots=spec.slots,
            context_tokens=0,
            max_tokens=0,
            kv_budget_bytes=self._budget_bytes,
            kv_kind="freed",
            format=Format("pcm_s16le", SAMPLE_RATE, 1),
        )

    @property
    def _budget_bytes(self) -> int:
        return self._spec.kv_budget_bytes or self._spec.slots * JOBS_PER_SLOT * JOB_BYTES

    # --- a job's life --------------------------------------------------------------------------

    def prepare(self, job: Prepare) -> Prepared:
        """Checks voice, language and speed, and reads a text's beginning; nothing is computed."""
        if job.method != "synthesize":
            raise UnsupportedMethod(
                f"Model '{self._spec.model}' does synthesize, not '{job.method}'."
            )
        params = _read_params(job)
        voice = self._voices.names[0] if params.voice is None else params.voice
        pack = self._voices.pack(voice)
        language = params.language or voice_language(self._voices.first_of(voice))
        entry = SpeechJob(
            job.job,
            self._front_end.open(language),
            self._synthesizer,
            pack,
            speed=params.speed,
            fed=params.text is None,
            clock=self._clock,
        )
        if params.text is not None:
            self._read_beginning(entry, params.text)
        self._jobs[job.job] = entry
        return Prepared(job.job, 0, JOB_BYTES, 0)

    def _read_beginning(self, entry: SpeechJob, text: str) -> None:
        entry.feed(text)
        entry.finish_input()
        try:
            speakable = entry.look_ahead(PREPARE_CHARACTERS)
        except Exception as error:  # noqa: BLE001 - the front end's libraries raise anything
            raise _failure_of(entry, error) from None
        if not speakable:
            raise _nothing_to_speak()

    def start(self, job: int) -> None:
        entry = self._jobs[job]
        assert not entry.started, "a job starts once"
        entry.started = True
        self._turns.join(entry)
        assert self._slots_used() <= self._spec.slots, "the scheduler overbooked the slots"

    def feed(self, feed: Feed) -> None:
        """Legal before and after `start`. Raises InvalidRequest when the text is complete."""
        entry = self._jobs.get(feed.job)
        if entry is None:
            return
        if entry.input_ended:
            raise InvalidRequest("The text of this stream is complete; open another one for more.")
        for text in feed.texts or ():
            entry.feed(text)

    def finish_input(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None:
            entry.finish_input()

    def pause(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None:
            entry.paused = True

    def resume(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None:
            entry.paused = False

    def cancel(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None:
            return
        if entry.started:
            self._release(entry)
        else:
            del self._jobs[job]

    def _release(self, entry: SpeechJob) -> None:
        """Nothing of it is computed outside of `step`, so it is over at once."""
        del self._jobs[entry.id]
        self._turns.leave(entry)
        self._events.append(Released(entry.id, self._clock(), 0, entry.usage))

    # --- computing -----------------------------------------------------------------------------

    def interrupt(self) -> None:
        """From the command reader thread. Only a job whose own cancel has come is cut short."""
        job = self._computing
        if job is not None and self._flags.stamp(job) is not None:
            # If its unit has just ended, the next one is cut instead, and done again.
            self._model.interrupt()

    def step(self) -> list[Event]:
        """One unit of work of one job; releases go out before anything is computed."""
        if not self._events:
            entry = self._turns.choose()
            if entry is not None:
                self._advance(entry)
        events, self._events = self._events, []
        return events

    def _advance(self, entry: SpeechJob) -> None:
        dry = entry.dry
        self._computing = entry.id
        try:
            # Asked after `_computing` is set: a cancel is seen here, or it sees what it must cut.
            if self._flags.stamp(entry.id) is None:
                self._events += entry.advance()
                self._turns.took(entry, dry=dry)
        except Interrupted:
            self._model.rearm()
        except Exception as error:  # noqa: BLE001 - whatever breaks ends this job, not the worker
            self._fail(entry, error)
        finally:
            self._computing = None
        self._settle(entry)

    def _settle(self, entry: SpeechJob) -> None:
        """End the job if its cancel has come or its text is over."""
        if entry.id not in self._jobs:
            return
        if self._flags.stamp(entry.id) is not None:
            self._release(entry)
        elif entry.ended and not entry.fed and entry.silent:
            self._fail(entry, _nothing_to_speak())
        elif entry.ended:
            self._events.append(Finished(entry.id, "stop", entry.usage))
            self._release(entry)

    def _fail(self, entry: SpeechJob, error: Exception) -> None:
        fault = Fault.of(_failure_of(entry, error))
        if self._flags.stamp(entry.id) is None:
            self._events.append(Failed(entry.id, fault, entry.usage))
        self._release(entry)

    @property
    def idle(self) -> bool:
        return not self._events and not self._turns.any_work

    def stats(self) -> Stats:
        held = sum(job.held_bytes for job in self._jobs.values())
        return Stats(slots_used=self._slots_used(), kv_bytes=held)

    def _slots_used(self) -> int:
        return sum(job.started and not job.paused for job in self._jobs.values())

    def close(self) -> None:
        self._jobs.clear()
        self._model.close()


def _read_params(job: Prepare) -> SynthesizeParams:
    try:
        return msgspec.convert(job.params, SynthesizeParams)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{error}. Correct it and send it again.") from None


def _nothing_to_speak() -> EmptyText:
    return EmptyText("The text has nothing that can be spoken; send words.", param="text")


def _failure_of(entry: SpeechJob, error: Exception) -> PlaitError:
    """What the peer is told. The message of what is not ours may quote text, so it is not logged.

    Inference libraries report exhausted memory in words only.
    """
    if isinstance(error, PlaitError):
        return error
    sys.stderr.write(f"kokoro: job {entry.id} broke: {type(error).__name__}\n")
    traceback.print_tb(error.__traceback__)
    words = str(error).lower()
    if isinstance(error, MemoryError) or "allocat" in words or "out of memory" in words:
        return OutOfMemory(
            "The engine ran out of memory for this speech; send less or try again later.",
            retry_after_ms=1000,
        )
    return GenerationFailed("The model could not speak this text; change the text or the voice.")
