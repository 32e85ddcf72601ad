"""Who a scheduler talks to: the streams that hold its tickets, the engine's process, and who wants
to know which models compute."""

from __future__ import annotations

from typing import Protocol

from plait.engines.base import Command, EngineInfo, Item, Prepared, Released, Usage
from plait.errors import PlaitError
from plait.wire.messages import FinishReason, Format, Phase


class EngineHandle(Protocol):
    """What the scheduler needs of `engines.process.EngineProcess`."""

    def send(self, command: Command) -> None: ...

    def kill(self, reason: str) -> None: ...


class Residence(Protocol):
    """What the scheduler needs of whoever decides which models are in memory (see `machine`)."""

    def check(self) -> None:
        """Raises the typed reason for which no new stream can be taken: the model does not fit, it
        could not be loaded just now, the machine is short of memory."""

    def changed(self) -> None:
        """Streams came or went, or the first in line wants another amount of memory."""


class AlwaysResident:
    """The residence of a model that is loaded whatever happens."""

    def check(self) -> None:
        return

    def changed(self) -> None:
        return


class StreamListener(Protocol):
    """What a stream hears of its ticket. Called on the event loop; must not block or raise.

    After `on_released`, `on_refused` or `on_lost` nothing more is called.
    """

    def on_phase(
        self, phase: Phase, position: int, percent: int | None, eta_ms: int | None
    ) -> None: ...

    def on_started(self, model: str, prepared: Prepared, format: Format | None) -> None: ...

    def on_consumed(self, size_bytes: int) -> None:
        """The job took so much more of its input; upload credit goes back."""

    def on_item(self, item: Item) -> None: ...

    def on_finished(self, finish_reason: FinishReason, usage: Usage) -> None: ...

    def on_failed(self, error: PlaitError, usage: Usage) -> None:
        """The job broke while running; `on_released` follows."""

    def on_refused(self, error: PlaitError) -> None:
        """It will not run; nothing is held."""

    def on_released(self, released: Released) -> None: ...

    def on_lost(self, error: PlaitError) -> None:
        """The worker died: everything is free, nothing more will come."""


class ActivityListener(Protocol):
    """Hears which models have a worker and which of them compute. Called on the event loop, once
    per change; must not block or raise.

    A model is active while a stream holds one of its slots. `on_active` comes before the worker is
    told to start, again when it is for another number of streams, and with the next stream after
    `on_worker_gone`, which implies `on_idle`.
    """

    def on_worker_ready(self, model: str, info: EngineInfo) -> None: ...

    def on_worker_gone(self, model: str) -> None:
        """It died or was unloaded; commands to it reach nobody until the next `on_worker_ready`."""

    def on_active(self, model: str, streams: int) -> None: ...

    def on_idle(self, model: str) -> None: ...
