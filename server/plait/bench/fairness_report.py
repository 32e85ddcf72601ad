"""What a flood costs short chats of somebody else: the table, the record, and the verdict.

Pure. The bound: who shares the engine with as many long chats as it has slots should wait no longer
than its share of the engine makes it, and the patience after which a long one gives way.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from plait.bench.fairness import Plan, Result
from plait.bench.figures import Spread
from plait.bench.report import Table, Target
from plait.scheduling.fairness import PATIENCE_SECONDS

QUANTILES = ("p50", "p95", "max")


def fairness_table(result: Result, plan: Plan) -> Table:
    sides = (result.alone_ms, result.beside_ms)
    rows = [
        ("short chats", [_shown(side, "count", 0) for side in sides]),
        *(
            (f"first token {name}, ms", [_shown(side, name) for side in sides])
            for name in QUANTILES
        ),
        ("p95 beside / alone, median of pairs", ["", f"{result.ratio:.1f} x"]),
        ("flood, tokens/s", ["", f"{result.flood_tokens_per_second:.1f}"]),
    ]
    title = f"fairness: {plan.engine}, {plan.flood} long chats on {plan.slots} slots"
    return Table(title, ["alone", "beside the flood"], rows)


def bound_ms(alone: Spread, plan: Plan) -> float:
    return 1000 * PATIENCE_SECONDS + (plan.slots + 1) * alone.p95


def fairness_targets(result: Result, plan: Plan) -> list[Target]:
    alone, beside = result.alone_ms, result.beside_ms
    what = (
        f"p95 beside the flood within {PATIENCE_SECONDS:g} s"
        f" and {plan.slots + 1} times the p95 alone"
    )
    if alone is None or beside is None:
        return [Target(what, None, "-")]
    bound = bound_ms(alone, plan)
    return [Target(what, beside.p95 <= bound, f"{beside.p95:.0f} ms of {bound:.0f} ms")]


def fairness_record(result: Result, plan: Plan) -> dict[str, Any]:
    return {
        "plan": asdict(plan),
        "alone_ms": None if result.alone_ms is None else asdict(result.alone_ms),
        "beside_ms": None if result.beside_ms is None else asdict(result.beside_ms),
        "ratio": result.ratio,
        "flood_tokens_per_second": result.flood_tokens_per_second,
        "pairs": [asdict(pair) for pair in result.pairs],
    }


def _shown(spread: Spread | None, name: str, digits: int = 1) -> str:
    return "-" if spread is None else f"{getattr(spread, name):.{digits}f}"
