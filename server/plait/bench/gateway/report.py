"""What `plait bench gateway` says: tables, records, targets. Pure; shapes are `bench.report`'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from plait.bench.gateway.costs import LoadCost
from plait.bench.gateway.fanout import FanOut
from plait.bench.gateway.latency import Latency
from plait.bench.gateway.memory import Growth
from plait.bench.gateway.opens import OpenRate
from plait.bench.gateway.rates import LoadRates
from plait.bench.gateway.windows import Curve
from plait.bench.report import Table, Target

BARE_SHARE = 0.6
FLAT_COST = 1.25  # of one stream's, where a thousand share the rate
ADDED_P99_MS = 5.0
CONNECTION_BYTES, STREAM_BYTES = 40_000, 15_000
OTHERS_RATE = 0.95
CLIENT_BOUND = 0.85  # of a core: from here on the client may be what is measured
DEFAULT_WINDOW = 64


# --- rate ------------------------------------------------------------------------------------


def rate_table(results: Sequence[LoadRates]) -> Table:
    def row(what: str, figure: Any, digits: int = 0) -> tuple[str, list[str]]:
        return what, [f"{result.median_of(figure):,.{digits}f}" for result in results]

    def share(what: str, figure: Any) -> tuple[str, list[str]]:
        return what, [f"{100 * result.median_of(figure):.0f} %" for result in results]

    rows = [
        row("items/s, gateway", lambda r: r.gateway.items_per_second),
        row("frames per CPU second, gateway", lambda r: r.gateway.frames_per_cpu_second),
        row("items per CPU second, gateway", lambda r: r.gateway.items_per_cpu_second),
        row("frames per CPU second, bare, sending", lambda r: r.push.frames_per_cpu_second),
        row("frames per CPU second, bare, echo", lambda r: r.echo.frames_per_cpu_second),
        ("frames, gateway / bare sending", [f"{100 * r.of_push:.0f} %" for r in results]),
        ("frames, gateway / bare echo", [f"{100 * r.of_echo:.0f} %" for r in results]),
        row("CPU µs per item, gateway", lambda r: r.gateway.cpu_us_per_item, 1),
        share("of a core: gateway", lambda r: r.gateway.shares[0]),
        share("of a core: worker", lambda r: r.gateway.shares[1]),
        share("of a core: client", lambda r: r.gateway.shares[2]),
    ]
    return Table(
        "64-byte items, one connection saturated, many paced",
        [result.load.name for result in results],
        rows,
    )


def rate_targets(results: Sequence[LoadRates]) -> list[Target]:
    targets = []
    for result in results:
        # Joined, a frame is not what a bare server sends.
        compared = (
            () if result.load.joins else (("echo", result.of_echo), ("sending", result.of_push))
        )
        for name, ratio in compared:
            what = f"{result.load.name}: at least {BARE_SHARE:.0%} of a bare server's frames"
            what += f" per CPU second, {name}"
            targets.append(Target(what, ratio >= BARE_SHARE, f"{ratio:.0%}"))
        client = result.median_of(lambda r: r.gateway.shares[2])
        if client > CLIENT_BOUND:
            what = f"{result.load.name}: the client was no bound of items/s"
            targets.append(Target(what, None, f"it took {client:.0%} of a core"))
    return targets


def rate_record(result: LoadRates) -> dict[str, Any]:
    return {
        "load": asdict(result.load),
        "of_push": result.of_push,
        "of_echo": result.of_echo,
        "rounds": [asdict(each) for each in result.rounds],
    }


# --- cost ------------------------------------------------------------------------------------


def cost_table(costs: Sequence[LoadCost], offered: float) -> Table:
    first = costs[0]
    rows = [
        ("gateway CPU µs per item", [f"{cost.cpu_us_per_item:.1f}" for cost in costs]),
        (f"to {first.load.name}", [f"{cost.ratio_to(first):.2f}" for cost in costs]),
    ]
    title = f"cost of an item, {offered:,.0f} items/s in all"
    return Table(title, [cost.load.name for cost in costs], rows)


def cost_targets(costs: Sequence[LoadCost]) -> list[Target]:
    first = costs[0]
    return [
        Target(
            f"{cost.load.name}: an item costs at most {FLAT_COST:g} times that of one stream",
            cost.ratio_to(first) <= FLAT_COST,
            f"{cost.ratio_to(first):.2f}",
        )
        for cost in costs[1:]
    ]


def cost_record(cost: LoadCost) -> dict[str, Any]:
    return {
        "load": asdict(cost.load),
        "cpu_us_per_item": cost.cpu_us_per_item,
        "samples": [asdict(each) for each in cost.samples],
    }


# --- opens -----------------------------------------------------------------------------------


def open_table(results: Sequence[OpenRate]) -> Table:
    rows = [
        ("streams/s", [f"{result.per_second:,.0f}" for result in results]),
        ("gateway CPU µs per stream", [f"{result.cpu_us:,.0f}" for result in results]),
        ("of a core: gateway", [f"{100 * r.sample.shares[0]:.0f} %" for r in results]),
        ("of a core: worker", [f"{100 * r.sample.shares[1]:.0f} %" for r in results]),
        ("of a core: client", [f"{100 * r.sample.shares[2]:.0f} %" for r in results]),
    ]
    return Table("streams opened", [result.ending for result in results], rows)


def open_record(result: OpenRate) -> dict[str, Any]:
    return {**asdict(result), "per_second": result.per_second, "cpu_us": result.cpu_us}


# --- latency ---------------------------------------------------------------------------------


def latency_table(result: Latency) -> Table:
    rows = [
        (
            f"{name}, ms",
            [_of(result, "gateway", name), _of(result, "bare", name), _added(result, name)],
        )
        for name in ("p50", "p95", "p99", "max")
    ]
    title = f"age of an item when it is read, {result.offered:,.0f} items/s (half load)"
    return Table(title, ["gateway", "bare", "added"], rows)


def latency_targets(result: Latency) -> list[Target]:
    added = result.added("p99")
    what = f"p99 of the latency added below {ADDED_P99_MS:g} ms at half load"
    return [Target(what, added < ADDED_P99_MS, f"{added:.2f} ms")]


def latency_record(result: Latency) -> dict[str, Any]:
    return {
        **asdict(result),
        "added_ms": {name: result.added(name) for name in ("p50", "p95", "p99", "max")},
    }


def _of(result: Latency, side: str, name: str) -> str:
    return f"{result.median_of(getattr(result, side), name):.2f}"


def _added(result: Latency, name: str) -> str:
    return f"{result.added(name):.2f}"


# --- memory ----------------------------------------------------------------------------------


def memory_table(growths: dict[str, Growth]) -> Table:
    rows = [
        ("more of them", [f"{growth.count:,}" for growth in growths.values()]),
        (
            "own memory each, KB",
            [f"{growth.unique_each / 1000:.1f}" for growth in growths.values()],
        ),
        (
            "resident each, KB",
            [f"{growth.resident_each / 1000:.1f}" for growth in growths.values()],
        ),
    ]
    return Table("memory of the serving process", [*growths], rows)


def memory_targets(growths: dict[str, Growth]) -> list[Target]:
    return [
        Target(
            f"{name}: at most {limit / 1000:g} KB",
            growths[name].unique_each <= limit,
            f"{growths[name].unique_each / 1000:.1f} KB",
        )
        for name, limit in (
            ("idle connection", CONNECTION_BYTES),
            ("quiet stream", STREAM_BYTES),
            ("paused stream", STREAM_BYTES),
        )
        if name in growths
    ]


# --- fan-out ---------------------------------------------------------------------------------


def fanout_table(results: Sequence[FanOut], streams: int) -> Table:
    alone = results[0]
    rows = [
        ("the others' items/s", [f"{result.rate:,.0f}" for result in results]),
        ("to nobody slow", [f"{100 * result.rate_ratio(alone):.1f} %" for result in results]),
        ("age of an item, p50, ms", [f"{result.age('p50'):.2f}" for result in results]),
        ("age of an item, p99, ms", [f"{result.age('p99'):.2f}" for result in results]),
        ("p99, more, ms", [f"{result.more_ms(alone, 'p99'):.2f}" for result in results]),
    ]
    title = f"{streams} streams on one socket, half load, one slow reader"
    return Table(title, [result.situation for result in results], rows)


def fanout_targets(results: Sequence[FanOut]) -> list[Target]:
    alone = results[0]
    return [
        Target(
            f"{result.situation}: the others keep {OTHERS_RATE:.0%} of their rate",
            result.rate_ratio(alone) >= OTHERS_RATE,
            f"{result.rate_ratio(alone):.1%}, p99 {result.more_ms(alone, 'p99'):+.1f} ms",
        )
        for result in results[1:]
    ]


# --- windows ---------------------------------------------------------------------------------


def window_table(curves: Sequence[Curve], items_per_second: float) -> Table:
    columns = [f"ack {curve.round_trip_ms} ms later" for curve in curves]
    rows = [
        (f"window {window}: items/s", [f"{curve.rates[number]:.0f}" for curve in curves])
        for number, window in enumerate(curves[0].windows)
    ]
    rows.append(("most unacknowledged", [str(max(curve.outstanding)) for curve in curves]))
    rows.append(("flat from window", [str(curve.flat_from) for curve in curves]))
    title = f"rate of a stream against its window, {items_per_second:g} items/s offered"
    return Table(title, columns, rows)


def window_targets(curves: Sequence[Curve]) -> list[Target]:
    return [
        Target(
            f"the default window ({DEFAULT_WINDOW}) bounds no stream at {curve.round_trip_ms} ms",
            curve.flat_from <= DEFAULT_WINDOW,
            f"flat from {curve.flat_from}",
        )
        for curve in curves
    ]
