"""`plait bench gateway`: what the gateway itself costs, beside a bare `websockets` server.

Does NOT know how figures are shown (see `output`) nor judged (see `gateway.report`).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from plait.bench.gateway import (
    charting,
    costs,
    fanout,
    latency,
    memory,
    opens,
    rates,
    report,
    windows,
)
from plait.bench.gateway.rates import Load
from plait.bench.gateway.sides import OFFERED_PER_SECOND, Sides, own_sides
from plait.bench.meanwhile import progress
from plait.bench.output import (
    Findings,
    add_output,
    positive,
    publish_measured,
    seconds,
)

PARTS = ("rate", "cost", "opens", "latency", "memory", "fanout", "window")
DEFAULT_PARTS = PARTS[:-1]
SECONDS, ROUNDS = 0.5, 3
MANY = 1000
WINDOW_RATE = 250


def add_arguments(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = kinds.add_parser("gateway", help="what the gateway costs, beside a bare server")
    command.add_argument(
        "--only", choices=PARTS, nargs="+", help="parts to measure (default: all but window)"
    )
    command.add_argument(
        "--window-curve", action="store_true", help="measure the rate against the window, too"
    )
    command.add_argument(
        "--seconds", type=seconds, default=SECONDS, help=f"a sample (default: {SECONDS:g})"
    )
    command.add_argument(
        "--rounds", type=positive, default=ROUNDS, help=f"of samples (default: {ROUNDS})"
    )
    command.add_argument(
        "--many", type=positive, default=MANY, help=f"streams, connections (default: {MANY})"
    )
    command.add_argument(
        "--window-rate",
        type=positive,
        default=WINDOW_RATE,
        help=f"items/s of each stream of the curve (default: {WINDOW_RATE})",
    )
    command.add_argument("--chart", type=Path, metavar="FILE", help=".svg or .png of the figures")
    add_output(command)
    command.set_defaults(run=_gateway)


def _gateway(parsed: argparse.Namespace) -> int:
    return publish_measured(parsed, _measure(parsed))


async def _measure(parsed: argparse.Namespace) -> Findings:
    parts: Sequence[str] = parsed.only or DEFAULT_PARTS
    if parsed.window_curve and "window" not in parts:
        parts = [*parts, "window"]
    if parsed.chart is not None:
        await asyncio.to_thread(charting.check, parsed.chart, parts)
    plan = {"parts": [*parts], "seconds": parsed.seconds, "rounds": parsed.rounds}
    findings = Findings("scripted", [], [], {"plan": {**plan, "many": parsed.many}})
    if "memory" in parts:
        await _memory(findings, parsed)
    shared = [part for part in PARTS if part in parts and part != "memory"]
    if shared:
        async with own_sides() as sides:
            for part in shared:
                await MEASURES[part](findings, sides, parsed)
    if parsed.chart is not None:
        await asyncio.to_thread(charting.draw, parsed.chart, findings)
    return findings


async def _memory(findings: Findings, parsed: argparse.Namespace) -> None:
    """Each in a server of its own: what earlier ones gave back would be used again."""
    growths: dict[str, memory.Growth] = {}
    with progress("memory", 3) as advance:
        async with own_sides() as sides:
            growths["idle connection"] = await memory.of_connections(sides.gateway, parsed.many)
            growths["bare, idle connection"] = await memory.of_connections(sides.bare, parsed.many)
        advance(1)
        async with own_sides() as sides:
            growths["quiet stream"] = await memory.of_quiet_streams(sides.gateway, parsed.many)
        advance(1)
        async with own_sides() as sides:
            growths["paused stream"] = await memory.of_paused_streams(sides.gateway, parsed.many)
        advance(1)
    findings.tables.append(report.memory_table(growths))
    findings.targets.extend(report.memory_targets(growths))
    findings.record["memory"] = {name: asdict(growth) for name, growth in growths.items()}


async def _rate(findings: Findings, sides: Sides, parsed: argparse.Namespace) -> None:
    many = parsed.many
    loads = [Load(1, 1), Load(1, 1, joins=True), Load(many, many)]
    results = []
    for load in loads:
        with progress(load.name, parsed.rounds) as advance:
            results.append(await rates.measure(sides, load, parsed.rounds, parsed.seconds, advance))
    findings.tables.append(report.rate_table(results))
    findings.targets.extend(report.rate_targets(results))
    findings.record["rate"] = [report.rate_record(result) for result in results]


async def _cost(findings: Findings, sides: Sides, parsed: argparse.Namespace) -> None:
    many = parsed.many
    sizes = [size for size in (1, 10, 100) if size < many]
    loads = [*(Load(1, size) for size in sizes), Load(1, many), Load(many, many)]
    with progress("cost per item", len(loads) * parsed.rounds) as advance:
        measured = await costs.measure(sides.gateway, loads, parsed.rounds, parsed.seconds, advance)
    findings.tables.append(report.cost_table(measured, OFFERED_PER_SECOND))
    findings.targets.extend(report.cost_targets(measured))
    findings.record["cost"] = [report.cost_record(cost) for cost in measured]


async def _opens(findings: Findings, sides: Sides, parsed: argparse.Namespace) -> None:
    results = []
    with progress("opens", len(opens.ENDINGS)) as advance:
        for ending in opens.ENDINGS:
            results.append(await opens.measure(sides.gateway, ending, 2 * parsed.seconds))
            advance(1)
    findings.tables.append(report.open_table(results))
    findings.record["opens"] = [report.open_record(result) for result in results]


async def _latency(findings: Findings, sides: Sides, parsed: argparse.Namespace) -> None:
    with progress("latency", parsed.rounds) as advance:
        result = await latency.measure(sides, parsed.rounds, 2 * parsed.seconds, advance)
    findings.tables.append(report.latency_table(result))
    findings.targets.extend(report.latency_targets(result))
    findings.record["latency"] = report.latency_record(result)


async def _fanout(findings: Findings, sides: Sides, parsed: argparse.Namespace) -> None:
    streams = min(fanout.STREAMS, parsed.many)
    with progress("fan-out", 3 * parsed.rounds) as advance:
        results = await fanout.measure(
            sides.gateway, streams, parsed.rounds, 2 * parsed.seconds, advance
        )
    findings.tables.append(report.fanout_table(results, streams))
    findings.targets.extend(report.fanout_targets(results))
    findings.record["fanout"] = [asdict(result) for result in results]


async def _window(findings: Findings, sides: Sides, parsed: argparse.Namespace) -> None:
    with progress("windows", len(windows.ROUND_TRIPS_MS)) as advance:
        curves = await windows.measure(
            sides.gateway, parsed.window_rate, 2 * parsed.seconds, advance
        )
    findings.tables.append(report.window_table(curves, parsed.window_rate))
    findings.targets.extend(report.window_targets(curves))
    findings.record["window"] = [
        {**asdict(curve), "flat_from": curve.flat_from} for curve in curves
    ]


MEASURES: dict[str, Callable[[Findings, Sides, argparse.Namespace], Awaitable[None]]] = {
    "rate": _rate,
    "cost": _cost,
    "opens": _opens,
    "latency": _latency,
    "fanout": _fanout,
    "window": _window,
}
