"""What a server holds at one moment: by its own gauges, and by the kernel's account of processes.

A worker is named by its model, which the server's log tells; what it forks is counted apart. Of
somebody else's server only the gauges are known. Does NOT judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Literal

import msgspec
import psutil

from plait.bench.figures import Metrics, histogram_bounds
from plait.bench.serving import Server

GATEWAY = "gateway"
FORKED = " (forked)"
HELD = {
    "connections": "plait_connections",
    "streams": "plait_streams_active",
    "queued": "plait_streams_queued",
    "slots": "plait_slots_used",
    "engine slots": "plait_engine_slots_used",
    "KV bytes": "plait_kv_bytes",
    "KV reserved bytes": "plait_kv_reserved_bytes",
}
"""What must be 0 when nobody asks for anything."""

KEPT = {
    "tasks": "plait_tasks",
    "gateway fds": "plait_open_fds",
    "prefix cache bytes": "plait_prefix_cache_bytes",
    "memory used bytes": "plait_memory_used_bytes",
}
TOTALS = {
    "ended": "plait_streams_total",
    "late releases": "plait_late_releases_total",
    "worker losses": "plait_worker_losses_total",
}


@dataclass(frozen=True, slots=True)
class Held:
    """By one process, or by all that a worker has forked.

    `mapped_bytes`: of the resident ones, those of files such as weights (0 where the system does
    not tell). They become resident as they are first needed, up to the file's size, and the system
    takes them back when it likes: no work holds them.
    """

    rss_bytes: int
    mapped_bytes: int
    fds: int
    threads: int

    @property
    def own_bytes(self) -> int:
        return self.rss_bytes - self.mapped_bytes

    def __add__(self, other: Held) -> Held:
        return Held(
            self.rss_bytes + other.rss_bytes,
            self.mapped_bytes + other.mapped_bytes,
            self.fds + other.fds,
            self.threads + other.threads,
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """`at`: seconds since the watch began. `lag_p99_ms`: at most, since the sample before."""

    at: float
    gauges: Mapping[str, float]
    processes: Mapping[str, Held]
    lag_p99_ms: float | None = None

    @property
    def at_rest(self) -> bool:
        return all(self.gauges[name] == 0 for name in HELD)

    @property
    def descriptors(self) -> float:
        """Of all processes, or of what is known."""
        if self.processes:
            return sum(held.fds for held in self.processes.values())
        return self.gauges["gateway fds"]

    def beyond(self, before: Sample) -> bool:
        """Whether it holds tasks or descriptors that were not there then."""
        tasks = self.gauges["tasks"] > before.gauges["tasks"]
        return tasks or self.descriptors > before.descriptors


class _Started(msgspec.Struct):
    """A line of the server's log."""

    event: Literal["worker.started"]
    pid: int
    model: str


@dataclass(slots=True)
class Names:
    """Which model each worker serves; feed it the server's log."""

    by_pid: dict[int, str] = field(default_factory=dict)

    def read(self, line: str) -> None:
        with contextlib.suppress(msgspec.DecodeError):
            started = msgspec.json.decode(line, type=_Started)
            self.by_pid[started.pid] = started.model


class Watch:
    """Takes samples of one server."""

    def __init__(self, server: Server, names: Names) -> None:
        self._server = server
        self._names = names
        self._began = monotonic()
        self._last: Metrics = {}

    async def sample(self) -> Sample:
        """Raises BenchError when the server cannot be read."""
        metrics = await self._server.metrics()
        processes = await asyncio.to_thread(self._processes)
        bounds = histogram_bounds(self._last, metrics, "plait_loop_lag_seconds", 0.99)
        self._last = metrics
        lag = None if bounds is None else 1000 * bounds[1]
        return Sample(monotonic() - self._began, gauges_of(metrics), processes, lag)

    def _processes(self) -> dict[str, Held]:
        if self._server.pid is None:
            return {}
        found: dict[str, Held] = {}
        gateway = psutil.Process(self._server.pid)
        _add(found, GATEWAY, gateway)
        for worker in gateway.children():
            name = self._names.by_pid.get(worker.pid, "worker")
            _add(found, name, worker)
            with contextlib.suppress(psutil.NoSuchProcess):
                for forked in worker.children(recursive=True):
                    _add(found, name + FORKED, forked)
        return found


def gauges_of(metrics: Metrics) -> dict[str, float]:
    """By our names, all labels added up; rejected streams do not count as ended."""
    values = dict.fromkeys([*HELD, *KEPT, *TOTALS], 0.0)
    ours = {real: name for name, real in (HELD | KEPT | TOTALS).items()}
    for (sample, labels), value in metrics.items():
        if sample in ours and ("outcome", "rejected") not in labels:
            values[ours[sample]] += value
    return values


def _add(found: dict[str, Held], name: str, process: psutil.Process) -> None:
    """One that has just gone holds nothing."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess), process.oneshot():
        held = held_by(process)
        found[name] = found[name] + held if name in found else held


def held_by(process: psutil.Process) -> Held:
    return Held(
        process.memory_info().rss,
        _mapped_bytes(process.pid),
        process.num_fds(),
        process.num_threads(),
    )


def _mapped_bytes(pid: int) -> int:
    """Linux tells them apart from what is shared without a file, which is a process's own."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        if told := re.search(r"^RssFile:\s+(\d+) kB$", status, re.MULTILINE):
            return 1024 * int(told[1])
    return 0
