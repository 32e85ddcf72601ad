"""The report of a soak in a directory: soak.md, soak.json, and the charts soak.svg and soak.png.

Everything a reader needs to judge it is in there: the command, the machine, every sample. Does NOT
judge (see `report`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plait.bench.charts import Panel, line_charts
from plait.bench.report import Table, Target
from plait.bench.soak.report import MIB, counted_minutes, growths
from plait.bench.soak.running import Outcome
from plait.bench.soak.sampling import GATEWAY, Sample
from plait.bench.writing import write_json, write_text

CHARTS = ("soak.svg", "soak.png")
COLUMNS = 2
VERDICTS = {True: "met", False: "**missed**", None: "not measured"}


def write(
    directory: Path,
    facts: Mapping[str, str],
    outcome: Outcome,
    tables: Sequence[Table],
    targets: Sequence[Target],
) -> None:
    """`facts`: command, machine and the like. Raises BenchError without matplotlib, and where it
    cannot be written."""
    whole = {"facts": facts, **record(outcome), "targets": [asdict(target) for target in targets]}
    write_json(directory / "soak.json", whole)
    text = markdown(facts, tables, targets, outcome.tally.broken)
    write_text(directory / "soak.md", text)
    for name in CHARTS:
        title = f"{counted_minutes(outcome.ran_seconds)} of soak: {facts['engine']}"
        line_charts(directory / name, title, panels(outcome.samples), columns=COLUMNS)


def record(outcome: Outcome) -> dict[str, Any]:
    """All figures, for machines."""
    tally = outcome.tally
    ends = {f"{method} {end}": count for (method, end), count in sorted(tally.ends.items())}
    return {
        "plan": asdict(outcome.plan),
        "ran_seconds": outcome.ran_seconds,
        "ended_early": outcome.ended_early,
        "cold": outcome.cold,
        "tally": {
            "visits": tally.visits,
            "ends": ends,
            "codes": dict(tally.codes),
            "leavings": dict(tally.leavings),
            "late": tally.late,
            "refused": tally.refused,
            "broken": tally.broken,
        },
        "growth": [asdict(growth) for growth in growths(outcome)],
        "before": asdict(outcome.before),
        "after": asdict(outcome.after),
        "samples": [asdict(sample) for sample in outcome.samples],
    }


def markdown(
    facts: Mapping[str, str],
    tables: Sequence[Table],
    targets: Sequence[Target],
    broken: Sequence[str],
) -> str:
    lines = ["# Soak", "", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    lines += ["| verdict | what | measured |", "|---|---|---|"]
    lines += [f"| {VERDICTS[t.met]} | {_cell(t.what)} | {_cell(t.measured)} |" for t in targets]
    for table in tables:
        lines += ["", f"**{table.title}**", "", f"| | {' | '.join(table.columns)} |"]
        lines.append("|---|" + "---:|" * len(table.columns))
        lines += [f"| {what} | {' | '.join(cells)} |" for what, cells in table.rows]
    lines += ["", f"![Charts]({CHARTS[0]})"]
    if broken:
        lines += ["", "Broken promises:", "", *(f"- {_cell(what)}" for what in broken)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


# --- charts ------------------------------------------------------------------------------------


def panels(samples: Sequence[Sample]) -> list[Panel]:
    minutes = [(sample.at - samples[0].at) / 60 for sample in samples]
    names = list(dict.fromkeys(name for sample in samples for name in sample.processes))
    workers = [name for name in names if name != GATEWAY]

    def panel(title: str, unit: str, lines: dict[str, list[float]]) -> Panel:
        return Panel(title, unit, minutes, lines, "minutes")

    def gauges(*wanted: str, unit: float = 1.0) -> dict[str, list[float]]:
        lines = {name: [sample.gauges[name] / unit for sample in samples] for name in wanted}
        return {name.removesuffix(" bytes"): values for name, values in lines.items()}

    def held(what: str, wanted: list[str], unit: float = 1.0) -> dict[str, list[float]]:
        return {name: [_of(s, name, what) / unit for s in samples] for name in wanted}

    lag = [float("nan") if s.lag_p99_ms is None else s.lag_p99_ms for s in samples]
    both = [
        panel("Resident memory: gateway", "MiB", held("rss_bytes", [GATEWAY], MIB)),
        panel("Resident memory: workers", "MiB", held("rss_bytes", workers, MIB)),
        panel("Descriptors", "open", held("fds", names)),
        panel("Threads", "threads", held("threads", names)),
    ]
    return [
        *(both if names else []),
        panel("Connections and tasks", "of the gateway", gauges("connections", "tasks")),
        panel("Streams", "streams", gauges("streams", "queued")),
        panel("Slots in use", "slots", gauges("slots", "engine slots")),
        panel(
            "KV cache",
            "MiB",
            gauges("KV bytes", "KV reserved bytes", "prefix cache bytes", unit=MIB),
        ),
        panel("Event-loop lag p99, by interval", "ms, at most", {"lag": lag}),
        panel("Streams that ended", "a second", {"ended": _rates(samples, "ended")}),
    ]


def _of(sample: Sample, name: str, what: str) -> float:
    held = sample.processes.get(name)
    return float("nan") if held is None else float(getattr(held, what))


def _rates(samples: Sequence[Sample], name: str) -> list[float]:
    pairs = itertools.pairwise(samples)
    rates = [(b.gauges[name] - a.gauges[name]) / (b.at - a.at) for a, b in pairs]
    return [float("nan"), *rates][: len(samples)]
