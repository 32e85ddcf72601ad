"""What the worker loop itself knows of a job, besides what its adapter does."""

from __future__ import annotations

from dataclasses import dataclass

from plait.engines.base import Fault, Usage
from plait.errors import OutOfMemory, PlaitError


@dataclass(slots=True)
class LoopJob:
    """A prepared or started job. `fault`: our reason to end it, told just before `Released`."""

    method: str
    prompt_tokens: int
    running: bool = False
    paused: bool = False
    cancelled: bool = False
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
