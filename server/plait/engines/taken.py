"""What this process and all it has started take of the machine's memory, as the system counts it.

Pages that several of them share count once (PSS) where the system can tell, else in each (RSS).
Used once per load, by the worker. Does NOT know what the memory is used for.
"""

from __future__ import annotations

import psutil


def taken_bytes() -> int:
    """Now; processes that end meanwhile take nothing."""
    me = psutil.Process()
    return sum(_of(process) for process in (me, *me.children(recursive=True)))


def _of(process: psutil.Process) -> int:
    try:
        return _shared_once(process) if psutil.LINUX else int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _shared_once(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:  # of a process of our own: a sandbox that hides smaps
        return int(process.memory_info().rss)
