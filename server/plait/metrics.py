"""Every metric of the gateway, in one registry with fixed label sets.

Labels are methods, outcomes, refusal codes and *configured* model names; nothing a client chooses
becomes a label (an unknown model counts under no model at all). Instances are passed in, never
global, so tests and embedding programs do not share counters.
"""

from __future__ import annotations

import asyncio
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)

# A `_created` twin of every counter doubles the page and says when a label was first seen: never.
disable_created_metrics()  # type: ignore[no-untyped-call]

METHODS: Final = ("chat", "transcribe", "synthesize", "embed")
OUTCOMES: Final = ("completed", "cancelled", "errored", "rejected")
_MS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10)


class Metrics:
    """Counters and gauges by name; see docs/operations.md for what each one answers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self.connections = Gauge("plait_connections", "Open WebSocket connections", registry=r)
        self.loop_lag = Histogram(
            "plait_loop_lag_seconds", "How late the event loop ran", registry=r, buckets=_MS
        )
        # Both are counted only when the page is asked for.
        self.tasks = Gauge("plait_tasks", "Tasks of the gateway's event loop", registry=r)
        self.tasks.set_function(_count_tasks)
        self.open_fds = Gauge("plait_open_fds", "Descriptors the gateway has open", registry=r)
        self.cores_budget = Gauge(
            "plait_cores_budget", "CPU cores that all models together may compute on", registry=r
        )
        self.cores_used = Gauge(
            "plait_cores_used", "CPU cores that models with running streams have", registry=r
        )
        self._streams(r)
        self._models(r)
        self._work(r)
        self._memory(r)

    def _streams(self, r: CollectorRegistry) -> None:
        self.streams_active = Gauge(
            "plait_streams_active",
            "Streams that hold or held a slot and run",
            ["method"],
            registry=r,
        )
        self.streams_queued = Gauge(
            "plait_streams_queued", "Streams not started yet", ["method"], registry=r
        )
        self.streams_total = Counter(
            "plait_streams_total", "Streams by how they ended", ["method", "outcome"], registry=r
        )
        self.cancelled_total = Counter(
            "plait_cancelled_total", "Cancelled streams by cause", ["by"], registry=r
        )
        self.queue_wait = Histogram(
            "plait_queue_wait_seconds",
            "From reading the open to the slot",
            registry=r,
            buckets=(*_MS, 30, 60),
        )
        self.first_item = Histogram(
            "plait_first_item_seconds",
            "From reading the open to the first item out of the engine",
            ["method"],
            registry=r,
            buckets=(*_MS, 30, 60),
        )
        self.streams_total.labels("other", "rejected")  # an open too broken to name its method
        for method in METHODS:
            self.streams_active.labels(method)
            self.streams_queued.labels(method)
            self.first_item.labels(method)
            for outcome in OUTCOMES:
                self.streams_total.labels(method, outcome)

    def _models(self, r: CollectorRegistry) -> None:
        model = ["model"]
        self.slots = Gauge("plait_slots", "Slots of the engine", model, registry=r)
        self.slots_used = Gauge(
            "plait_slots_used", "Slots leased by the scheduler", model, registry=r
        )
        self.engine_slots_used = Gauge(
            "plait_engine_slots_used", "Slots busy by the engine's own account", model, registry=r
        )
        self.kv_bytes = Gauge(
            "plait_kv_bytes", "KV cache of live jobs by the engine's account", model, registry=r
        )
        self.kv_reserved_bytes = Gauge(
            "plait_kv_reserved_bytes", "KV cache reserved by the scheduler", model, registry=r
        )
        self.kv_budget_bytes = Gauge("plait_kv_budget_bytes", "KV budget", model, registry=r)
        self.kv_info = Info(
            "plait_kv", "freed: memory is returned; reusable: preallocated", model, registry=r
        )
        self.cancel_release = Histogram(
            "plait_cancel_release_seconds",
            "From reading a cancel to the engine's confirmed release",
            model,
            registry=r,
            buckets=_MS,
        )
        self.late_releases_total = Counter(
            "plait_late_releases_total", "Releases later than the bound", model, registry=r
        )

    def _work(self, r: CollectorRegistry) -> None:
        model = ["model"]
        self.tokens_total = Counter(
            "plait_tokens_total", "Chat tokens that came out of the engine", model, registry=r
        )
        self.wasted_tokens_total = Counter(
            "plait_wasted_tokens_total", "Chat tokens computed after a cancel", model, registry=r
        )
        self.audio_seconds_total = Counter(
            "plait_audio_seconds_total", "Audio spoken, or found to be speech", model, registry=r
        )
        self.wasted_audio_seconds_total = Counter(
            "plait_wasted_audio_seconds_total", "Audio computed after a cancel", model, registry=r
        )
        self.texts_total = Counter(
            "plait_texts_total", "Texts that were embedded", model, registry=r
        )
        self.wasted_texts_total = Counter(
            "plait_wasted_texts_total", "Texts embedded after a cancel", model, registry=r
        )
        self.engine_busy_seconds = Counter(
            "plait_engine_busy_seconds_total", "Seconds the engine stepped", model, registry=r
        )
        self.engine_dead_seconds = Counter(
            "plait_engine_dead_seconds_total", "Of these, for cancelled jobs", model, registry=r
        )
        self.engine_up = Gauge("plait_engine_up", "1 when loaded and live", model, registry=r)
        self.worker_losses_total = Counter(
            "plait_worker_losses_total", "Workers that died", model, registry=r
        )

    def _memory(self, r: CollectorRegistry) -> None:
        model = ["model"]
        self.memory_budget_bytes = Gauge(
            "plait_memory_budget_bytes", "Memory for models, KV caches and buffers", registry=r
        )
        self.memory_used_bytes = Gauge(
            "plait_memory_used_bytes", "Of that, what is granted or kept", registry=r
        )
        self.memory_available_bytes = Gauge(
            "plait_memory_available_bytes", "Memory the machine itself has left", registry=r
        )
        self.memory_pressure = Gauge(
            "plait_memory_pressure", "1 while the machine itself is short of memory", registry=r
        )
        self.model_bytes = Gauge(
            "plait_model_bytes", "Memory of the loaded model, 0 when it is out", model, registry=r
        )
        self.model_loads_total = Counter(
            "plait_model_loads_total", "Loads that ended with a ready worker", model, registry=r
        )
        self.model_evictions_total = Counter(
            "plait_model_evictions_total", "Times it was idle and had to go", model, registry=r
        )
        self.prefix_cache_bytes = Gauge(
            "plait_prefix_cache_bytes", "Kept prefixes by the engine's account", model, registry=r
        )

    def declare_model(self, name: str, method: str) -> None:
        """Show a configured model's series from the start, at zero: those of its method."""
        for gauge in (self.slots, self.slots_used, self.engine_slots_used, self.engine_up):
            gauge.labels(name)
        for gauge in (self.kv_bytes, self.kv_reserved_bytes, self.kv_budget_bytes):
            gauge.labels(name)
        for counter in (
            *self.output_counters(method),
            self.late_releases_total,
            self.engine_busy_seconds,
            self.engine_dead_seconds,
            self.worker_losses_total,
        ):
            counter.labels(name)
        self.cancel_release.labels(name)
        for metric in (
            self.model_bytes,
            self.prefix_cache_bytes,
            self.model_loads_total,
            self.model_evictions_total,
        ):
            metric.labels(name)

    def output_counters(self, method: str) -> tuple[Counter, Counter]:
        """What came out of a model of `method`, and what of it nobody waited for any more."""
        if method in ("transcribe", "synthesize"):
            return self.audio_seconds_total, self.wasted_audio_seconds_total
        if method == "embed":
            return self.texts_total, self.wasted_texts_total
        return self.tokens_total, self.wasted_tokens_total

    def render(self) -> bytes:
        """Prometheus text format 0.0.4."""
        return generate_latest(self.registry)


def _count_tasks() -> int:
    """0 where no event loop runs."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0
