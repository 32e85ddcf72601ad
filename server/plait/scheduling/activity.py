"""How many streams one model computes for, told to whoever shares out the machine: once a change.

Active is a model whose slots are not all free. Does NOT know what the listener makes of it.
"""

from __future__ import annotations

from plait.engines.base import EngineInfo
from plait.scheduling.roles import ActivityListener


class Activity:
    """Owned by one scheduler. `listener` may be set once, before the first event."""

    def __init__(self, model: str) -> None:
        self.listener: ActivityListener | None = None
        self._model = model
        self._worker = False
        self._streams = 0

    def ready(self, info: EngineInfo) -> None:
        self._worker = True
        if self.listener is not None:
            self.listener.on_worker_ready(self._model, info)

    def gone(self) -> None:
        """Without a worker nothing of it is active; a second call says nothing."""
        told = self._worker
        self._worker, self._streams = False, 0
        if told and self.listener is not None:
            self.listener.on_worker_gone(self._model)

    def follow(self, slots_used: int) -> None:
        """The number of slots in use is now this."""
        streams = slots_used if self._worker else 0
        if streams == self._streams:
            return
        self._streams = streams
        if self.listener is None:
            return
        if streams:
            self.listener.on_active(self._model, streams)
        else:
            self.listener.on_idle(self._model)
