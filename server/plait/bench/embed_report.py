"""What `plait bench embed` says: tables, records and targets. Pure; shapes as in `report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from plait.bench.embedding import LoadResult
from plait.bench.figures import Spread
from plait.bench.report import WIRE_SHARE, Table, Target

RELEASE_P95_MS = 50.0
WIRE_ADDS_MS = 5.0  # open, two questions to the worker, vector and end


def load_table(results: Sequence[LoadResult], title: str) -> Table:
    """One column per load."""
    rows = [
        ("streams x texts, a round", [f"{r.load.streams} x {r.load.texts}" for r in results]),
        ("pairs", [str(len(r.pairs)) for r in results]),
        ("texts/s over the wire", [f"{r.rate(0):.0f}" for r in results]),
        ("texts/s, engine alone", [f"{r.rate(1):.0f}" for r in results]),
        ("wire / direct", [f"{r.ratio:.3f}" for r in results]),
        ("a stream over the wire, ms p50", [_pick(r.stream_ms(0), "p50") for r in results]),
        ("a stream over the wire, ms p95", [_pick(r.stream_ms(0), "p95") for r in results]),
        ("a job of the engine alone, ms p50", [_pick(r.stream_ms(1), "p50") for r in results]),
        ("worker CPU ms per text", [f"{r.cpu_ms_per_text(0):.2f}" for r in results]),
        ("engine alone, CPU ms per text", [f"{r.cpu_ms_per_text(1):.2f}" for r in results]),
        ("gateway CPU ms per text", [f"{r.gateway_cpu_ms_per_text:.3f}" for r in results]),
    ]
    return Table(title, [r.load.name for r in results], rows)


def load_targets(results: Sequence[LoadResult]) -> list[Target]:
    """Many texts have a rate; one at a time has a wait, of which the wire's share is bounded."""
    return [_wait_target(r) if r.load.texts == 1 else _rate_target(r) for r in results]


def _rate_target(result: LoadResult) -> Target:
    return Target(
        f"{result.load.name}: at least {WIRE_SHARE:.0%} of the engine's direct rate",
        result.ratio >= WIRE_SHARE,
        f"{result.ratio:.1%}",
    )


def _wait_target(result: LoadResult) -> Target:
    wire, own = result.stream_ms(0), result.stream_ms(1)
    added_ms = None if wire is None or own is None else wire.p50 - own.p50
    return Target(
        f"{result.load.name}: at most {WIRE_ADDS_MS:g} ms more than the engine alone, p50",
        None if added_ms is None else added_ms <= WIRE_ADDS_MS,
        "-" if added_ms is None else f"{added_ms:.1f} ms",
    )


def load_record(result: LoadResult) -> dict[str, Any]:
    return {
        "load": asdict(result.load),
        "ratio": result.ratio,
        "texts_per_second": {"wire": result.rate(0), "direct": result.rate(1)},
        "pairs_texts_per_second": [
            [wire.texts_per_second, own.texts_per_second] for wire, own in result.pairs
        ],
        "stream_ms": {"wire": _record(result.stream_ms(0)), "direct": _record(result.stream_ms(1))},
        "cpu_ms_per_text": {
            "worker": result.cpu_ms_per_text(0),
            "direct": result.cpu_ms_per_text(1),
            "gateway": result.gateway_cpu_ms_per_text,
        },
        "loop_lag_p99_seconds": result.loop_lag_p99,
    }


def _pick(spread: Spread | None, name: str) -> str:
    return "-" if spread is None else f"{getattr(spread, name):.1f}"


def _record(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else asdict(spread)
