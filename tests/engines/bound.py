"""Where a process and all that it started may compute, as the kernel has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CAN_BIND = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind threads"
)
FIELD = "Cpus_allowed_list:"


def cpus_of(process: int) -> set[int]:
    """Of all its threads, and of the processes below it: every CPU that any of them may use."""
    found: set[int] = set()
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            status = (task / "status").read_text()
            children = (task / "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has ended
        for line in status.splitlines():
            if line.startswith(FIELD):
                found |= _read_list(line.removeprefix(FIELD))
        for child in children:
            found |= cpus_of(int(child))
    return found


def _read_list(text: str) -> set[int]:
    """`0-2,5` as the kernel writes it."""
    spans = [part.split("-") for part in text.split(",")]
    return {cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)}
