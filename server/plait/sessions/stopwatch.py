"""The times of one stream, for its terminal's `timing`: moments in, milliseconds out.

Knows no stream and no loop; the clock is passed in.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.wire.messages import Timing


class Stopwatch:
    """`opened` is when the open was read; all times are seconds of `clock`."""

    def __init__(self, opened: float, clock: Callable[[], float]) -> None:
        self.opened = opened
        self._clock = clock
        self._started: float | None = None
        self._first_item: float | None = None
        self._paused_since: float | None = None
        self._paused_seconds = 0.0

    @property
    def started(self) -> bool:
        return self._started is not None

    @property
    def started_at(self) -> float | None:
        return self._started

    @property
    def paused(self) -> bool:
        return self._paused_since is not None

    def start(self) -> None:
        self._started = self._clock()

    @property
    def had_item(self) -> bool:
        return self._first_item is not None

    def first_item(self) -> float:
        """It came out of the engine: so many seconds after the open."""
        self._first_item = self._clock()
        return self._first_item - self.opened

    def pause(self) -> None:
        assert self._paused_since is None
        self._paused_since = self._clock()

    def resume(self) -> None:
        """The end of a pause, if there is one."""
        if self._paused_since is not None:
            self._paused_seconds += self._clock() - self._paused_since
            self._paused_since = None

    def timing(self, *, items_left: bool) -> Timing:
        """As of now. An item that was purged before it left does not count as a first one."""
        self.resume()
        now = self._clock()
        return Timing(
            queued_ms=self._since_open(now if self._started is None else self._started),
            first_item_ms=(
                self._since_open(self._first_item)
                if items_left and self._first_item is not None
                else None
            ),
            total_ms=self._since_open(now),
            paused_ms=round(self._paused_seconds * 1000, 1),
        )

    def _since_open(self, moment: float) -> float:
        return round((moment - self.opened) * 1000, 1)
