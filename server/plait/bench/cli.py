"""`plait bench cancel` and `plait bench chat`: arguments, a progress bar, tables, JSON.

The figures go to stdout and the progress to stderr. Exit code 0 when measured (whatever the
figures), 1 when it could not be measured or, with --check, when a target was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from plait.bench import cancelling, chatting, report
from plait.bench.serving import BenchError, Server, own_server
from plait.client import connect
from plait.config import default_chat_engine
from plait.engines.base import LoadSpec
from plait.errors import PlaitError

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
ENGINES = ("llamacpp", "mlx", "scripted")
CONTEXT_TOKENS = 2048
LEVELS = (1, 4, 8)
# mlx on a Linux CPU is some ten times slower; see docs/benchmarks.md.
CANCELS = {"llamacpp": 200, "mlx": 40, "scripted": 200}
PREFILL_WORDS = 900
CHAT_TOKENS = {"llamacpp": 64, "mlx": 24, "scripted": 64}


@dataclass(frozen=True, slots=True)
class _Findings:
    engine: str
    table: report.Table
    targets: list[report.Target]
    record: dict[str, Any]


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `bench` and its sub-commands to the command line."""
    bench = commands.add_parser("bench", help="measure cancel latency and throughput")
    bench.set_defaults(run=partial(_help, bench))
    kinds = bench.add_subparsers(title="benchmarks", metavar="BENCHMARK")
    cancel = kinds.add_parser("cancel", help="how soon a cancelled stream's work stops")
    _add_common(cancel)
    cancel.add_argument("--url", help="a running server (http://host:port) instead of an own one")
    cancel.add_argument("--streams", type=_positive, default=4, help="at once (default: 4)")
    cancel.add_argument("--cancels", type=_positive, help="per phase (default: 200; mlx: 40)")
    cancel.add_argument("--phase", choices=("decode", "prefill", "both"), default="both")
    cancel.add_argument(
        "--prefill-words",
        type=_positive,
        default=PREFILL_WORDS,
        help=f"length of the long prompt (default: {PREFILL_WORDS})",
    )
    cancel.add_argument("--seed", type=int, default=1, help="of the moments (default: 1)")
    cancel.set_defaults(run=_cancel)
    chat = kinds.add_parser("chat", help="tokens per second over the wire and without it")
    _add_common(chat)
    chat.add_argument("--rounds", type=_positive, default=6, help="pairs per level (default: 6)")
    chat.add_argument("--tokens", type=_positive, help="per answer (default: 64; mlx: 24)")
    chat.add_argument(
        "--levels", type=_positive, nargs="+", default=LEVELS, help="streams (default: 1 4 8)"
    )
    chat.set_defaults(run=_chat)


def _help(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> int:
    parser.print_help(sys.stderr)
    return EXIT_USAGE


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=ENGINES, help="default: this platform's")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, too")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


def _publish_measured(parsed: argparse.Namespace, work: Coroutine[Any, Any, _Findings]) -> int:
    failures: list[BaseException] = []
    findings: _Findings | None = None
    try:
        findings = asyncio.run(_until_terminated(work))
    except* (BenchError, PlaitError) as group:
        failures = list(_leaves(group))
    if findings is None:
        sys.stderr.write(f"plait: {failures[0]}\n")
        return EXIT_FAILED
    return _publish(parsed, findings)


async def _until_terminated(work: Coroutine[Any, Any, _Findings]) -> _Findings:
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


# --- cancel ----------------------------------------------------------------------------------


def _cancel(parsed: argparse.Namespace) -> int:
    engine: str = parsed.engine or default_chat_engine()
    plan = cancelling.Plan(
        engine,
        parsed.streams,
        parsed.cancels or CANCELS[engine],
        parsed.seed,
        parsed.prefill_words,
    )
    phases: list[cancelling.Phase] = ["decode", "prefill"]
    if parsed.phase != "both":
        phases = [parsed.phase]
    return _publish_measured(parsed, _measure_cancels(plan, phases, parsed.url))


async def _measure_cancels(
    plan: cancelling.Plan, phases: Sequence[cancelling.Phase], url: str | None
) -> _Findings:
    results = []
    async with _server(url, plan.engine, plan.streams) as server:
        for phase in phases:
            with _progress(f"cancel in {phase}", plan.cancels) as advance:
                # A connection for each: nothing of the first is cached for the second.
                async with connect(server.ws_url) as client:
                    results.append(await cancelling.measure(server, client, plan, phase, advance))
    title = f"cancel: {plan.engine}, {plan.streams} streams at once"
    return _Findings(
        plan.engine,
        report.cancel_table(results, title),
        report.cancel_targets(results),
        {"plan": asdict(plan), "phases": [report.cancel_record(r) for r in results]},
    )


@contextlib.asynccontextmanager
async def _server(url: str | None, engine: str, streams: int) -> AsyncIterator[Server]:
    if url is not None:
        yield Server(url.rstrip("/"))
        return
    async with own_server(engine, **_settings(streams)) as server:
        yield server


def _settings(streams: int) -> dict[str, int]:
    return {"slots": streams, "context_tokens": CONTEXT_TOKENS, "max_tokens": 1024}


# --- chat ------------------------------------------------------------------------------------


def _chat(parsed: argparse.Namespace) -> int:
    engine: str = parsed.engine or default_chat_engine()
    levels = tuple(sorted(set(parsed.levels)))
    plan = chatting.Plan(engine, levels, parsed.rounds, parsed.tokens or CHAT_TOKENS[engine])
    settings = _settings(max(levels))
    return _publish_measured(parsed, _measure_chats(plan, settings, _spec(engine, settings)))


async def _measure_chats(
    plan: chatting.Plan, settings: dict[str, int], spec: LoadSpec
) -> _Findings:
    results = []
    async with (
        own_server(plan.engine, **settings) as server,
        chatting.direct_engine(spec) as direct,
    ):
        warm_up = chatting.Plan(plan.engine, (1,), 1, 4)
        await chatting.measure(server, direct, warm_up, 1, lambda steps: None)
        for level in plan.levels:
            with _progress(f"{level} at once", plan.rounds) as advance:
                results.append(await chatting.measure(server, direct, plan, level, advance))
    title = f"chat: {plan.engine}, {plan.tokens} tokens an answer"
    return _Findings(
        plan.engine,
        report.chat_table(results, title),
        report.chat_targets(results),
        {"plan": asdict(plan), "levels": [report.chat_record(r) for r in results]},
    )


def _spec(engine: str, settings: dict[str, int]) -> LoadSpec:
    """What the server's worker loads with these settings; the same code builds both."""
    from plait.config import Config
    from plait.models import ModelStore
    from plait.specs import chat_spec

    config = Config(chat_engine=engine, **settings)  # type: ignore[arg-type]
    if config.chat_engine == "scripted":
        return chat_spec(config, None)
    return chat_spec(config, ModelStore().ensure(config.chat_model, config.chat_engine))


# --- output ----------------------------------------------------------------------------------


def _publish(parsed: argparse.Namespace, findings: _Findings) -> int:
    facts, targets = report.machine(findings.engine), findings.targets
    if parsed.json is not None:
        whole = {"machine": facts, **findings.record, "targets": [asdict(t) for t in targets]}
        parsed.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    console = Console(highlight=False)
    console.print("\n".join(facts.values()), markup=False)
    console.print(_rich(findings.table))
    for target in targets:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[target.met]
        line = f"{verdict:<12} {target.what} ({target.measured})"
        console.print(line, markup=False, soft_wrap=True)
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
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
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
