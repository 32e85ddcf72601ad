"""The metrics of one model, seen from its scheduler. It only reports; it decides nothing."""

from __future__ import annotations

from plait.engines.base import EngineInfo, Stats
from plait.metrics import Metrics
from plait.scheduling.leases import Leases
from plait.wire.messages import UNIT


class ModelMetrics:
    """Binds the `model` label once, so that no label is looked up per token.

    Units of chat are tokens, of embeddings texts; those of speech are milliseconds of audio, told
    in seconds.
    """

    def __init__(self, metrics: Metrics, model: str, method: str) -> None:
        metrics.declare_model(model, method)
        self._m = metrics
        self._model = model
        self._scale = 0.001 if UNIT[method] == "audio_ms" else 1.0
        output, wasted = metrics.output_counters(method)
        self._output = output.labels(model)
        self._wasted = wasted.labels(model)
        self._slots_used = metrics.slots_used.labels(model)
        self._kv_reserved = metrics.kv_reserved_bytes.labels(model)
        self._last = Stats()

    def ready(self, info: EngineInfo) -> None:
        self._m.slots.labels(self._model).set(info.slots)
        self._m.kv_budget_bytes.labels(self._model).set(info.kv_budget_bytes)
        self._m.kv_info.labels(self._model).info({"kind": info.kv_kind})
        self._m.engine_up.labels(self._model).set(1)

    def unloaded(self) -> None:
        """Nothing can be granted until another worker is ready."""
        self._m.slots.labels(self._model).set(0)
        self._m.kv_budget_bytes.labels(self._model).set(0)
        self._m.engine_up.labels(self._model).set(0)

    def lost(self) -> None:
        self._m.worker_losses_total.labels(self._model).inc()

    def leases(self, leases: Leases) -> None:
        self._slots_used.set(leases.slots_used)
        self._kv_reserved.set(leases.budget.reserved_bytes)

    def units(self, units: int) -> None:
        self._output.inc(units * self._scale)

    def queue_wait(self, seconds: float) -> None:
        self._m.queue_wait.observe(seconds)

    def cancel_released(self, seconds: float, wasted: int, *, late: bool) -> None:
        self._m.cancel_release.labels(self._model).observe(seconds)
        self._wasted.inc(wasted * self._scale)
        if late:
            self._m.late_releases_total.labels(self._model).inc()

    def stats(self, stats: Stats) -> None:
        """Gauges and counters by the engine's own account; its counters run on over restarts."""
        last, self._last = self._last, stats
        busy = max(0.0, stats.busy_seconds - last.busy_seconds)
        dead = max(0.0, stats.dead_seconds - last.dead_seconds)
        self._m.engine_slots_used.labels(self._model).set(stats.slots_used)
        self._m.kv_bytes.labels(self._model).set(stats.kv_bytes)
        self._m.engine_busy_seconds.labels(self._model).inc(busy)
        self._m.engine_dead_seconds.labels(self._model).inc(dead)
