"""A job of the scripted engine: what all methods' jobs share, and the chat's.

`ScriptedEngine` decides when a job advances and when it is released; a job says what it puts out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from plait.engines.base import Event, Feed, Item, Usage
from plait.engines.scripted.script import Script
from plait.wire.messages import FinishReason


@dataclass(slots=True)
class ScriptedJob:
    """Units are the method's: tokens, spoken words. `finish_reason` is set at the natural end."""

    job: int
    script: Script
    started: bool = False
    paused: bool = False
    starved: bool = False  # it said that it waits for input
    prefilled: int = 0
    produced: int = 0
    release_at: float | None = None
    finish_reason: FinishReason | None = None

    @property
    def runs(self) -> bool:
        return self.started and not self.paused and self.release_at is None and self.ready

    @property
    def ready(self) -> bool:
        """It has something to do: input, where it takes any."""
        return True

    @property
    def bursts(self) -> int:
        """How often it advances in a step."""
        return self.script.burst

    @property
    def starves(self) -> bool:
        """It has nothing to do and has not said so."""
        active = self.started and not self.paused and self.release_at is None
        return active and not self.ready and not self.starved

    @property
    def kv_tokens(self) -> int:
        return 0

    @property
    def usage(self) -> Usage:
        raise AssertionError("every method has its own")

    def feed(self, feed: Feed) -> None:
        """Only where the method takes input after its open."""

    def finish_input(self) -> None:
        """Only where the method takes input after its open."""

    def advance(self) -> list[Event]:
        """One unit of output; may set `finish_reason`."""
        raise AssertionError("every method has its own")


@dataclass(slots=True)
class ChatJob(ScriptedJob):
    prompt_tokens: int = 0
    max_tokens: int = 0

    @property
    def length(self) -> int:
        return min(self.script.tokens, self.max_tokens)

    @property
    def usage(self) -> Usage:
        return {
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": 0,
            "completion_tokens": self.produced,
        }

    @property
    def kv_tokens(self) -> int:
        if self.prefilled < self.script.prefill_steps:
            return self.prompt_tokens * self.prefilled // self.script.prefill_steps
        return self.prompt_tokens + self.produced

    def advance(self) -> list[Event]:
        events: list[Event] = []
        if self.produced < self.length:
            shown: dict[str, Any] = {"content": self._text()}
            if self.script.apart:
                shown["apart"] = True
            events.append(Item(self.job, msgspec.json.encode(shown)))
            self.produced += 1
        if self.produced >= self.length:
            self.finish_reason = "stop" if self.script.tokens <= self.max_tokens else "length"
        return events

    def _text(self) -> str:
        script = self.script
        text = f"{time.monotonic_ns()} " if script.clock else f"{script.say}{self.produced} "
        return text.ljust(script.size)
