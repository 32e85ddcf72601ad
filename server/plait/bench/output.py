"""How a benchmark runs on a terminal: options all share, tables, verdicts, files, exit codes.

The figures go to stdout; progress, and where files were written, to stderr. Exit code 0 when
measured (whatever the figures), 1 when it could not be measured or written or, with --check, when a
target was missed. Where a file cannot be written is found out before anything is measured (see
`writing`); where it fails all the same, the tables have been shown.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from plait.bench import report
from plait.bench.serving import BenchError
from plait.bench.writing import check_writable, write_json
from plait.errors import PlaitError

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2

LABELS = {"python": "Python"}  # where it is not the fact's name and a colon
# Options that name what is written -> what it is called.
WRITTEN = {"chart": "chart", "report": "report", "json": "figures"}


@dataclass(frozen=True, slots=True)
class Findings:
    """`draw`: writes the chart, when the tables have been shown. Raises BenchError."""

    engine: str
    tables: list[report.Table]
    targets: list[report.Target]
    record: dict[str, Any]
    draw: Callable[[], None] | None = None


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


def seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a time in seconds")
    return number


def publish_measured(parsed: argparse.Namespace, work: Coroutine[Any, Any, Findings]) -> int:
    failures: list[BaseException] = []
    findings: Findings | None = None
    try:
        if parsed.json is not None:
            check_writable(parsed.json)
        findings = asyncio.run(_until_terminated(work))
    except* (BenchError, PlaitError) as group:
        failures = list(_leaves(group))
    finally:
        work.close()  # where it was not begun
    if findings is None:
        sys.stderr.write(f"plait: {failures[0]}\n")
        return EXIT_FAILED
    return _publish(parsed, findings)


async def _until_terminated(work: Coroutine[Any, Any, Findings]) -> Findings:
    """A SIGTERM unwinds like Ctrl-C, so that no server of ours stays behind."""
    measuring = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, measuring.cancel)
    try:
        return await measuring
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


def _publish(parsed: argparse.Namespace, findings: Findings) -> int:
    facts, targets = report.machine(findings.engine), findings.targets
    console = Console(highlight=False)
    for name, value in facts.items():
        console.print(f"{LABELS.get(name, f'{name}:')} {value}", markup=False, soft_wrap=True)
    for table in findings.tables:
        console.print(_rich(table))
    for target in targets:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[target.met]
        line = f"{verdict:<12} {target.what} ({target.measured})"
        console.print(line, markup=False, soft_wrap=True)
    whole = {"machine": facts, **findings.record, "targets": [asdict(t) for t in targets]}
    written = _write(parsed, findings, whole)
    missed = any(target.met is False for target in targets)
    return EXIT_FAILED if not written or (missed and parsed.check) else EXIT_OK


def _write(parsed: argparse.Namespace, findings: Findings, whole: dict[str, Any]) -> bool:
    """All that can be; says where each file is, or why it is not. False where one is not."""
    writers: dict[str, Callable[[], None]] = {}
    if findings.draw is not None:
        writers["chart"] = findings.draw
    if parsed.json is not None:
        writers["json"] = partial(write_json, parsed.json, whole)
    failed = False
    for option, what in WRITTEN.items():
        path = getattr(parsed, option, None)
        if path is None:
            continue
        try:
            if option in writers:  # or it was written where it was measured
                writers[option]()
            sys.stderr.write(f"{what}: {path}\n")
        except BenchError as error:
            sys.stderr.write(f"plait: {error}\n")
            failed = True
    return not failed


def _rich(table: report.Table) -> RichTable:
    shown = RichTable("", title=table.title, title_justify="left")
    for column in table.columns:
        shown.add_column(column, justify="right")
    for what, cells in table.rows:
        shown.add_row(what, *cells)
    return shown
