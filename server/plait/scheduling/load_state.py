"""How far one model is on its way into memory: not there, loading, ready, or failed.

Knows what the worker said last, and tells those who wait for it; neither processes nor who decides
to load.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.engines.base import EngineInfo
from plait.errors import ModelLoadFailed, PlaitError
from plait.scheduling.line import Line
from plait.wire.messages import Phase


class LoadState:
    """Owned by one scheduler. `info` is None while no worker is ready; `ready_at`: since when one
    is, or the last one was."""

    def __init__(self, line: Line, clock: Callable[[], float]) -> None:
        self.info: EngineInfo | None = None
        self.ready_at = float("-inf")
        self._line = line
        self._clock = clock
        self._percent: int | None = None
        self._error: PlaitError | None = None

    def check(self) -> None:
        """Raises the reason for which it could not be loaded."""
        if self._error is not None:
            raise self._error

    def phase(self) -> tuple[Phase, int, int | None, int | None]:
        """Of a stream that has just joined the line: (phase, position, percent, eta_ms)."""
        position = max(0, len(self._line) - 1)
        if self.info is None:
            return "loading", position, self._percent, None
        return "preparing", position, None, None

    def progress(self, percent: int | None) -> None:
        self._percent = percent
        for position, ticket in enumerate(self._line.loading.values()):
            ticket.listener.on_phase("loading", position, percent, None)

    def ready(self, info: EngineInfo) -> None:
        self.info = info
        self.ready_at = self._clock()
        self._error = None

    def lost(self, error: PlaitError) -> None:
        self.info = self._percent = None
        if isinstance(error, ModelLoadFailed):
            self._error = error

    def unloaded(self) -> None:
        """Nothing is left of it, an earlier failure included: the next load is a new one."""
        self.info = self._percent = self._error = None
