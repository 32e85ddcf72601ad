"""The abandonment bench's tables, verdicts, record for machines and chart.

One table per target, one column per share of hang-ups. Targets are judged for Plait and at 20 %;
the others' figures are there to compare with. Pure, but for the chart it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from plait.bench import charts, report
from plait.bench.abandon.outcome import Outcome
from plait.bench.figures import Spread

JUDGED_PERCENT = 20.0
LONG_ANSWER_TOKENS = 600
DEAD_SHARE = 0.002
KEPT_SHARE = 0.99
QUEUE_SHARE = 1.10
PEER_SHARE = 0.05  # as near as a server with the same engine
# Which foreign target runs the same engine.
PEERS = {"plait, llama.cpp": "llama-server", "plait, mlx-lm": "mlx_lm.server"}
NONE = "-"


def tables(outcomes: Sequence[Outcome], title: str) -> list[report.Table]:
    """`title` says what was asked of whom."""
    found = []
    for name in dict.fromkeys(outcome.target for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.target == name]
        rows = [(what, [_cell(pick(o)) for o in own]) for what, pick in _rows(own)]
        sources = ", ".join(dict.fromkeys(outcome.sources for outcome in own))
        whole = f"{name}: {title}; accounted by {sources}"
        found.append(report.Table(whole, [o.name for o in own], rows))
    return found


Pick = Callable[[Outcome], float | int | str | None]


def _rows(own: Sequence[Outcome]) -> list[tuple[str, Pick]]:
    return [
        ("requests", lambda o: sum(len(run.records) for run in o.runs)),
        ("hung up", lambda o: o.left),
        ("of them before a token", lambda o: o.left_in_prefill),
        ("tokens decoded after it, p50", _median_decoded),
        ("tokens decoded after it, p95", lambda o: _p95(o.decoded_after())),
        ("prompt tokens after it, p50", lambda o: _median(o.prefilled_after())),
        ("prompt tokens after it, p95", lambda o: _p95(o.prefilled_after())),
        ("engine ms after it, mean", lambda o: _times(o.dead_seconds_each, 1000)),
        ("engine time for the dead, %", lambda o: _times(o.dead_share, 100)),
        ("usable tokens/s", lambda o: o.tokens_per_second),
        ("of the 0 % run's, %", lambda o: _times(raw_share(o, own), 100)),
        ("of the control's, %", lambda o: _times(kept_share(o, own), 100)),
        ("CPU ms per usable token", lambda o: o.cpu_ms_per_token),
        ("queue wait p50, ms", lambda o: _spread(o.queue_waits_ms(), "p50")),
        ("queue wait p95, ms", lambda o: _spread(o.queue_waits_ms(), "p95")),
        ("first token p50, ms", lambda o: _spread(o.first_token_ms(), "p50")),
        ("first token p95, ms", lambda o: _spread(o.first_token_ms(), "p95")),
        ("between tokens p50, ms", lambda o: _spread(o.gaps_ms(), "p50")),
        ("between tokens p95, ms", lambda o: _spread(o.gaps_ms(), "p95")),
    ]


def raw_share(outcome: Outcome, own: Sequence[Outcome]) -> float | None:
    """Usable tokens per second, of those without hang-ups. Also work for readers who leave later
    lowers it: a prompt is read for fewer tokens, or for none."""
    base = _find(own, 0.0)
    if base is None or base is outcome:
        return None
    return _share(outcome.tokens_per_second, base.tokens_per_second)


def kept_share(outcome: Outcome, own: Sequence[Outcome]) -> float | None:
    """Usable tokens per second, of those of the control at the same share: whoever leaves an answer
    asked for no more of it there, and the time for prompts left while they were read is taken out
    here. So what is missing is what the leaving itself costs."""
    control = _find(own, outcome.percent, control=True)
    if control is None or outcome.control:
        return None
    rate = outcome.tokens_per_working_second or outcome.tokens_per_second
    return _share(rate, control.tokens_per_second)


def _find(own: Sequence[Outcome], percent: float, *, control: bool = False) -> Outcome | None:
    found = (o for o in own if o.percent == percent and o.control is control)
    return next(found, None)


# --- verdicts --------------------------------------------------------------------------------


def targets(
    outcomes: Sequence[Outcome], tokens: int, *, saturated: bool = True
) -> list[report.Target]:
    """For Plait at 20 %, with its cancels. `tokens`: of an answer. Throughput is only judged where
    clients are always busy: otherwise it is what they ask for."""
    found = []
    for outcome in outcomes:
        judged = outcome.percent == JUDGED_PERCENT and not outcome.control
        if judged and not outcome.no_cancel and outcome.target.startswith("plait"):
            own = [other for other in outcomes if other.target == outcome.target]
            found += _targets_of(outcome, own, tokens)
            if saturated:
                found.append(_throughput_target(outcome, own))
            for peer in outcomes:
                same_engine = PEERS.get(outcome.target) == peer.target.partition(",")[0]
                if same_engine and peer.name == outcome.name:
                    found += _beside(outcome, peer)
    plaits = [outcome for outcome in outcomes if outcome.target.startswith("plait")]
    if plaits and not found and not any(outcome.no_cancel for outcome in plaits):
        what = f"targets are judged at {JUDGED_PERCENT:g} %, beside a 0 % run"
        found.append(report.Target(what, None, f"give --rates 0 {JUDGED_PERCENT:g}"))
    return found


def _targets_of(outcome: Outcome, own: Sequence[Outcome], tokens: int) -> list[report.Target]:
    where = f"{outcome.target}, {outcome.name}"
    wasted = _median(outcome.decoded_after())
    chunks = outcome.most_chunks_after()
    found = [
        _target(f"{where}: at most 1 token decoded after a hang-up (median)", wasted, 1),
        _target(f"{where}: at most 1 chunk of prompt read after one", chunks, 1),
    ]
    if tokens >= LONG_ANSWER_TOKENS:
        share = _times(outcome.dead_share, 100)
        what = f"{where}: under 0.2 % of engine time for the dead"
        found.append(_target(what, share, 100 * DEAD_SHARE, " %"))
    return [*found, _queue_target(where, outcome, own)]


def _throughput_target(outcome: Outcome, own: Sequence[Outcome]) -> report.Target:
    where = f"{outcome.target}, {outcome.name}"
    kept = kept_share(outcome, own)
    share, of = (raw_share(outcome, own), "0 % run") if kept is None else (kept, "control")
    met = None if share is None else share >= KEPT_SHARE
    what = f"{where}: usable tokens/s at least 99 % of the {of}'s"
    return report.Target(what, met, f"{_cell(_times(share, 100))} %")


def _queue_target(where: str, outcome: Outcome, own: Sequence[Outcome]) -> report.Target:
    base = _find(own, 0.0)
    now = Spread.of(outcome.queue_waits_ms())
    then = None if base is None else Spread.of(base.queue_waits_ms())
    what = f"{where}: p95 queue wait at most 10 % above the 0 % run's"
    if now is None or then is None:
        return report.Target(what, None, NONE)
    measured = f"{now.p95:.0f} ms; 0 %: {then.p95:.0f} ms"
    return report.Target(what, now.p95 <= QUEUE_SHARE * then.p95, measured)


def _beside(own: Outcome, peer: Outcome) -> list[report.Target]:
    """Against a server with the same engine, at the same share."""
    where = f"{own.target}, {own.name}, beside {peer.target}"
    first = [_spread(outcome.first_token_ms(), "p50") for outcome in (own, peer)]
    gaps = [_spread(outcome.gaps_ms(), "p50") for outcome in (own, peer)]
    pace = [_share(1.0, outcome.tokens_per_second) for outcome in (own, peer)]
    slower = 1 + PEER_SHARE
    return [
        _ratio(f"{where}: time per usable token", pace[0], pace[1], slower),
        _ratio(f"{where}: first token p50", first[0], first[1], slower),
        _ratio(f"{where}: between tokens p50", gaps[0], gaps[1], slower),
        _ratio(f"{where}: engine time for the dead", own.dead_share, peer.dead_share, 1.0),
    ]


def _ratio(what: str, costs: float | None, of: float | None, bound: float) -> report.Target:
    """`costs` at most `bound` times `of`."""
    what += " at most theirs" if bound == 1 else f" at most {bound:g} times theirs"
    if costs is None or of is None:
        return report.Target(what, None, NONE)
    return report.Target(what, costs <= bound * of, f"{_cell(costs / of if of else None)} times")


def _target(what: str, value: float | None, bound: float, unit: str = "") -> report.Target:
    met = None if value is None else value <= bound
    return report.Target(what, met, f"{_cell(value)}{unit}")


# --- for machines, and for the eye -----------------------------------------------------------


def record(outcome: Outcome) -> dict[str, Any]:
    return {
        "target": outcome.target,
        "percent": outcome.percent,
        "control": outcome.control,
        "no_cancel": outcome.no_cancel,
        "sources": outcome.sources,
        "hung_up": outcome.left,
        "hung_up_before_first_token": outcome.left_in_prefill,
        "decoded_after": outcome.decoded_after(),
        "prefilled_after": outcome.prefilled_after(),
        "most_chunks_after": outcome.most_chunks_after(),
        "mean_after": outcome.mean_after,
        "dead_seconds": outcome.dead_seconds,
        "dead_share": outcome.dead_share,
        "busy_seconds": outcome.busy_seconds,
        "usable_tokens": outcome.usable_tokens,
        "usable_tokens_per_second": outcome.tokens_per_second,
        "usable_tokens_per_working_second": outcome.tokens_per_working_second,
        "cpu_ms_per_usable_token": outcome.cpu_ms_per_token,
        "queue_wait_ms": _asdict(Spread.of(outcome.queue_waits_ms())),
        "first_token_ms": _asdict(Spread.of(outcome.first_token_ms())),
        "gap_ms": _asdict(Spread.of(outcome.gaps_ms())),
        "runs": [asdict(run) for run in outcome.runs],
    }


def draw(path: Path, outcomes: Sequence[Outcome], title: str) -> None:
    """How much of the engines' time went to readers who had left. Raises BenchError.

    `title` says what was asked of whom, and when."""
    names, series = bars(outcomes)
    # One series has no legend.
    rate = f", where {next(iter(series))}" if len(series) == 1 else ""
    title = f"Engine time for the dead{rate}: {title}"
    charts.bar_chart(path, title, names, series, "% of engine time for readers who had left")


def bars(outcomes: Sequence[Outcome]) -> tuple[list[str], dict[str, list[float | None]]]:
    """-> (the targets, of each share of hang-ups the percents)."""
    left = [outcome for outcome in outcomes if outcome.percent and not outcome.control]
    names = list(dict.fromkeys(outcome.target for outcome in left))
    shares = {(o.target, o.percent): _times(o.dead_share, 100) for o in left}
    series = {
        f"{percent:g} % hang up": [shares.get((name, percent)) for name in names]
        for percent in sorted({outcome.percent for outcome in left})
    }
    return names, series


# --- cells -----------------------------------------------------------------------------------


def _cell(value: float | int | str | None) -> str:
    if value is None:
        return NONE
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _median_decoded(outcome: Outcome) -> float | str | None:
    found = _median(outcome.decoded_after())
    if found is None and outcome.mean_after is not None and outcome.left:
        return f"mean {outcome.mean_after:.1f}"
    return found


def _median(values: Sequence[int] | None) -> float | None:
    return float(median(values)) if values else None


def _p95(values: Sequence[int] | None) -> float | None:
    spread = Spread.of(values or ())
    return None if spread is None else float(spread.p95)


def _spread(values: Sequence[float], name: str) -> float | None:
    spread = Spread.of(values)
    return None if spread is None else float(getattr(spread, name))


def _share(value: float | None, of: float | None) -> float | None:
    return None if value is None or not of else value / of


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _asdict(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else asdict(spread)
