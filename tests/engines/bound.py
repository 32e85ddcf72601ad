"""Where a process and all that it started may compute, as the kernel has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CAN_BIND = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind threads"
)
FIELD = "Cpus_allowed_list:"


def cpus_of(process: int) -> set[str]:
    """As the kernel writes them, of all its threads and of the processes below it."""
    found: set[str] = set()
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            status = (task / "status").read_text()
            children = (task / "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has ended
        found |= {line.split()[1] for line in status.splitlines() if line.startswith(FIELD)}
        for child in children:
            found |= cpus_of(int(child))
    return found
