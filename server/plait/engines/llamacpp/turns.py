"""Whose prompt llama.cpp reads: one at a time, in turns, and none while a stop is unconfirmed.

llama.cpp fills its batch with the prompt of the lowest slot before it looks at a higher one. Left
alone, a short prompt would wait until a long one is read, and so would its cancel (the library
asks "stop?" only when it delivers something) and the confirmation of every other end. So the one
request that reads gives way: after TURN_SECONDS when a shorter one waits, and at once when another
one ends. What it has read stays in its slot's cache and is not read again. Knows no jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from plait.engines.llamacpp.request import Request

# A turn costs its reader about one step more; what waits is late by this much for each other one.
TURN_SECONDS = 0.4


class Turns:
    """Over the requests of one server, which the adapter keeps."""

    def __init__(
        self, requests: Mapping[int, Request], clock: Callable[[], float] = monotonic
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._reading_since = 0.0

    @property
    def free(self) -> bool:
        """Whether another prompt may be read now."""
        return not any(r.reading or r.leaving for r in self._requests.values())

    def begin(self) -> None:
        """A request was begun; it reads."""
        self._reading_since = self._clock()

    def stop(self, request: Request) -> None:
        """From any thread."""
        request.stop()
        self.make_way()

    def end(self, request: Request, *, stop: bool) -> None:
        """Its answer is complete; `stop`: the library does not know that."""
        if stop:
            request.stop()
        request.hurry()
        self.make_way()

    def make_way(self) -> None:
        """From any thread: something ends, and its confirmation needs a place in the batch."""
        for request in list(self._requests.values()):
            if request.reading:
                request.give_way()

    def check(self, *, shorter_waits: bool) -> None:
        """Whether the reader's turn is over. Call it as its prompt progresses.

        It goes on while only longer ones wait: taking turns among equals would help nobody.
        """
        if shorter_waits and self._clock() - self._reading_since > TURN_SECONDS:
            self.make_way()
