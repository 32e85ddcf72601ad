"""The metrics of the machine's memory and of each model's place in it. It only reports."""

from __future__ import annotations

from plait.metrics import Metrics
from plait.scheduling.ledger import Ledger


class ResidentMetrics:
    """Binds the `model` label once."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._bytes = metrics.model_bytes.labels(model)
        self._loads = metrics.model_loads_total.labels(model)
        self._evictions = metrics.model_evictions_total.labels(model)
        self._prefix_bytes = metrics.prefix_cache_bytes.labels(model)

    def loaded(self, size_bytes: int) -> None:
        self._loads.inc()
        self._bytes.set(size_bytes)

    def evicted(self) -> None:
        self._evictions.inc()

    def unloaded(self) -> None:
        self._bytes.set(0)

    def prefixes(self, size_bytes: int) -> None:
        """By the engine's own account."""
        self._prefix_bytes.set(size_bytes)


class MemoryMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._m = metrics

    def ledger(self, ledger: Ledger) -> None:
        """As of now (on each scrape)."""
        self._m.memory_budget_bytes.set(ledger.limit_bytes)
        self._m.memory_used_bytes.set(ledger.used_bytes + ledger.cache_bytes)

    def available(self, available_bytes: int, *, pressed: bool) -> None:
        self._m.memory_available_bytes.set(available_bytes)
        self._m.memory_pressure.set(pressed)
