"""How much memory this machine, or the container around this process, has in all and has left.

Of a container the tightest limit counts, of cgroup v2 or v1, its own or one around it. What the
system would give back by itself (files in its cache) counts as left, as `MemAvailable` has it.
Reads files that may block: not for the event loop. Does NOT know what the memory is used for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
VMSTAT = Path("/proc/vmstat")
# v1 writes its "no limit" as the largest page-aligned number, v2 as "max".
NO_LIMIT_BYTES = 1 << 60
BUDGET_NUMERATOR, BUDGET_DENOMINATOR = 3, 4


@dataclass(frozen=True, slots=True)
class Group:
    """The memory files of one cgroup, by the names its version gives them."""

    directory: Path
    limit: str
    usage: str
    events: str
    prefix: str = ""  # of the keys of `memory.stat` that count children too

    def limit_bytes(self) -> int | None:
        """None without a limit."""
        limit = _number(self.directory / self.limit)
        return None if limit is None or limit >= NO_LIMIT_BYTES else limit

    def left_bytes(self) -> int | None:
        limit, usage = self.limit_bytes(), _number(self.directory / self.usage)
        if limit is None or usage is None:
            return None
        stat = _pairs(self.directory / "memory.stat")
        cached = sum(stat.get(f"{self.prefix}{kind}_file", 0) for kind in ("active", "inactive"))
        return max(0, limit - max(0, usage - cached))


def total_bytes(groups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Of the machine, or of the container where that is less."""
    limits = [group.limit_bytes() for group in groups_of(groups, membership)]
    return min([psutil.virtual_memory().total, *(size for size in limits if size is not None)])


def available_bytes(groups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """What could be allocated now without swapping or being killed for it."""
    left = [group.left_bytes() for group in groups_of(groups, membership)]
    return min([psutil.virtual_memory().available, *(size for size in left if size is not None)])


def default_budget_bytes() -> int:
    """Three quarters of `total_bytes`: the rest is for the system and the gateway itself."""
    return total_bytes() * BUDGET_NUMERATOR // BUDGET_DENOMINATOR


def oom_kills(
    groups: Path = CGROUPS, membership: Path = MEMBERSHIP, vmstat: Path = VMSTAT
) -> int | None:
    """How many processes the system has killed for want of memory, as near to ours as can be told;
    None where it does not say."""
    for group in groups_of(groups, membership):
        counted = _pairs(group.directory / group.events).get("oom_kill")
        if counted is not None:
            return counted
    return _pairs(vmstat).get("oom_kill")


def groups_of(groups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> Iterator[Group]:
    """Ours first, then those around it, as far as they can be seen from here."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = groups if not controllers else groups / "memory"
        own = root / path.lstrip("/")
        for directory in (own, *(parent for parent in own.parents if parent.is_relative_to(root))):
            if controllers and (directory / "memory.limit_in_bytes").is_file():
                names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")
                yield Group(directory, *names, prefix="total_")
            elif not controllers and (directory / "memory.max").is_file():
                yield Group(directory, "memory.max", "memory.current", "memory.events")


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _pairs(file: Path) -> dict[str, int]:
    """`key value` a line."""
    words = (line.split() for line in _text(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}
