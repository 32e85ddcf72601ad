"""What a client hears while its stream is pending: `accepted`, at most once per interval.

The first one goes out at once; what changes within the interval is told after it, only the newest.
Does NOT know why a stream waits.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.sessions.timers import Timers
from plait.wire.messages import Accepted


class Waiting:
    """Owned by one stream; silent once its timer `accepted` is disarmed and nobody tells it."""

    def __init__(
        self,
        interval_seconds: float,
        send: Callable[[Accepted], None],
        timers: Timers,
        clock: Callable[[], float],
    ) -> None:
        self._interval_seconds = interval_seconds
        self._send = send
        self._timers = timers
        self._clock = clock
        self._newest: Accepted | None = None  # sent, or waiting for its interval
        self._sent_at = 0.0

    def tell(self, accepted: Accepted) -> None:
        if self._newest is None:
            self._newest = accepted
            self._repeat()
        elif accepted != self._newest:
            self._newest = accepted
            if "accepted" not in self._timers:
                wait = self._sent_at + self._interval_seconds - self._clock()
                self._timers.arm("accepted", wait, self._repeat)

    def _repeat(self) -> None:
        assert self._newest is not None
        self._sent_at = self._clock()
        self._send(self._newest)
