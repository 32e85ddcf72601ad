"""Drives a llama.cpp adapter as the worker loop does, and remembers what it yielded."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plait.engines.base import Failed, Finished, Item, LoadSpec, Prepare, Released
from plait.engines.llamacpp.chat import LlamaCpp
from plait.engines.llamacpp.engine import load
from tests.engines.flags import Flags as Flags

WAIT_SECONDS = 120  # generous: two shared cores


class Rig:
    def __init__(self, gguf: Path, tokenizer: Path, **spec: Any) -> None:
        self.flags = Flags()
        self.spec = LoadSpec(
            engine="llamacpp",
            model="starter",
            **{
                "slots": 4,
                "context_tokens": 2048,
                "max_tokens": 256,
                "prefix_cache_bytes": 2**28,
                **spec,
            },
            weights=str(gguf),
            tokenizer=str(tokenizer),
        )
        self.engine: LlamaCpp = load(self.spec, self.flags, lambda _phase, _percent: None)
        self.items: dict[int, list[dict[str, Any]]] = {}
        self.ends: dict[int, Finished | Failed] = {}
        self.released: dict[int, Released] = {}
        self._last = 0

    def start(self, content: str, *, scope: str = "app", **params: Any) -> int:
        """Greedy unless told otherwise."""
        self._last += 1
        job = self._last
        messages = [{"role": "user", "content": content}]
        asked = {"messages": messages, "temperature": 0, **params}
        self.engine.prepare(Prepare(job, "chat", asked, scope))
        self.items[job] = []
        self.engine.start(job)
        return job

    def talk(self, content: str, **params: Any) -> str:
        job = self.start(content, **params)
        self.finish(job)
        return self.text(job)

    def text(self, job: int) -> str:
        return "".join(item["content"] for item in self.items[job])

    def step_until(self, reached: Callable[[], bool]) -> None:
        limit = time.monotonic() + WAIT_SECONDS
        while not reached():
            assert time.monotonic() < limit, "the engine made no progress"
            assert not self.engine.idle, "the engine has nothing to do"
            self._step()

    def step_until_idle(self) -> None:
        """Whatever rests goes on resting."""
        limit = time.monotonic() + WAIT_SECONDS
        while not self.engine.idle:
            assert time.monotonic() < limit, "the engine never came to rest"
            self._step()

    def step_times(self, times: int) -> None:
        for _ in range(times):
            self._step()

    def step_to(self, job: int, items: int) -> None:
        self.step_until(lambda: len(self.items[job]) >= items)

    def finish(self, *jobs: int) -> None:
        """Until the jobs (all started ones by default) are released."""
        waited = jobs or tuple(self.items)
        self.step_until(lambda: all(job in self.released for job in waited))

    def cancel(self, job: int) -> float:
        """As when the reader thread has read it; -> its stamp."""
        stamp = time.monotonic()
        self.flags.stamps[job] = stamp
        self.engine.interrupt()
        self.engine.cancel(job)
        return stamp

    def _step(self) -> None:
        for event in self.engine.step():
            match event:
                case Item():
                    assert event.job not in self.released
                    self.items[event.job].append(json.loads(event.data))
                case Finished() | Failed():
                    assert event.job not in self.ends
                    self.ends[event.job] = event
                case Released():
                    assert event.job not in self.released
                    self.released[event.job] = event
