"""What each declared app does and holds, as metrics.

Read when they are asked for, from the accounts the decisions are made on, so the two never differ.
Labels are declared names only, each there from the start. Does NOT know: models, sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from plait.access.apps import App, Apps
from plait.sessions.caller import OUTCOMES

Reading = Callable[[App], float]


class AppMetrics(Collector):
    """`memory_bytes`: what an app, by name, holds of the memory."""

    def __init__(self, apps: Apps, memory_bytes: Callable[[str], int]) -> None:
        self._apps = apps
        self._gauges: tuple[tuple[str, str, Reading], ...] = (
            ("connections", "Open connections of the app", lambda app: app.account.connections),
            ("streams_active", "Of its streams, those that run", lambda app: app.account.active),
            ("streams_queued", "Of them, those that wait", lambda app: app.account.queued),
            ("memory_bytes", "KV cache and buffers it holds", lambda app: memory_bytes(app.name)),
        )

    def describe(self) -> list[Metric]:
        """Nothing to ask for when it is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        apps = self._apps.by_name.values()
        if not apps:
            return
        for name, about, read in self._gauges:
            gauge = GaugeMetricFamily(f"plait_app_{name}", about, labels=["app"])
            for app in apps:
                gauge.add_metric([app.name], read(app))
            yield gauge
        total = CounterMetricFamily(
            "plait_app_streams", "Its streams by how they ended", labels=["app", "outcome"]
        )
        for app in apps:
            for outcome in OUTCOMES:
                total.add_metric([app.name, outcome], app.account.outcomes[outcome])
        yield total
