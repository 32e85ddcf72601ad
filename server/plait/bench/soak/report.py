"""What a soak says: a table of ends, one of what was held before and after, and verdicts.

Growth is judged by its 95 % interval: a run too short to tell says so instead of passing. Pure.
Does NOT know servers, nor files and charts (see `files`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.bench.figures import histogram_bounds
from plait.bench.report import Table, Target
from plait.bench.soak.running import Outcome
from plait.bench.soak.sampling import FORKED, HELD, Sample
from plait.bench.soak.trends import Slope, second_half, slope_of
from plait.errors import BY_CODE

MIB = 2**20
BOUND_MIB_PER_HOUR = 32.0
LOOP_LAG_SECONDS = 0.05  # what docs/operations.md calls worth an alert; the machine is busy
RELEASE_SECONDS = 0.1  # the product's promise
ENDS = ("done", "cancelled", "error", "rejected", "lost")
# Of a process's samples: a run of 10 minutes, whose last sample comes a little before its end. In
# the second half of a shorter one the bound is less than an allocator takes at a time.
JUDGED_SECONDS = 570.0
TOO_SHORT = "too short to judge memory; run 10 minutes or more"
OUR_FAULT = ("model", "internal")  # classes of errors that no client asked for


@dataclass(frozen=True, slots=True)
class Growth:
    """Of one process's own memory over the second half, MiB per hour (None: too short to tell, or
    forked); and at rest, before and after, in MiB."""

    process: str
    slope: Slope | None
    before_mib: float | None
    after_mib: float | None


def growths(outcome: Outcome) -> list[Growth]:
    """What is forked comes and goes, and is only known at rest."""
    names = {name: None for sample in outcome.samples for name in sample.processes}
    return [_growth(outcome, name) for name in names]


def _growth(outcome: Outcome, name: str) -> Growth:
    having = [sample for sample in outcome.samples if name in sample.processes]
    slope = None
    if not name.endswith(FORKED) and having[-1].at - having[0].at >= JUDGED_SECONDS:
        late = having[second_half([sample.at for sample in having]) :]
        own = [sample.processes[name].own_bytes / MIB for sample in late]
        slope = slope_of([sample.at / 3600 for sample in late], own)
    rests = (outcome.before.processes.get(name), outcome.after.processes.get(name))
    before, after = (None if held is None else held.own_bytes / MIB for held in rests)
    return Growth(name, slope, before, after)


# --- tables ------------------------------------------------------------------------------------


def ends_table(outcome: Outcome) -> Table:
    tally = outcome.tally
    methods = sorted({method for method, _ in tally.ends})
    rows = [(end, [str(tally.ends[method, end]) for method in methods]) for end in ENDS]
    title = (
        f"soak: {counted_minutes(outcome.ran_seconds)}, {tally.visits} connections, "
        f"{tally.ends.total()} streams; clients provoke error, rejected and lost on purpose"
    )
    return Table(title, methods, rows)


def counted_minutes(seconds: float) -> str:
    minutes = f"{round(seconds / 60, 1):g}"
    return f"{minutes} minute" if minutes == "1" else f"{minutes} minutes"


def rest_table(outcome: Outcome) -> Table:
    """At rest: what was held before the run, what after it, and how memory grew meanwhile."""
    rows = []
    for growth in growths(outcome):
        cells = [_mib(growth.before_mib), _mib(growth.after_mib), _per_hour(growth.slope)]
        rows.append((f"{growth.process}, MiB of its own", cells))
    for name in outcome.before.processes:
        for what in ("fds", "threads"):
            cells = [_count(sample, name, what) for sample in (outcome.before, outcome.after)]
            rows.append((f"{name}, {what}", [*cells, ""]))
    for name in ("tasks", *HELD):
        pair = [f"{sample.gauges[name]:,.0f}" for sample in (outcome.before, outcome.after)]
        rows.append((name, [*pair, ""]))
    return Table("at rest", ["before", "after", "growth, MiB/h"], rows)


def _mib(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _per_hour(slope: Slope | None) -> str:
    return "" if slope is None else f"{slope.value:+.1f} ({slope.low:+.1f} to {slope.high:+.1f})"


def _count(sample: Sample, name: str, what: str) -> str:
    held = sample.processes.get(name)
    return "-" if held is None else str(getattr(held, what))


# --- verdicts ----------------------------------------------------------------------------------


def targets(outcome: Outcome, bound: float = BOUND_MIB_PER_HOUR) -> list[Target]:
    """`bound`: of a process's own memory, MiB per hour."""
    return [
        *_promises(outcome),
        *_rest(outcome),
        *(
            _growth_target(growth, bound)
            for growth in growths(outcome)
            if not growth.process.endswith(FORKED)
        ),
        _quantile(outcome, "plait_loop_lag_seconds", "event-loop lag", LOOP_LAG_SECONDS),
        _quantile(outcome, "plait_cancel_release_seconds", "release of cancels", RELEASE_SECONDS),
    ]


def _promises(outcome: Outcome) -> list[Target]:
    tally = outcome.tally
    ours = sum(n for code, n in tally.codes.items() if _is_ours(code))
    streams = f"{tally.ends.total()} streams"
    losses = _grown(outcome, "worker losses")
    return [
        _none("every stream accepted or rejected, one terminal, dense seqs", len(tally.broken),
              f"broken, of {streams}"),
        _none("no error of the model's or the server's making", ours, f"of {streams}"),
        _none("no connection turned away", tally.refused, f"of {tally.visits} visits"),
        _none("no worker lost", losses, "lost"),
    ]  # fmt: skip


def _is_ours(code: str) -> bool:
    """Also of a code that only the server knows."""
    error = BY_CODE.get(code)
    return error is None or error.error_class in OUR_FAULT


def _rest(outcome: Outcome) -> list[Target]:
    before, after = outcome.before, outcome.after
    held = {name: after.gauges[name] for name in HELD if after.gauges[name]}
    said = ", ".join(f"{name} {value:g}" for name, value in held.items()) or "all 0"
    tasks = [sample.gauges["tasks"] for sample in (before, after)]
    fds = [sample.descriptors for sample in (before, after)]
    return [
        Target("slots, KV, streams and connections 0 at rest", not held, said),
        _as_before("tasks", tasks, outcome.cold),
        _as_before("descriptors", fds, outcome.cold),
    ]


def _as_before(what: str, counts: Sequence[float], cold: Sequence[str]) -> Target:
    """First uses open what stays: without a baseline after them, more is no leak."""
    before, after = counts
    said = f"{before:g} to {after:g}"
    if after <= before or not cold:
        return Target(f"{what} as before", after <= before, said)
    first = f"the first work of {', '.join(cold)} came later; run longer"
    return Target(f"{what} as before", None, f"{said}, but {first}")


def _growth_target(growth: Growth, bound: float) -> Target:
    what = f"own memory of {growth.process} grows by less than {bound:g} MiB/h"
    if growth.slope is None:
        return Target(what, None, TOO_SHORT)
    met, said = growth.slope.below(bound), _per_hour(growth.slope)
    return Target(what, met, f"undecided: {said}; run longer" if met is None else said)


def _quantile(outcome: Outcome, name: str, what: str, bound: float) -> Target:
    edges = histogram_bounds(*outcome.metrics, name, 0.99)
    met = None if edges is None else edges[1] <= bound
    said = "none" if edges is None else f"≤ {1000 * edges[1]:g} ms"
    return Target(f"{what} p99 at most {1000 * bound:g} ms", met, said)


def _none(what: str, count: float, of: str) -> Target:
    return Target(what, count == 0, f"{count:g} {of}")


def _grown(outcome: Outcome, name: str) -> float:
    return outcome.after.gauges[name] - outcome.before.gauges[name]
