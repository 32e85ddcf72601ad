"""The peer as a reader of one stream: who reads slowly rests its engine, who stops is told so.

At the window, or with too many bytes waiting, the engine pauses; at half it goes on. A reader who
owes acks has `slow_seconds` to make progress. Does NOT know what is read, nor how a stream ends.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.sessions.outbox import StreamQueue
from plait.sessions.stopwatch import Stopwatch
from plait.sessions.timers import Timers


class Reader:
    """Owned by one stream, which calls it only while live. The three callables are the stream's."""

    def __init__(
        self,
        queue: StreamQueue,
        times: Stopwatch,
        timers: Timers,
        slow_seconds: float,
        *,
        pause: Callable[[], None],
        resume: Callable[[], None],
        slow: Callable[[], None],
    ) -> None:
        self._queue = queue
        self._times = times
        self._timers = timers
        self._slow_seconds = slow_seconds
        self._pause = pause
        self._resume = resume
        self._slow = slow

    def item_queued(self) -> None:
        if self._queue.full and not self._times.paused:
            self._times.pause()
            self._pause()
        self.watch()

    def progressed(self) -> None:
        """Acks came: whoever makes progress is not slow."""
        self._timers.disarm("slow")
        self.drained()

    def drained(self) -> None:
        """Less waits than before: a pause for too many bytes ends as they leave."""
        if self._times.paused and self._queue.half_empty:
            self._times.resume()
            self._resume()
        self.watch()

    def watch(self) -> None:
        """A reader that owes acks has `slow_seconds` to make progress (never with window 0).

        It owes them too when it has credit left, but nothing comes: paused, all sent, only its
        acks can end the pause, and until then the stream's memory is nobody else's.
        """
        queue = self._queue
        waits = queue.blocked or (self._times.paused and not queue.items)
        if waits and queue.credit.window:
            if "slow" not in self._timers:
                self._timers.arm("slow", self._slow_seconds, self._slow)
        else:
            self._timers.disarm("slow")
