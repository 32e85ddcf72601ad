"""The whisper adapter on a bench: real processes, scripted ears, and what it told so far."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from plait.engines.base import (
    Event,
    Failed,
    Feed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Released,
    Starved,
)
from plait.engines.whisper.engine import WhisperEngine
from plait.engines.whisper.loading import load_streams
from tests.engines.flags import Flags

ROOT = Path(__file__).parents[3]
EARS = "tests.engines.whisper.scripted_ears"
WAIT_SECONDS = 30.0
PARAMS = {"sample_rate": 16_000}
_TICK = threading.Event()


def whisper_spec(
    isolation: str = "fork", ears: str = "ears", *, slots: int = 8, threads: int = 2, **others: Any
) -> LoadSpec:
    return LoadSpec(
        "whisper",
        "scripted ears",
        slots=slots,
        context_tokens=0,
        max_tokens=0,
        method="transcribe",
        threads=threads,
        options={"isolation": isolation, "ears": f"{EARS}:{ears}", **others},
    )


class Rig:
    """One adapter. `told` is everything its steps yielded; its time stands still at `now`."""

    def __init__(self, spec: LoadSpec) -> None:
        self.now = 100.0
        self.flags = Flags()
        self.nursery, facts = load_streams(spec, lambda phase, percent: None)
        self.engine = WhisperEngine(spec, self.flags, self.nursery, facts, clock=lambda: self.now)
        self.zygote = psutil.Process(self.nursery.pid)
        self.told: list[Event] = []
        self.opened: list[int] = []

    def open(self, job: int, words: str = "", *, end: bool = False, **params: Any) -> None:
        self.engine.prepare(Prepare(job, "transcribe", {**PARAMS, **params}, scope="test"))
        self.engine.start(job)
        self.opened.append(job)
        if words:
            self.say(job, words)
        if end:
            self.engine.finish_input(job)

    def say(self, job: int, words: str) -> None:
        self.engine.feed(Feed(job, audio=f"{words} ".encode()))

    def cancel(self, job: int) -> None:
        """As the reader thread and the loop do it."""
        self.flags.stamps[job] = time.monotonic()
        self.engine.cancel(job)

    def step_until(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, f"not within {seconds} s; told: {self.told[-20:]}"
            self.told += self.engine.step()

    def wait_released(self, *jobs: int) -> None:
        self.step_until(lambda: set(jobs) <= {one.job for one in self.of_kind(Released)})

    def wait_words(self, job: int, words: str) -> dict[str, Any]:
        """Until they were said; the item they came in."""
        self.step_until(lambda: words in self.text(job))
        return next(one for one in self.items(job) if words in one["words"])

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """For what no step tells: files and processes can only be looked at."""
        until = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert time.monotonic() < until, f"not within {WAIT_SECONDS} s: {what}"
            self.engine.interrupt()
            self.told += self.engine.step()
            _TICK.wait(0.002)

    def wait_begun(self, gate: Path) -> None:
        """Until a decode stands before it."""
        self.wait_for(Path(f"{gate}.begun").exists, f"a decode before {gate.name}")

    def wait_permit(self, job: int, name: str) -> None:
        """Until it holds one, or wants it."""
        self.step_until(lambda: self.engine._jobs[job].permit.name == name)

    @property
    def live(self) -> list[int]:
        """Started, and not released yet."""
        return [job for job in self.opened if "released" not in self.ends(job)]

    def of_kind(self, kind: type[Any], job: int | None = None) -> list[Any]:
        return [
            event for event in self.told if isinstance(event, kind) and job in (None, event.job)
        ]

    def items(self, job: int) -> list[dict[str, Any]]:
        return [msgspec.json.decode(item.data) for item in self.of_kind(Item, job)]

    def text(self, job: int) -> str:
        return " ".join(item["words"] for item in self.items(job))

    def ends(self, job: int) -> list[str]:
        """How it ended, in order: "finished", an error's code, "released"."""
        names: list[str] = []
        for event in self.told:
            match event:
                case Finished(job=one) if one == job:
                    names.append("finished")
                case Failed(job=one, fault=fault) if one == job:
                    names.append(fault.code)
                case Released(job=one) if one == job:
                    names.append("released")
        return names

    def starved(self, job: int) -> int:
        return len(self.of_kind(Starved, job))

    def processes(self) -> list[psutil.Process]:
        """Of streams, and spare ones."""
        return self.zygote.children()


@contextlib.contextmanager
def running(spec: LoadSpec) -> Iterator[Rig]:
    rig = Rig(spec)
    try:
        yield rig
    finally:
        rig.engine.close()


@contextlib.contextmanager
def importable_tests() -> Iterator[None]:
    """Processes started within import this repository's tests, as scripted ears are."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), before]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
