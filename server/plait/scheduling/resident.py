"""One configured model and its place in memory: out, coming, in, leaving.

Stands between its engine's process and its scheduler: hears what the process does, keeps the
ledger's charge for it, and answers the scheduler whether a stream can be taken. A charge begins
with the load and ends with the exit of the last process. What it really takes is measured when it
is ready; from then on the larger figure counts. Does NOT decide who is loaded or evicted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from plait.engines.base import EngineInfo, JobEvent, KeepPrefixes, LoadSpec, Stats
from plait.errors import ModelLoadFailed, PlaitError
from plait.scheduling.ledger import Ledger, not_available
from plait.scheduling.machine_metrics import ResidentMetrics
from plait.scheduling.residency import ModelState, Place
from plait.scheduling.roles import EngineHandle
from plait.scheduling.scheduler import Scheduler


class LoadableEngine(EngineHandle, Protocol):
    """What is needed of `engines.process.EngineProcess` beside that."""

    @property
    def stats(self) -> Stats: ...

    def load(self) -> None: ...

    def unload(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a model that failed to load is left alone: doubled with each failure in a row."""

    first_seconds: float = 5.0
    max_seconds: float = 300.0

    def delay_seconds(self, failures: int) -> float:
        return min(self.max_seconds, self.first_seconds * 2.0 ** min(failures - 1, 30))


class Resident:
    """`engine` is set once, before the first event. `changed` asks for a new plan."""

    engine: LoadableEngine

    def __init__(
        self,
        spec: LoadSpec,
        scheduler: Scheduler,
        ledger: Ledger,
        metrics: ResidentMetrics,
        retry: RetryPolicy,
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self.spec = spec
        self.scheduler = scheduler
        self.place: Place = "out"
        self.size_bytes = spec.memory_bytes
        self.used = clock()
        self.loads = self.evictions = 0
        self.shortage: Callable[[], PlaitError | None] = lambda: None
        self._ledger = ledger
        self._metrics = metrics
        self._retry = retry
        self._changed = changed
        self._clock = clock
        self._kept = False
        self._keeps_prefixes = False  # of its own, beside the memory it was loaded with
        self._prefix_cap_bytes = spec.prefix_cache_bytes
        self._failures = 0
        self._failure: ModelLoadFailed | None = None
        self._retry_at = 0.0

    def __repr__(self) -> str:
        return f"<Resident {self.name}: {self.place}, {self.size_bytes} bytes>"

    @property
    def name(self) -> str:
        return self.spec.model

    @property
    def state(self) -> ModelState:
        tenancy = self.scheduler.tenancy
        return ModelState(
            self.name,
            self.size_bytes,
            self.place,
            tenancy.in_use,
            self.used,
            self._kept,
            tenancy.holds,
        )

    @property
    def loaded_bytes(self) -> int:
        """What it takes now, on its way in and out too; 0 when it is out."""
        return self._ledger.models.get(self.name, 0)

    @property
    def awaited(self) -> bool:
        """It is on its way in only because somebody asked for it."""
        return self.place == "coming" and not self._kept

    # --- the scheduler calls in (Residence) ------------------------------------------------------

    def check(self) -> None:
        if self.size_bytes > self._ledger.limit_bytes:
            raise self.too_large()
        if self._failure is not None and (left := self._retry_at - self._clock()) > 0:
            raise _failure_of(self._failure, left)
        if (error := self.shortage()) is not None:
            raise error

    def changed(self) -> None:
        self.used = self._clock()
        self._changed()

    def too_large(self) -> PlaitError:
        return not_available(
            self.name,
            self.size_bytes,
            self._ledger.limit_bytes,
            "all models together may take",
            "choose a smaller model, or give it more (memory_budget_bytes)",
        )

    # --- the machine calls in --------------------------------------------------------------------

    def load(self, *, kept: bool = False) -> None:
        """`kept`: also when nobody waits for it (any more)."""
        assert self.place == "out", self
        self.place, self._kept = "coming", kept
        self._ledger.charge_model(self.name, self.size_bytes)
        self.engine.load()

    def evict(self) -> None:
        """It has no streams: give its memory back. A load that is under way is stopped."""
        assert self.place in ("coming", "in"), self
        assert not self.scheduler.tenancy.in_use, self
        if self.place == "in":
            self.evictions += 1
            self._metrics.evicted()
        self.place = "leaving"
        self.scheduler.leave()
        self.engine.unload()

    def observe_stats(self) -> None:
        """Bring the metrics up to date (on each scrape)."""
        stats = self.engine.stats
        self._metrics.prefixes(stats.cache_bytes)
        self.scheduler.observe_stats(stats)

    @property
    def prefix_bytes(self) -> int:
        """What its kept prefixes take of the machine."""
        return self._ledger.caches.get(self.name, 0)

    def keep_prefixes(self, max_bytes: int) -> None:
        """No more than that, nor than it was configured to keep."""
        cap_bytes = min(max_bytes, self.spec.prefix_cache_bytes)
        if self._keeps_prefixes and self.place == "in" and cap_bytes != self._prefix_cap_bytes:
            self._prefix_cap_bytes = cap_bytes
            self.engine.send(KeepPrefixes(cap_bytes))

    # --- its engine's process calls in (EngineListener) ------------------------------------------

    def on_loading(self, phase: str, percent: int | None) -> None:
        self.scheduler.on_loading(phase, percent)

    def on_ready(self, info: EngineInfo) -> None:
        self.place, self._kept = "in", True
        self._failures, self._failure = 0, None
        self._keeps_prefixes = info.kv_kind == "freed"
        self._prefix_cap_bytes = self.spec.prefix_cache_bytes
        self.size_bytes = max(self.size_bytes, info.loaded_bytes)
        self.loads += 1
        self._metrics.loaded(self.size_bytes)
        self._ledger.charge_model(self.name, self.size_bytes)
        self.scheduler.on_ready(info)
        self._changed()

    def on_events(self, events: list[JobEvent]) -> None:
        self.scheduler.on_events(events)

    def on_stats(self, stats: Stats) -> None:
        if self._keeps_prefixes and self.place == "in":
            self._ledger.charge_cache(self.name, stats.cache_bytes)
            self._changed()

    def on_worker_lost(self, error: PlaitError) -> None:
        self._ledger.charge_cache(self.name, 0)
        if isinstance(error, ModelLoadFailed):
            self.place = "leaving"
            error = self._fail(error)
        else:
            self.place = "coming"  # its successor's charge is the same
        self.scheduler.on_worker_lost(error)
        self._changed()

    def on_unloaded(self) -> None:
        self.place = "out"
        self._metrics.unloaded()
        self._ledger.charge_cache(self.name, 0)
        self._ledger.charge_model(self.name, 0)
        self.scheduler.leave()
        self._changed()

    def _fail(self, error: ModelLoadFailed) -> PlaitError:
        self._failures += 1
        self._failure = error
        delay_seconds = self._retry.delay_seconds(self._failures)
        self._retry_at = self._clock() + delay_seconds
        return _failure_of(error, delay_seconds)


def _failure_of(error: ModelLoadFailed, retry_seconds: float) -> ModelLoadFailed:
    return ModelLoadFailed(
        error.message, data=error.data, retry_after_ms=max(1, round(1000 * retry_seconds))
    )
