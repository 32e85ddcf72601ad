"""What the worker loop itself knows of a job, besides what its adapter does, and says of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plait.engines.base import Event, Fault, Released, Usage
from plait.errors import OutOfMemory, PlaitError


@dataclass(slots=True)
class LoopJob:
    """A prepared or started job. `fault`: our reason to end it, told just before `Released`."""

    method: str
    prompt_tokens: int
    running: bool = False
    paused: bool = False
    cancelled: bool = False
    inputs: int = 0  # `Feed` and `FinishInput` it was told
    wasted: int = 0
    fault: Fault | None = None


def usage_of_nothing(job: LoopJob) -> Usage:
    """What a job cost that was prepared and never computed."""
    if job.method != "chat":
        return {}
    return {"prompt_tokens": job.prompt_tokens, "cached_tokens": 0, "completion_tokens": 0}


def fault_of(error: PlaitError | MemoryError) -> Fault:
    if isinstance(error, PlaitError):
        return Fault.of(error)
    return Fault.of(
        OutOfMemory("The engine ran out of memory for this stream; try again or send less.")
    )


def dead_seconds(
    stamps: Mapping[int, float], begin: float, end: float, events: Sequence[Event]
) -> float:
    """What a step spent on cancelled jobs, by job when its cancel arrived: each from then to its
    release."""
    ends = {event.job: event.at for event in events if isinstance(event, Released)}
    return sum(max(0.0, min(end, ends.get(i, end)) - max(begin, at)) for i, at in stamps.items())


def complain(what: str) -> None:
    sys.stderr.write(f"worker: {what}\n")
