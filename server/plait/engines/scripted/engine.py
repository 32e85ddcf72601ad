"""An engine for tests and benchmarks: what it does is written in the prompt, and costs no model.

The last user message (and the system message), the text to speak, the prompt of a transcription
or the first text to embed is the script, in the language of `script.py`; the method is
`LoadSpec.method`: chat (`jobs`), synthesize (`speech`), transcribe (`listening`) or embed
(`embedding`).

`LoadSpec.options`: tokens (16), step_seconds (0.0), interruptible (True), kv_bytes_per_token
(1024); cores (1: those it says it can use); load_seconds (0.0; percents are reported), load_fail
(message: typed failure), load_raise (message: an untyped one), load_crash (True: dies), load_hang
(True: never ends).
A step with delay 0 returns at once, one token per burst and row; a longer one is waited for in
slices of 50 ms that `interrupt` ends early, and what is left of it is kept. A job above the
slots is an assertion, hence a crash: the scheduler must not overbook.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from plait.engines.base import (
    CancelFlags,
    EngineInfo,
    Event,
    Failed,
    Feed,
    Finished,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Report,
    Starved,
    Stats,
)
from plait.engines.scripted.calling import chat_job
from plait.engines.scripted.embedding import FORMAT as ROWS, embed_job
from plait.engines.scripted.faults import break_as_told, die, hang, stumble
from plait.engines.scripted.jobs import ScriptedJob
from plait.engines.scripted.listening import listening_job
from plait.engines.scripted.script import Script, chat_script, parse_script
from plait.engines.scripted.speech import FORMAT as SPEECH, SpeechJob
from plait.errors import ContextOverflow, EmptyText, ModelLoadFailed, UnsupportedMethod

SLICE_SECONDS = 0.05
LOAD_STEPS = 4
DEFAULT_SLOTS = 4  # where the spec leaves it to the engine
FORMATS = {"synthesize": SPEECH, "embed": ROWS}


@dataclass(slots=True)
class _Pace:
    """How long steps take: waits that `interrupt` cuts short and the next step goes on with."""

    clock: Callable[[], float] = time.monotonic
    _interrupted: threading.Event = field(default_factory=threading.Event)
    _due: float | None = None

    def interrupt(self) -> None:
        self._interrupted.set()

    def step_is_over(self, seconds: float, *, deaf: bool) -> bool:
        """Wait for the end of a step of that length; False when it needs another call."""
        if seconds <= 0:
            return True
        now = self.clock()
        # What is left of a step of jobs that are gone binds nobody for longer than his own.
        due = self._due = now + seconds if self._due is None else min(self._due, now + seconds)
        if deaf:
            threading.Event().wait(due - now)
        else:
            self.wait(min(due - now, SLICE_SECONDS))
        if self.clock() < due:
            return False
        self._due = None
        return True

    def wait(self, seconds: float) -> None:
        self._interrupted.wait(seconds)
        self._interrupted.clear()


class ScriptedEngine:
    """Implements `Engine` without any model; see the module's docstring."""

    def __init__(self, spec: LoadSpec, *, clock: Callable[[], float] = time.monotonic) -> None:
        options = spec.options
        self._clock = clock
        self._spec = spec
        self._slots = spec.slots or DEFAULT_SLOTS
        self._tokens = int(options.get("tokens", 16))
        self._step_seconds = float(options.get("step_seconds", 0.0))
        self._interruptible = bool(options.get("interruptible", True))
        self._kv_bytes_per_token = int(options.get("kv_bytes_per_token", 1024))
        self._jobs: dict[int, ScriptedJob] = {}
        self._pace = _Pace(clock)

    @property
    def info(self) -> EngineInfo:
        spec = self._spec
        budget = self._slots * spec.context_tokens * self._kv_bytes_per_token
        return EngineInfo(
            engine=spec.engine,
            model=spec.model,
            methods=[spec.method],
            slots=self._slots,
            context_tokens=spec.context_tokens,
            max_tokens=spec.max_tokens,
            kv_budget_bytes=spec.kv_budget_bytes or budget,
            kv_kind="freed",
            format=FORMATS.get(spec.method),
            cores=int(spec.options.get("cores", 1)),
        )

    def prepare(self, job: Prepare) -> Prepared:
        if job.method != self._spec.method:
            raise UnsupportedMethod(
                f"Model '{self._spec.model}' does {self._spec.method}, not '{job.method}'."
            )
        if job.method == "synthesize":
            return self._prepare_speech(job)
        if job.method == "transcribe":
            self._jobs[job.job] = listening_job(job.job, job.params, self._read, self._clock)
            return Prepared(job.job, prompt_tokens=0, reserve_bytes=0, max_tokens=0)
        if job.method == "embed":
            self._jobs[job.job] = embed_job(job.job, job.params, self._read)
            return Prepared(job.job, prompt_tokens=0, reserve_bytes=0, max_tokens=0)
        messages = [message.get("content") or "" for message in job.params["messages"]]
        script = self._read(chat_script(job.params["messages"]))
        words = sum(len(text.split()) for text in messages)
        prompt_tokens = words if script.prompt_tokens < 0 else script.prompt_tokens
        max_tokens = self._room(prompt_tokens, job.params.get("max_tokens"))
        self._jobs[job.job] = chat_job(
            job.job, job.params, script, prompt_tokens=prompt_tokens, max_tokens=max_tokens
        )
        reserve_bytes = (prompt_tokens + max_tokens) * self._kv_bytes_per_token
        return Prepared(job.job, prompt_tokens, reserve_bytes, max_tokens)

    def _prepare_speech(self, job: Prepare) -> Prepared:
        text = job.params.get("text")
        if text is not None and not any(map(str.isalnum, text)):
            raise EmptyText("text: there is nothing in it to speak. Send some words.", param="text")
        self._jobs[job.job] = SpeechJob(
            job.job,
            self._read(text or ""),
            speed=job.params.get("speed", 1.0),
            fed=text is None,
            input_ended=text is not None,
            text=text or "",
        )
        return Prepared(job.job, prompt_tokens=0, reserve_bytes=0, max_tokens=0)

    def _read(self, text: str) -> Script:
        """The script in `text`, after what it does to `prepare`."""
        script = parse_script(text, tokens=self._tokens, step_ms=self._step_seconds * 1000)
        stumble(script.refuse, no_memory=script.memory == "prepare")
        threading.Event().wait(script.prepare_ms / 1000)
        return script

    def start(self, job: int) -> None:
        entry = self._jobs[job]
        stumble(entry.script.refuse_start, no_memory=entry.script.memory == "start")
        entry.started = True
        assert self._slots_used() <= self._slots, "the scheduler overbooked the slots"

    def feed(self, feed: Feed) -> None:
        self._jobs[feed.job].feed(feed)

    def finish_input(self, job: int) -> None:
        self._jobs[job].finish_input()

    def pause(self, job: int) -> None:
        self._jobs[job].paused = True

    def resume(self, job: int) -> None:
        self._jobs[job].paused = False
        assert self._slots_used() <= self._slots, "the scheduler overbooked the slots"

    def cancel(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None:
            return
        if not entry.started:
            self._jobs.pop(job)
        elif not entry.script.ignore_cancel and entry.release_at is None:
            entry.release_at = self._clock() + entry.script.cancel_ms / 1000

    def interrupt(self) -> None:
        self._pace.interrupt()

    def step(self) -> list[Event]:
        events = [*self._release_due(), *self._starve()]
        running = [job for job in self._jobs.values() if job.runs]
        if not running:
            if not events:
                self._wait_for_release()
            return events
        seconds = max(job.script.step_ms for job in running) / 1000
        deaf = not self._interruptible or any(job.script.deaf for job in running)
        if events or not self._pace.step_is_over(seconds, deaf=deaf):
            return events
        for job in running:
            self._advance(job, events)
        return events

    @property
    def idle(self) -> bool:
        return not any(
            job.runs or job.starves or job.release_at is not None for job in self._jobs.values()
        )

    def keep_prefixes(self, max_bytes: int) -> None:
        """Nothing is kept of jobs that are over."""

    def stats(self) -> Stats:
        held = sum(job.kv_tokens for job in self._jobs.values() if job.started)
        return Stats(slots_used=self._slots_used(), kv_bytes=held * self._kv_bytes_per_token)

    def close(self) -> None:
        self._jobs.clear()

    def _room(self, prompt_tokens: int, asked: int | None) -> int:
        limit = self._spec.context_tokens
        if prompt_tokens >= limit:
            raise ContextOverflow(
                f"The prompt has {prompt_tokens} tokens and the context holds {limit}; "
                "send a shorter one.",
                data={"prompt_tokens": prompt_tokens, "limit": limit},
            )
        bounds = [self._spec.max_tokens, limit - prompt_tokens]
        return min(bounds if asked is None else [*bounds, asked])

    def _slots_used(self) -> int:
        return sum(job.started and not job.paused for job in self._jobs.values())

    def _release_due(self) -> list[Event]:
        now = self._clock()
        due = [
            job
            for job in self._jobs.values()
            if job.release_at is not None and job.release_at <= now
        ]
        return [self._release(job) for job in due]

    def _starve(self) -> list[Event]:
        starving = [job for job in self._jobs.values() if job.starves]
        for job in starving:
            job.starved = True
        return [Starved(job.job) for job in starving]

    def _wait_for_release(self) -> None:
        ends = [job.release_at for job in self._jobs.values() if job.release_at is not None]
        if ends:
            self._pace.wait(min(max(0.0, min(ends) - self._clock()), SLICE_SECONDS))

    def _advance(self, job: ScriptedJob, events: list[Event]) -> None:
        if job.prefilled < job.script.prefill_steps:
            job.prefilled += 1
            return
        for _ in range(job.bursts):
            fault = break_as_told(job.script, job.produced)
            if fault is not None:
                events.append(Failed(job.job, fault, job.usage))
                events.append(self._release(job))
                return
            events += job.advance()
            if job.finish_reason is not None:
                events.append(Finished(job.job, job.finish_reason, job.usage))
                events.append(self._release(job))
                return

    def _release(self, job: ScriptedJob) -> Released:
        del self._jobs[job.job]
        return Released(job.job, self._clock(), wasted=0, usage=job.usage)


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> ScriptedEngine:
    """Raises ModelLoadFailed when option `load_fail` says so. `flags` are not needed here."""
    options = spec.options
    if options.get("load_crash"):
        die()
    if options.get("load_hang"):
        hang()
    for done in range(LOAD_STEPS):
        report("weights", 100 * done // LOAD_STEPS)
        threading.Event().wait(float(options.get("load_seconds", 0.0)) / LOAD_STEPS)
    if "load_fail" in options:
        raise ModelLoadFailed(str(options["load_fail"]))
    if "load_raise" in options:
        raise RuntimeError(str(options["load_raise"]))
    report("weights", 100)
    return ScriptedEngine(spec)
