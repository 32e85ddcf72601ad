"""Gives the models their CPUs, as they begin and cease to compute: the owner of the core budget.

It decides nothing (see `core_budget`) and applies nothing (see `engines/affinity`): it knows what
each worker was told last, and tells those whose part has changed. Who only leaves CPUs is told
before who gets some, so none is handed out while another was not yet told to leave it. A new
worker begins on the whole budget (`LoadSpec.cpus`), on which it also loads. Called on the event
loop when the number of a model's streams changes; never per item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plait.engines.base import EngineInfo, UseCores
from plait.metrics import Metrics
from plait.scheduling.core_budget import Cpus, assign
from plait.scheduling.roles import EngineHandle


@dataclass(slots=True)
class _Worker:
    """`told`: the CPUs it computes on."""

    info: EngineInfo
    told: Cpus

    def wants(self, streams: int) -> int:
        """How many CPUs it can use for so many streams."""
        cores = max(1, self.info.cores)
        per_stream = self.info.stream_cores
        return min(cores, streams * per_stream) if per_stream else cores


class Cores:
    """Implements `ActivityListener`, for all models. `cpus`: the budget, ids as in
    `os.sched_getaffinity`; `engines`: by model, also those that have no worker yet."""

    def __init__(
        self, cpus: Sequence[int], engines: Mapping[str, EngineHandle], metrics: Metrics
    ) -> None:
        self._cpus = tuple(cpus)
        self._engines = engines
        self._metrics = metrics
        self._workers: dict[str, _Worker] = {}
        self._wants: dict[str, int] = {}  # of the active ones, in the order in which they became so
        self._used = 0
        metrics.cores_budget.set(len(self._cpus))

    @property
    def budget(self) -> int:
        return len(self._cpus)

    @property
    def used(self) -> int:
        """CPUs that active models compute on."""
        return self._used

    def on_worker_ready(self, model: str, info: EngineInfo) -> None:
        self._workers[model] = _Worker(info, frozenset(self._cpus))

    def on_worker_gone(self, model: str) -> None:
        self._workers.pop(model, None)
        self.on_idle(model)

    def on_active(self, model: str, streams: int) -> None:
        cores = self._workers[model].wants(streams)
        if self._wants.get(model) != cores:
            self._wants[model] = cores
            self._assign()

    def on_idle(self, model: str) -> None:
        """What it had is for the others; it keeps it to sleep in."""
        if self._wants.pop(model, None) is not None:
            self._assign()

    def _assign(self) -> None:
        before = {model: worker.told for model, worker in self._workers.items()}
        now = assign(self._cpus, self._wants, before)
        changed = [model for model in now if now[model] != before[model]]
        for model in sorted(changed, key=lambda model: not now[model] <= before[model]):
            self._workers[model].told = now[model]
            self._engines[model].send(UseCores(sorted(now[model])))
        self._used = len(frozenset[int]().union(*now.values()))
        self._metrics.cores_used.set(self._used)
