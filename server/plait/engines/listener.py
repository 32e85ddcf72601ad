"""What an engine's process tells its owner: how a load goes, what a worker says, that it is gone.

Called by `engines.process`; the words are those of `events`. Does NOT know what follows from them.
"""

from __future__ import annotations

from typing import Literal, Protocol

from plait.engines.events import EngineInfo, JobEvent, Stats
from plait.errors import PlaitError

State = Literal[
    "unloaded", "starting", "loading", "ready", "unloading", "failed", "restarting", "closed"
]


class EngineListener(Protocol):
    """Called on the event loop; must not block and must not raise."""

    def on_loading(self, phase: str, percent: int | None) -> None: ...

    def on_ready(self, info: EngineInfo) -> None: ...

    def on_events(self, events: list[JobEvent]) -> None:
        """Job events of one frame, in order."""

    def on_worker_lost(self, error: PlaitError) -> None:
        """All jobs of the worker are gone and nothing of it arrives any more.

        EngineCrashed: a new worker comes after a back-off (`retry_after_ms`). ModelLoadFailed: the
        state is `failed` and stays so until the next `load`. Not called for an orderly `close`.
        """

    def on_unloaded(self) -> None:
        """No process of it is left and its memory is back: after `unload`, or after a load that
        failed. Not called for `close`."""

    def on_stats(self, stats: Stats) -> None:
        """What the engine keeps of jobs that are over takes another size now."""
