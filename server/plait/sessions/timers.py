"""One stream's timers by name: each armed at most once, none left after its stream.

They fire on the event loop; one that is late because the process was suspended or stalled gives
what has arrived meanwhile the time to be read: an acknowledgement may be among it. Does NOT know
what they are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LATE_SECONDS = 1.0
CATCH_UP_SECONDS = 1.0


class Timers:
    def __init__(self) -> None:
        self._armed: dict[str, asyncio.TimerHandle] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._armed

    def arm(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        """`action` runs once in `seconds`, or with the end of this tick if that is past."""
        assert name not in self._armed, name
        loop = asyncio.get_running_loop()
        self._armed[name] = loop.call_later(max(0.0, seconds), self._fire, name, action)

    def disarm(self, name: str) -> None:
        if timer := self._armed.pop(name, None):
            timer.cancel()

    def disarm_all(self) -> None:
        for name in list(self._armed):
            self.disarm(name)

    def _fire(self, name: str, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._armed.pop(name).when() > LATE_SECONDS:
            self.arm(name, CATCH_UP_SECONDS, action)
            return
        action()
