"""Whose prompt llama.cpp reads: one at a time, in turns, and none while a stop is unconfirmed.

llama.cpp fills its batch with the prompt of the lowest slot before it looks at a higher one. Left
alone, a short prompt would wait until a long one is read, and so would its cancel (the library
asks "stop?" only when it delivers something) and the confirmation of every other end. So the one
request that reads gives way: after a chunk when a shorter one waits, and at once when another one
ends. What it has read stays in its slot's cache and is not read again. Knows of jobs only how much
they have still to read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Protocol, TypeVar

from plait.engines.llamacpp.request import Request


class Waits(Protocol):
    """`passed`: how often somebody who came later was taken before it."""

    passed: int

    @property
    def unread_tokens(self) -> int: ...


W = TypeVar("W", bound=Waits)


def take_next(waiting: deque[W]) -> W:
    """Whose prompt is read next: the shortest, for any other would give way to it after a chunk.

    Each time one is passed it counts half as long, so no stream of short prompts keeps a long one
    waiting for ever; equals go in order of arrival.
    """
    first = min(waiting, key=lambda job: job.unread_tokens >> job.passed)
    for job in waiting:
        if job is first:
            break
        job.passed += 1
    waiting.remove(first)
    first.passed = 0
    return first


class Turns:
    """Over the requests of one server, which the adapter keeps."""

    def __init__(self, requests: Mapping[int, Request]) -> None:
        self._requests = requests

    @property
    def free(self) -> bool:
        """Whether another prompt may be read now."""
        return not any(r.reading or r.leaving for r in self._requests.values())

    @property
    def reader(self) -> Request | None:
        return next((r for r in self._requests.values() if r.reading), None)

    def stop(self, request: Request) -> None:
        """From any thread."""
        request.stop()
        self._make_way()

    def end(self, request: Request, *, stop: bool) -> None:
        """Its answer is complete; `stop`: the library does not know that."""
        if stop:
            request.stop()
        request.hurry()
        self._make_way()

    def let_pass(self) -> None:
        """A shorter prompt than the reader's waits. Each turn reads a chunk, so all get on.

        Costs the reader about two chunks' time, once for each prompt that passes it; so nobody
        should be let pass who would not be through first.
        """
        if self.reader is not None:
            self.reader.give_way(at_once=False)

    def _make_way(self) -> None:
        """From any thread: something ends, and its confirmation needs a place in the batch."""
        for request in list(self._requests.values()):
            if request.reading:
                request.give_way(at_once=True)
