"""The abandonment bench's chart tells its rate of hang-ups and its date, also without a legend."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.bench import charts
from plait.bench.abandon import report
from tests.bench.test_abandon_report import outcome

TITLE = "8 clients; 2026-01-02 03:04 UTC"


@pytest.fixture
def titles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of the charts drawn."""
    drawn: list[str] = []
    monkeypatch.setattr(charts, "bar_chart", lambda path, title, *_: drawn.append(title))
    return drawn


def test_one_rate_is_in_the_title(titles: list[str]) -> None:
    report.draw(Path("chart.svg"), [outcome(0.0), outcome(20.0)], TITLE)

    assert titles == [f"Engine time for the dead, where 20 % hang up: {TITLE}"]


def test_several_rates_are_left_to_the_legend(titles: list[str]) -> None:
    report.draw(Path("chart.svg"), [outcome(20.0), outcome(40.0)], TITLE)

    assert titles == [f"Engine time for the dead: {TITLE}"]
