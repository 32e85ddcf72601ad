"""The same adapter without gateway, IPC or wire: `python -m plait.bench.direct`, the yardstick.

A child that loads an adapter as a worker would, then answers one line of JSON with another:
`Batch` in, `BatchTimes` out.
The model library stays in this process, so nothing of it is shared with the server under test.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from time import monotonic, process_time
from typing import Any

import msgspec

from plait.engines.base import Engine, Event, Failed, Item, LoadSpec, Prepare, Refused, Released
from plait.engines.worker import ADAPTERS, SWITCH_INTERVAL_SECONDS


class Batch(msgspec.Struct):
    """Params of jobs, that start together and run to their ends; `together` False: one by one.

    `scope`: who may share cached prefixes (a connection's name, on the wire).
    """

    scope: str
    jobs: list[dict[str, Any]]
    method: str = "chat"
    together: bool = True


class BatchTimes(msgspec.Struct):
    """Monotonic seconds. `items`: arrivals per job; `units`: of all, completion tokens or texts."""

    begin: float
    end: float
    cpu_seconds: float
    units: int
    items: list[list[float]]


class _NoCancels:
    """Nobody stops anything here."""

    def stamp(self, job: int) -> None:
        return None


class Driver:
    """Runs batches on one engine; jobs are numbered over all batches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last_job = 0

    def run(self, batch: Batch) -> BatchTimes:
        """Raises RuntimeError when a job fails: a yardstick must be whole."""
        begin, cpu = monotonic(), process_time()
        groups = [batch.jobs] if batch.together else [[params] for params in batch.jobs]
        items: list[list[float]] = []
        units = 0
        for group in groups:
            units += self._run_together(batch, group, items)
        return BatchTimes(begin, monotonic(), process_time() - cpu, units, items)

    def _run_together(
        self, batch: Batch, group: list[dict[str, Any]], items: list[list[float]]
    ) -> int:
        """Units of the group; appends each job's arrivals to `items`."""
        arrivals: dict[int, list[float]] = {job: [] for job in self._start(batch, group)}
        units, running = 0, set(arrivals)
        while running:
            for event in self._engine.step():
                units += self._note(event, arrivals, running)
        items += arrivals.values()
        return units

    def _start(self, batch: Batch, group: list[dict[str, Any]]) -> Sequence[int]:
        jobs = range(self._last_job + 1, self._last_job + 1 + len(group))
        self._last_job = jobs[-1]
        for job, params in zip(jobs, group, strict=True):
            self._engine.prepare(Prepare(job, batch.method, params, batch.scope))
            self._engine.start(job)
        return jobs

    @staticmethod
    def _note(event: Event, items: dict[int, list[float]], running: set[int]) -> int:
        match event:
            case Item(job=job):
                items[job].append(monotonic())
            case Released(job=job, usage=usage):
                running.discard(job)
                return usage["texts" if "texts" in usage else "completion_tokens"]
            case Failed(fault=fault) | Refused(fault=fault):
                raise RuntimeError(f"a job failed: {fault.code}, {fault.message}")
            case _:
                pass
        return 0


def main() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    spec = msgspec.json.decode(sys.stdin.buffer.readline(), type=LoadSpec)
    load = importlib.import_module(ADAPTERS[spec.engine]).load
    driver = Driver(load(spec, _NoCancels(), lambda phase, percent: None))
    while line := sys.stdin.buffer.readline():
        times = driver.run(msgspec.json.decode(line, type=Batch))
        sys.stdout.buffer.write(msgspec.json.encode(times) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
