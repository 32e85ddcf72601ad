"""Speech on Kokoro: the `Engine` around a synthesizer, a front end and the voices.

A step is one unit of work of one job (see `jobs`), whose turn it is (see `turns`).
Windows are computed in a thread of their own, one at a time, so a cancel of any other job is
released at once; the cancel of the job itself cuts its window short, and no other: a window that
was cut by mistake is computed again and gives the same samples. The same request gives the same
bytes, alone or beside others. What one job's text, phonemes or memory break is that job's failure.
Used by both backends; knows neither, and no sockets, streams or scheduling.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

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
    Stats,
)
from plait.engines.computing import CallThread, ComputingThread
from plait.engines.job_keeping import JobKeeping
from plait.engines.kokoro.faults import failure_of, nothing_to_speak, read_params
from plait.engines.kokoro.jobs import SpeechJob, SpokenText, Synthesizer, Work
from plait.engines.kokoro.model import SAMPLE_RATE, Interrupted, KokoroModel
from plait.engines.kokoro.output import Samples
from plait.engines.kokoro.turns import Turns
from plait.engines.kokoro.voices import KokoroVoices
from plait.errors import InvalidRequest, UnsupportedMethod
from plait.speech.voices import voice_language
from plait.wire.messages import Format

# How far `prepare` reads to find something to speak; the rest is read in turns.
PREPARE_CHARACTERS = 500
# How long a step waits for a window at most, if no command comes.
SLICE_SECONDS = 0.05
# Steps go on while a window hangs, so nobody else would notice: the gateway's own bound.
STALLED_SECONDS = 30.0
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


class KokoroEngine(JobKeeping[SpeechJob]):
    """Implements `Engine` for synthesize; see the module's docstring."""

    def __init__(
        self,
        spec: LoadSpec,
        flags: CancelFlags,
        synthesizer: InterruptibleSynthesizer,
        front_end: FrontEnd,
        voices: KokoroVoices,
        *,
        thread: CallThread[Samples | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turns: Turns[SpeechJob] = Turns()
        super().__init__(spec, self._turns, clock)
        self._flags = flags
        self._synthesizer = synthesizer
        self._model = synthesizer.model
        self._front_end = front_end
        self._voices = voices
        self._thread = ComputingThread[Samples | None]("windows") if thread is None else thread
        # Whose window is under way; also read by the command reader thread.
        self._computing: SpeechJob | None = None
        self._submitted_at = 0.0
        self._dry = False  # it was dry when it took its turn

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
            cores=spec.threads,
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
        params = read_params(job)
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
            blend_bytes=0 if self._voices.shares(pack) else pack.nbytes,
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
            raise failure_of(entry.id, error) from None
        if not speakable:
            raise nothing_to_speak()

    def feed(self, feed: Feed) -> None:
        """Legal before and after `start`. Raises InvalidRequest when the text is complete."""
        entry = self._jobs.get(feed.job)
        if entry is None:
            return
        if entry.input_ended:
            raise InvalidRequest("The text of this stream is complete; open another one for more.")
        for text in feed.texts or ():
            entry.feed(text)

    def cancel(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None:
            return
        if not entry.started:
            del self._jobs[job]
        elif entry is self._computing:
            entry.leaving = True
            self._model.interrupt()
        else:
            self._release(entry)

    # --- computing -----------------------------------------------------------------------------

    def interrupt(self) -> None:
        """From the command reader thread. Only a window of a job that is cancelled is cut short;
        any other goes on while the command is answered."""
        entry = self._computing
        if entry is not None and self._flags.stamp(entry.id) is not None:
            # If its window has just ended, the next one is cut instead, and computed again.
            self._model.interrupt()
        self._thread.wake()

    def step(self) -> list[Event]:
        """One unit of work of one job, or a slice of it; releases go out before anything else.

        A window that never ends is a crash: the worker is started anew.
        """
        if not self._events and self._computing is None:
            self._take_turn()
        if not self._events and self._computing is not None:
            if self._thread.wait(SLICE_SECONDS):
                self._take_window(self._computing)
            elif self._clock() - self._submitted_at > STALLED_SECONDS:
                raise RuntimeError(f"a window has been under way for {STALLED_SECONDS:g} s")
        events, self._events = self._events, []
        return events

    def _take_turn(self) -> None:
        entry = self._turns.choose()
        if entry is None:
            return
        self._dry = entry.dry
        if entry.work is Work.WINDOW:
            self._computing = entry
            # Asked after `_computing` is set: a cancel is seen here, or it sees what it must cut.
            if self._flags.stamp(entry.id) is None:
                self._submitted_at = self._clock()
                self._thread.submit(entry.window)
                return
            self._computing = None
        elif self._flags.stamp(entry.id) is None:
            self._do(entry, entry.advance)
        self._settle(entry)

    def _take_window(self, entry: SpeechJob) -> None:
        self._computing = None
        # What comes after a cancel's flag is counted as wasted; of one that left without, dropped.
        wanted = not entry.leaving or self._flags.stamp(entry.id) is not None

        def take() -> list[Event]:
            pcm = self._thread.take()
            return entry.take_window(pcm) if wanted else []

        self._do(entry, take)
        self._settle(entry)

    def _do(self, entry: SpeechJob, unit: Callable[[], list[Event]]) -> None:
        try:
            self._events += unit()
            self._turns.took(entry, dry=self._dry)
        except Interrupted:
            self._model.rearm()
        except Exception as error:  # noqa: BLE001 - whatever breaks ends this job, not the worker
            self._fail(entry, error)

    def _settle(self, entry: SpeechJob) -> None:
        """End the job if its cancel has come or its text is over."""
        if entry.id not in self._jobs:
            return
        if entry.leaving or self._flags.stamp(entry.id) is not None:
            self._release(entry)
        elif entry.ended and not entry.fed and entry.silent:
            self._fail(entry, nothing_to_speak())
        elif entry.ended:
            self._events.append(Finished(entry.id, "stop", entry.usage))
            self._release(entry)

    def _fail(self, entry: SpeechJob, error: Exception) -> None:
        fault = Fault.of(failure_of(entry.id, error))
        if not entry.leaving and self._flags.stamp(entry.id) is None:
            self._events.append(Failed(entry.id, fault, entry.usage))
        self._release(entry)

    @property
    def idle(self) -> bool:
        return not self._events and self._computing is None and not self._turns.any_work

    def stats(self) -> Stats:
        held = sum(job.held_bytes for job in self._jobs.values())
        return Stats(slots_used=self._slots_used(), kv_bytes=held)

    def close(self) -> None:
        self._jobs.clear()
        self._model.interrupt()
        self._thread.close()
        self._model.close()
