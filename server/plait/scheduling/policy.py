"""The scheduler's bounds and patience, as values. They decide nothing by themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchedulerPolicy:
    max_queued: int = 64
    queue_timeout_seconds: float = 60.0
    yield_after_seconds: float = 1.0  # a paused stream gives its slot to others after this
    idle_input_seconds: float = 2.0  # and so does one that has nothing to do without more input
    release_bound_seconds: float = 0.1  # later releases count as late
    kill_after_seconds: float = 10.0  # an unconfirmed cancel ends the worker
