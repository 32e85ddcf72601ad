"""The figures of `plait bench gateway` as one chart of panels, from its own record.

What was not measured has no panel. Does NOT measure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from plait.bench.charts import Panel, check_charts, line_charts
from plait.bench.output import Findings
from plait.bench.serving import BenchError

TITLE = "What the gateway costs"
DRAWN = frozenset(("cost", "window"))


def check(path: Path, parts: Collection[str]) -> None:
    """Raises BenchError when no chart could be written there, or `parts` give nothing to draw."""
    if not DRAWN.intersection(parts):
        raise BenchError("there is nothing to draw: --chart shows the parts cost and window")
    check_charts(path)


def draw(path: Path, findings: Findings) -> None:
    line_charts(path, TITLE, panels(findings.record))


def panels(record: Mapping[str, Any]) -> list[Panel]:
    found = []
    if "cost" in record:
        found.append(_cost(record["cost"]))
    if "window" in record:
        found.append(_window(record["window"]))
    return found


def _cost(costs: list[dict[str, Any]]) -> Panel:
    one = [cost for cost in costs if cost["load"]["connections"] == 1]
    streams = [float(cost["load"]["streams"]) for cost in one]
    lines = {"one connection": [float(cost["cpu_us_per_item"]) for cost in one]}
    return Panel("Cost of an item", "gateway CPU, µs", streams, lines, "streams")


def _window(curves: list[dict[str, Any]]) -> Panel:
    windows = [float(window) for window in curves[0]["windows"]]
    lines = {f"ack {curve['round_trip_ms']} ms later": curve["rates"] for curve in curves}
    return Panel("Rate of a stream", "items/s", windows, lines, "window, items")
