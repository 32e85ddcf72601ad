"""Binds this process, all its threads and all processes below it, to some CPUs of the machine.

A thread and a process inherit the CPUs of who creates them, so it is enough to bind those that
exist; what a thread created just before it was bound is found in the next pass, and passes go on
until one finds nothing new. Whatever ends meanwhile is let go. Where a system cannot bind threads
(macOS) nothing happens: there only the number of threads that engines start with bounds them.
Does NOT know who gets which CPUs (see `scheduling.core_budget`), nor what the threads compute.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

# A process that starts threads faster than they can be bound would keep this up for ever.
MOST_PASSES = 100


def bind(cpus: Collection[int]) -> None:
    """From now on, from any thread. CPUs that this process may not use are left out by the system;
    when none is left everything stays as it was."""
    if not hasattr(os, "sched_setaffinity") or not cpus:
        return
    bound: set[int] = set()
    for _ in range(MOST_PASSES):
        new = 0
        for thread in _threads(os.getpid()):
            if thread not in bound:
                bound.add(thread)
                new += _bind(thread, cpus)
        if not new:
            return


def usable(otherwise: int) -> int:
    """How many CPUs the calling thread may compute on; `otherwise` where nobody can say."""
    if not hasattr(os, "sched_getaffinity"):
        return otherwise
    return len(os.sched_getaffinity(0))


def _bind(thread: int, cpus: Collection[int]) -> bool:
    try:
        os.sched_setaffinity(thread, cpus)
    except (ProcessLookupError, PermissionError):  # it ended; or its number is another's by now
        return False
    except OSError:  # none of the CPUs is ours any more: the system's bound is the narrower one
        return False
    return True


def _threads(process: int) -> Iterator[int]:
    """All of `process`, then those of the processes below it. A thread is yielded before what it
    created is looked up, so that whoever binds at once lets nothing slip through below."""
    threads = _numbers(process)
    yield from threads
    for thread in threads:
        for child in _children(process, thread):
            yield from _threads(child)


def _numbers(process: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{process}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _children(process: int, thread: int) -> list[int]:
    try:
        with open(f"/proc/{process}/task/{thread}/children") as file:
            return [int(name) for name in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
