"""What a run found: verdicts as lines for people and as a record for machines.

Pure. Does NOT know how a case is run, nor what its frames mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["holds", "broken", "skipped"]

NAME_WIDTH = 40
SECTION_WIDTH = 14
CASE_SECONDS = (0.25, 3.0)  # with a scripted model, and with real ones on a few cores
WAITING_SECONDS = 18.0  # on top, of a case that mostly waits


@dataclass(frozen=True, slots=True)
class Fault:
    """`section`: of PROTOCOL.md."""

    section: str
    expected: str
    seen: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """`faults` only where broken; `why` only where skipped; `frames`: the last ones, both ways."""

    name: str
    section: str
    about: str
    verdict: Verdict
    seconds: float
    seen: list[str] = field(default_factory=list)
    why: str = ""
    faults: list[Fault] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)


def lines_of(outcome: Outcome) -> list[str]:
    """One line, and for a broken case what was expected and the last frames."""
    seen = outcome.why if outcome.verdict == "skipped" else "; ".join(outcome.seen)
    head = (
        f"{outcome.verdict:<8}{outcome.section:<{SECTION_WIDTH}} {outcome.name:<{NAME_WIDTH}}"
        f" {outcome.seconds:6.2f} s  {outcome.about}"
    )
    lines = [f"{head} ({seen})" if seen else head]
    for fault in outcome.faults:
        lines.append(f"    expected {fault.expected} (PROTOCOL.md {fault.section})")
        lines.append(f"    seen     {fault.seen}")
    if outcome.faults and outcome.frames:
        lines.append("    last frames (seconds, > sent, < received):")
        lines += [f"      {frame}" for frame in outcome.frames]
    return lines


def plan_of(cases: int, slow: int) -> str:
    """What a run is going to do to a server; `slow`: how many of the cases mostly wait."""
    least, most = (cases * each + slow * WAITING_SECONDS for each in CASE_SECONDS)
    return (
        f"{_cases(cases)}, about {_time(least)} to {_time(most)}, as fast as its models are. They"
        " open streams up to the limits, fill the queue and flood: only for a server that serves"
        " nobody else. Ctrl-C ends it with the counts so far."
    )


def summary_of(outcomes: Sequence[Outcome]) -> str:
    counts = dict.fromkeys(("holds", "broken", "skipped"), 0)
    for outcome in outcomes:
        counts[outcome.verdict] += 1
    seconds = sum(outcome.seconds for outcome in outcomes)
    holding = f"{counts['holds']} {'holds' if counts['holds'] == 1 else 'hold'}"
    return (
        f"{_cases(len(outcomes))}: {holding}, {counts['broken']} broken,"
        f" {counts['skipped']} skipped, in {seconds:.1f} s"
    )


def broken_of(outcomes: Sequence[Outcome]) -> list[str]:
    """The names of the broken cases."""
    return [outcome.name for outcome in outcomes if outcome.verdict == "broken"]


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _time(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def record_of(url: str, server: str, seed: int, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "url": url,
        "server": server,
        "protocol": "plait.v1",
        "seed": seed,
        "summary": summary_of(outcomes),
        "broken": broken_of(outcomes),
        "cases": [asdict(outcome) for outcome in outcomes],
    }
