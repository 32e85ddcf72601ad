"""What the bench says: tables for people, a dict for machines, and which targets were met.

Pure but for what it reads of the machine. Quantities are rows and situations are columns, so that
a table fits a terminal of 80 columns and a page of documentation.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from math import isinf
from statistics import fmean
from typing import Any

from plait.bench.cancelling import PhaseResult
from plait.bench.chatting import LevelResult
from plait.bench.figures import Spread

STEP_SLACK_MS = 10.0
WIRE_SHARE = 0.95
LOOP_LAG_SECONDS = 0.01
LIBRARIES = {
    "llamacpp": ("xllamacpp",),
    "mlx": ("mlx", "mlx-lm"),
    "kokoro-onnx": ("onnxruntime",),
    "kokoro-torch": ("torch", "kokoro"),
    "whisper": ("pywhispercpp",),
    "onnx": ("onnxruntime",),
}


@dataclass(frozen=True, slots=True)
class Table:
    """`rows`: (what, one cell per column)."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True)
class Target:
    """`met` None: there was nothing to measure it by."""

    what: str
    met: bool | None
    measured: str


def machine(engine: str) -> dict[str, str]:
    """What the figures depend on. `engine`: a name, or several with commas between them."""
    names = [name for each in engine.split(", ") for name in LIBRARIES.get(each, ())]
    versions = [f"{name} {_version(name)}" for name in names]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "python": platform.python_version(),
        "engine": ", ".join([engine, *versions]),
    }


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


# --- cancel ----------------------------------------------------------------------------------


def cancel_table(results: Sequence[PhaseResult], title: str) -> Table:
    columns = [_spreads(result) for result in results]
    rows = [
        ("cancels", [str(len(result.stops)) for result in results]),
        *(_quantile_rows("stop_ms (server)", [column[0] for column in columns])),
        *(_quantile_rows("client: sent to terminal, ms", [column[1] for column in columns])),
        ("wasted tokens, mean", [_number(_mean_wasted(result)) for result in results]),
        *(_quantile_rows("wasted tokens", [column[2] for column in columns], digits=0)),
        ("released later than 100 ms", [str(_late(result)) for result in results]),
        ("release p99, late ones too, ms", [_bound(result.release_p99) for result in results]),
        ("engine step p50, ms", [_pick(column[3], "p50") for column in columns]),
        ("engine step p99, ms", [_pick(column[3], "p99") for column in columns]),
        ("event-loop lag p99, ms", [_bound(result.loop_lag_p99) for result in results]),
    ]
    return Table(title, [result.phase for result in results], rows)


def cancel_targets(results: Sequence[PhaseResult]) -> list[Target]:
    return [target for result in results for target in _targets_of(result)]


def cancel_record(result: PhaseResult) -> dict[str, Any]:
    stop, outside, wasted, step = _spreads(result)
    return {
        "phase": result.phase,
        "stop_ms": _record(stop),
        "outside_ms": _record(outside),
        "wasted_tokens": _record(wasted),
        "wasted_tokens_mean": _mean_wasted(result),
        "late": _late(result),
        "release_p99_seconds": result.release_p99,
        "missed": result.missed,
        "step_ms": _record(step),
        "loop_lag_p99_seconds": result.loop_lag_p99,
        "cancels": [asdict(stop) for stop in result.stops],
    }


def _spreads(result: PhaseResult) -> tuple[Spread | None, ...]:
    stops = result.stops
    return (
        Spread.of(stop.stop_ms for stop in stops if stop.stop_ms is not None),
        Spread.of(stop.outside_ms for stop in stops),
        Spread.of(stop.wasted_tokens for stop in stops if stop.wasted_tokens is not None),
        Spread.of(result.gaps_ms),
    )


def _late(result: PhaseResult) -> int:
    return sum(stop.stop_ms is None for stop in result.stops)


def _mean_wasted(result: PhaseResult) -> float | None:
    wasted = [stop.wasted_tokens for stop in result.stops if stop.wasted_tokens is not None]
    return fmean(wasted) if wasted else None


def _targets_of(result: PhaseResult) -> list[Target]:
    stop, _, wasted, step = _spreads(result)
    phase = result.phase
    shown = f"{_bound(result.release_p99)} ms against a step of {_pick(step, 'p99')} ms"
    frugal = None if wasted is None else wasted.p50 <= 1 and wasted.max <= 1
    return [
        Target(
            f"{phase}: release p99 within one step (p99) + {STEP_SLACK_MS:g} ms",
            _within_a_step(result, stop, step),
            shown,
        ),
        Target(
            f"{phase}: never more than one token wasted", frugal, f"at most {_pick(wasted, 'max')}"
        ),
        _lag_target(phase, result.loop_lag_p99),
    ]


def _within_a_step(result: PhaseResult, stop: Spread | None, step: Spread | None) -> bool | None:
    """Late releases are known only by their bucket: None when the limit lies inside of it."""
    if step is None or result.release_p99 is None:
        return None
    limit_ms = step.p99 + STEP_SLACK_MS
    if _late(result) == 0 and stop is not None:
        return stop.p99 <= limit_ms
    low_ms, high_ms = (1000 * edge for edge in result.release_p99)
    return None if low_ms < limit_ms < high_ms else high_ms <= limit_ms


# --- chat ------------------------------------------------------------------------------------


def chat_table(results: Sequence[LevelResult], title: str) -> Table:
    wire, direct = 0, 1
    rows = [
        ("wire / direct, median of pairs", [f"{100 * r.ratio:.1f} %" for r in results]),
        ("wire, tokens/s", [f"{r.rate(wire):.1f}" for r in results]),
        ("direct, tokens/s", [f"{r.rate(direct):.1f}" for r in results]),
        ("wire, first token p50, ms", [_pick(r.first_items_ms(wire), "p50") for r in results]),
        ("direct, first token p50, ms", [_pick(r.first_items_ms(direct), "p50") for r in results]),
        ("wire, between items p50, ms", [_pick(r.gaps_ms(wire), "p50") for r in results]),
        ("wire, between items p99, ms", [_pick(r.gaps_ms(wire), "p99") for r in results]),
        ("direct, between items p50, ms", [_pick(r.gaps_ms(direct), "p50") for r in results]),
        ("direct, between items p99, ms", [_pick(r.gaps_ms(direct), "p99") for r in results]),
        ("wire, worker CPU ms/token", [f"{r.cpu_ms_per_token(wire):.2f}" for r in results]),
        ("direct, CPU ms/token", [f"{r.cpu_ms_per_token(direct):.2f}" for r in results]),
        ("gateway CPU ms/token", [f"{r.gateway_cpu_ms_per_token:.2f}" for r in results]),
        ("event-loop lag p99, ms", [_bound(r.loop_lag_p99) for r in results]),
    ]
    return Table(title, [_streams(result.streams) for result in results], rows)


def chat_targets(results: Sequence[LevelResult]) -> list[Target]:
    targets = []
    for result in results:
        level = _streams(result.streams)
        share = f"{100 * result.ratio:.1f} %"
        what = f"{level}: wire at least {100 * WIRE_SHARE:.0f} % of direct"
        targets.append(Target(what, result.ratio >= WIRE_SHARE, share))
        targets.append(_lag_target(level, result.loop_lag_p99))
    return targets


def chat_record(result: LevelResult) -> dict[str, Any]:
    sides = {
        name: {
            "tokens_per_second": result.rate(side),
            "first_item_ms": _record(result.first_items_ms(side)),
            "gap_ms": _record(result.gaps_ms(side)),
            "cpu_ms_per_token": result.cpu_ms_per_token(side),
        }
        for side, name in enumerate(("wire", "direct"))
    }
    rates = [[side.tokens_per_second for side in pair] for pair in result.pairs]
    return {
        "streams": result.streams,
        "ratio": result.ratio,
        **sides,
        "gateway_cpu_ms_per_token": result.gateway_cpu_ms_per_token,
        "loop_lag_p99_seconds": result.loop_lag_p99,
        "pairs_tokens_per_second": rates,
    }


# --- cells -----------------------------------------------------------------------------------


def _lag_target(where: str, lag: tuple[float, float] | None) -> Target:
    met = None if lag is None else lag[1] <= LOOP_LAG_SECONDS
    what = f"{where}: event-loop lag p99 below {1000 * LOOP_LAG_SECONDS:g} ms"
    return Target(what, met, f"{_bound(lag)} ms")


def _streams(count: int) -> str:
    return "1 stream" if count == 1 else f"{count} streams"


def _quantile_rows(
    what: str, spreads: Sequence[Spread | None], *, digits: int = 1
) -> list[tuple[str, list[str]]]:
    return [
        (f"{what} {name}", [_pick(spread, name, digits) for spread in spreads])
        for name in ("p50", "p95", "p99", "max")
    ]


def _pick(spread: Spread | None, name: str, digits: int = 1) -> str:
    return "-" if spread is None else f"{getattr(spread, name):.{digits}f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _bound(edges: tuple[float, float] | None) -> str:
    """A histogram only knows the bucket: the figure is at most its upper edge."""
    if edges is None:
        return "-"
    return "more than 10000" if isinf(edges[1]) else f"≤ {1000 * edges[1]:g}"


def _record(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else asdict(spread)
