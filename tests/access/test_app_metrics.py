"""Metrics of apps: declared names only, there from the start, and what the accounts say."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from plait.access.app_metrics import AppMetrics
from plait.access.apps import Apps
from plait.config_tables import AppTable
from tests.access.test_apps import models


def registry(*names: str) -> tuple[CollectorRegistry, Apps]:
    apps = Apps({name: AppTable() for name in names}, models())
    built = CollectorRegistry()
    built.register(AppMetrics(apps, {"notes": 4096, "other": 0}.__getitem__))
    return built, apps


def test_every_declared_app_is_there_from_the_start_at_zero() -> None:
    built, _ = registry("notes", "other")
    for name in ("connections", "streams_active", "streams_queued"):
        assert built.get_sample_value(f"plait_app_{name}", {"app": "other"}) == 0
    labels = {"app": "other", "outcome": "completed"}
    assert built.get_sample_value("plait_app_streams_total", labels) == 0
    assert built.get_sample_value("plait_app_memory_bytes", {"app": "notes"}) == 4096


def test_streams_are_counted_as_they_come_start_and_end() -> None:
    built, apps = registry("notes", "other")
    account = apps.caller("notes", "1-a").account
    account.stream_opened()
    account.stream_opened()
    account.stream_started()
    account.stream_rejected()
    account.stream_ended("cancelled", started=True)
    values = {
        (sample.name.removeprefix("plait_app_"), *sorted(sample.labels.values())): sample.value
        for family in built.collect()
        for sample in family.samples
        if sample.labels["app"] == "notes"
    }
    assert values["streams_active", "notes"] == 0
    assert values["streams_queued", "notes"] == 1
    assert values["streams_total", "cancelled", "notes"] == 1
    assert values["streams_total", "notes", "rejected"] == 1


def test_without_declared_apps_there_is_nothing_to_see() -> None:
    assert list(registry()[0].collect()) == []
