"""What follows the death of a worker: a restart after a back-off, or giving the model up.

Pure policy: no clock, no process. A load that failed for a stated reason is final, because a retry
at once fails again; crashes are retried with a growing delay, and so are deaths while
loading, but only a few in a row (a corrupt file that crashes its library looks like that).
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.engines.base import Fault
from plait.errors import EngineCrashed, ModelLoadFailed, PlaitError


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, but for the last two.

    A worker is pinged every `ping`, unhealthy after `unhealthy` without a sign of life, killed
    after `stalled` (`load_stalled` while it loads), and has `load` to become ready and
    `unload` to end. The back-off doubles from `first` to `max` and starts afresh once a worker was
    ready for `healthy`.
    """

    ping_seconds: float = 1.0
    unhealthy_seconds: float = 3.0
    stalled_seconds: float = 30.0
    load_stalled_seconds: float = 600.0
    load_seconds: float = 600.0
    unload_seconds: float = 5.0
    first_backoff_seconds: float = 0.1
    max_backoff_seconds: float = 30.0
    healthy_seconds: float = 60.0
    max_deaths_while_loading: int = 5
    max_backlog_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Death:
    """`cause` is shown to peers; `ready_seconds` is None when the worker never became ready.
    `spawned`: there was a process; without one nothing is known against the model."""

    cause: str
    ready_seconds: float | None = None
    load_fault: Fault | None = None
    spawned: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the lost jobs end with, and when to restart; None: never, the model failed."""

    error: PlaitError
    delay_seconds: float | None


class RestartPolicy:
    """Judges the deaths of one model's workers, one after the other."""

    def __init__(self, model: str, limits: Limits) -> None:
        self._model = model
        self._limits = limits
        self._backoff_seconds = 0.0
        self._deaths_while_loading = 0

    def judge(self, death: Death) -> Verdict:
        if death.load_fault is not None:
            return Verdict(_load_failure(death.load_fault), None)
        ready = death.ready_seconds is not None
        if death.spawned:
            self._deaths_while_loading = 0 if ready else self._deaths_while_loading + 1
        if self._deaths_while_loading >= self._limits.max_deaths_while_loading:
            return Verdict(self._unloadable(death), None)
        self._backoff_seconds = self._next_backoff_seconds(death.ready_seconds or 0.0)
        return Verdict(self._crashed(death), self._backoff_seconds)

    def _next_backoff_seconds(self, ready_seconds: float) -> float:
        limits = self._limits
        if self._backoff_seconds == 0 or ready_seconds >= limits.healthy_seconds:
            return limits.first_backoff_seconds
        return min(self._backoff_seconds * 2, limits.max_backoff_seconds)

    def _crashed(self, death: Death) -> EngineCrashed:
        return EngineCrashed(
            f"The engine of model '{self._model}' stopped ({death.cause}) and is being restarted; "
            "open the stream again.",
            retry_after_ms=round(self._backoff_seconds * 1000),
        )

    def _unloadable(self, death: Death) -> ModelLoadFailed:
        return ModelLoadFailed(
            f"The engine of model '{self._model}' died {self._deaths_while_loading} times while "
            f"loading it ({death.cause}); the server's log says more."
        )


def overdue(model: str, seconds: float) -> Fault:
    """It was not loaded within `seconds`."""
    error = ModelLoadFailed(
        f"Model '{model}' was not loaded within {seconds:g} s; give it more time"
        " (load_timeout_seconds) or a faster disk."
    )
    return Fault.of(error)


def _load_failure(fault: Fault) -> ModelLoadFailed:
    """Whatever kept the model from loading: to a peer the failed load is what counts."""
    error = fault.to_error()
    if isinstance(error, ModelLoadFailed):
        return error
    return ModelLoadFailed(error.message, data=error.data)
