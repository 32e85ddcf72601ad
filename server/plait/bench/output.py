"""How a benchmark runs on a terminal: options all share, progress bars, tables, JSON, exit codes.

The figures go to stdout and the progress to stderr. Exit code 0 when measured (whatever the
figures), 1 when it could not be measured or, with --check, when a target was missed. Where a file
cannot be written is found out before anything is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from plait.bench import report
from plait.bench.serving import BenchError
from plait.errors import PlaitError

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


@dataclass(frozen=True, slots=True)
class Findings:
    engine: str
    tables: list[report.Table]
    targets: list[report.Target]
    record: dict[str, Any]


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


def check_writable(file: Path) -> None:
    """Makes its directory. Raises BenchError when no file could be written there."""
    why = "it is a directory" if file.is_dir() else ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = str(error)
    if not why and not os.access(file if file.exists() else file.parent, os.W_OK):
        why = "no permission"
    if why:
        raise BenchError(f"{file} cannot be written: {why}; name another file")


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
    console.print("\n".join(facts.values()), markup=False)
    for table in findings.tables:
        console.print(_rich(table))
    for target in targets:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[target.met]
        line = f"{verdict:<12} {target.what} ({target.measured})"
        console.print(line, markup=False, soft_wrap=True)
    if parsed.json is not None:
        whole = {"machine": facts, **findings.record, "targets": [asdict(t) for t in targets]}
        parsed.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    missed = any(target.met is False for target in targets)
    return EXIT_FAILED if missed and parsed.check else EXIT_OK


def _rich(table: report.Table) -> RichTable:
    shown = RichTable("", title=table.title, title_justify="left")
    for column in table.columns:
        shown.add_column(column, justify="right")
    for what, cells in table.rows:
        shown.add_row(what, *cells)
    return shown


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; nothing elsewhere."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)
