"""Which CPUs this process, and with it every worker, may compute on.

Of a container the quota counts too (cgroup v2): it has more CPUs than time on them, and threads
beyond that would only be stopped in the middle of their work. Does NOT know who computes on which.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def core_ids(most: int = 0, quota: Path = CPU_MAX) -> list[int]:
    """Ids as in `os.sched_getaffinity`, so many at most; 0: all this process may use."""
    if hasattr(os, "sched_getaffinity"):
        ids = sorted(os.sched_getaffinity(0))
    else:
        ids = list(range(os.cpu_count() or 1))
    bounds = [len(ids), *(bound for bound in (most, _quota_cores(quota)) if bound)]
    return ids[: min(bounds)]


def _quota_cores(file: Path) -> int:
    """`200000 100000`: 200 ms of CPU time per 100 ms. 0 without a limit."""
    try:
        quota, period = file.read_text().split()
        return 0 if quota == "max" else max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return 0
