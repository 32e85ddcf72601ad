"""`plait conformance URL`: arguments, progress, the report, the exit code.

Imports nothing at the top that `plait --help` would pay for. Verdicts go to stdout as they come,
what runs now to stderr on a terminal. Exit code 0: nothing is broken; 1: something is, or the
server cannot be reached; 2: wrong usage; 130: interrupted. Does NOT know the cases.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plait.exits import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from plait.terminal import fail, say

if TYPE_CHECKING:
    from plait.conformance.cases import Case
    from plait.conformance.heard import Message
    from plait.conformance.lab import Settings
    from plait.conformance.report import Outcome
    from plait.conformance.target import Target

DEFAULT_SECONDS = 30.0
TOKEN_VARIABLE = "PLAIT_TOKEN"


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `conformance` to the command line."""
    command = commands.add_parser(
        "conformance",
        help="ask a running server for every guarantee of plait.v1",
        description="Ask a running server for every guarantee of plait.v1. It floods the server and"
        " fills its queue: not for one that serves others. A minute with a fast model, ten with"
        " real ones on a few cores.",
    )
    command.add_argument("url", nargs="?", metavar="URL", help="like http://127.0.0.1:8760")
    command.add_argument("--token", help=f"to show (default: ${TOKEN_VARIABLE}, if set)")
    command.add_argument("--origin", default="", help="connect as a page of this origin")
    command.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="cases whose name or section has this in it (may be repeated)",
    )
    command.add_argument("--list", action="store_true", help="show the cases and run none")
    command.add_argument("--slow", action="store_true", help="also those that wait half a minute")
    command.add_argument("--seed", type=int, default=1, help="of random moments (default: 1)")
    command.add_argument(
        "--timeout",
        type=_seconds,
        default=DEFAULT_SECONDS,
        metavar="SECONDS",
        help=f"longest wait for an answer (default: {DEFAULT_SECONDS:g})",
    )
    command.add_argument("--prompt", help="a chat this server answers at length")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the report there, too")
    command.set_defaults(run=run)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a time in seconds")
    return seconds


def run(parsed: argparse.Namespace) -> int:
    """Run what was asked for; returns the exit code."""
    import asyncio

    from plait.conformance.cases import chosen
    from plait.conformance.lab import STORY, Settings
    from plait.conformance.target import Target, TargetError

    cases = chosen(parsed.only, slow=parsed.slow or parsed.list)
    if not cases:
        return fail(f"no case matches {' '.join(parsed.only)}. See --list.", EXIT_USAGE)
    if parsed.list:
        return _list(cases)
    if parsed.url is None:
        return fail("which server? Give its URL, like http://127.0.0.1:8760.", EXIT_USAGE)
    token = parsed.token or os.environ.get(TOKEN_VARIABLE, "")
    settings = Settings(parsed.prompt or STORY, parsed.seed)
    outcomes: list[Outcome] = []
    try:
        target = Target.of(parsed.url, token, parsed.origin, parsed.timeout)
        welcome = asyncio.run(_ask(cases, target, settings, outcomes))
    except TargetError as error:
        return fail(str(error), EXIT_FAILED)
    except KeyboardInterrupt:
        _show_running("")
        say(f"Interrupted: {len(cases) - len(outcomes)} of {len(cases)} were not asked.")
        _sum_up(outcomes)
        return EXIT_INTERRUPTED
    _sum_up(outcomes)
    if parsed.json is not None:
        try:
            _write(parsed.json, target, welcome, settings, outcomes)
        except OSError as error:
            return fail(f"{parsed.json} cannot be written: {error}", EXIT_FAILED)
    broken = any(outcome.verdict == "broken" for outcome in outcomes)
    return EXIT_FAILED if broken else EXIT_OK


def _sum_up(outcomes: Sequence[Outcome]) -> None:
    from plait.conformance.report import broken_of, summary_of

    say(summary_of(outcomes))
    if broken := broken_of(outcomes):
        say(f"broken: {', '.join(broken)}")


def _list(cases: Sequence[Case]) -> int:
    for case in cases:
        slow = " (with --slow)" if case.slow else ""
        say(f"{case.section:<14} {case.name:<40} {case.about}{slow}")
    return EXIT_OK


async def _ask(
    cases: Sequence[Case], target: Target, settings: Settings, outcomes: list[Outcome]
) -> Message:
    """What the server said first; outcomes are added as they come, so that none is lost."""
    from plait.conformance.report import lines_of, plan_of
    from plait.conformance.running import run_case, welcome_of

    welcome = await welcome_of(target)
    say(f"{welcome.get('server')} at {target.url}: {', '.join(welcome['methods'])}")
    say(plan_of(len(cases), sum(case.slow for case in cases)))
    for number, case in enumerate(cases, 1):
        _show_running(f"{number}/{len(cases)} {case.name}")
        outcome = await run_case(case, target, settings, welcome)
        _show_running("")
        for line in lines_of(outcome):
            say(line)
        outcomes.append(outcome)
    return welcome


def _show_running(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}")
        sys.stderr.flush()


def _write(
    file: Path, target: Target, welcome: Message, settings: Settings, outcomes: Sequence[Outcome]
) -> None:
    import json

    from plait.conformance.report import record_of

    record = record_of(target.url, str(welcome.get("server")), settings.seed, outcomes)
    file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
