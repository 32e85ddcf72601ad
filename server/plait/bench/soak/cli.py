"""`plait bench soak`: arguments, the server it runs against, and what is shown meanwhile.

Without --url the server is our own, with every method whose model is installed: a soak downloads
nothing. Ctrl-C ends it early; what was measured is reported all the same. Does NOT know how a
soak runs (see `running`) nor how it is judged (see `report`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn

from plait.bench.charts import check_charts
from plait.bench.output import Findings, add_output, positive, publish_measured
from plait.bench.report import Table, Target, machine
from plait.bench.serving import BenchError, Server, own_server, running_server
from plait.bench.soak import files, report
from plait.bench.soak.asking import METHODS, Asking
from plait.bench.soak.running import Outcome, Plan, Progress, Soak
from plait.bench.soak.sampling import GATEWAY, Names, Watch
from plait.bench.soak.visit import linked
from plait.config import Config, default_chat_engine
from plait.installation import best_speech_engine
from plait.models import ModelStore

ENGINES = ("llamacpp", "mlx", "scripted")
# The method's setting, and the setting of its model.
SETTINGS = {
    "chat": ("chat_engine", "chat_model"),
    "synthesize": ("speech_engine", "speech_model"),
    "transcribe": ("transcribe_engine", "transcribe_model"),
    "embed": ("embed_engine", "embed_model"),
}
CONTEXT_TOKENS, MAX_TOKENS = 2048, 256
MOST_SAMPLES = 600

Target_ = tuple[Server, Asking, Names]


def add_arguments(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = kinds.add_parser(
        "soak", help="everything clients do, for long: does it leave a trace?"
    )
    command.add_argument("--engine", choices=ENGINES, help="of chats (default: this platform's)")
    command.add_argument(
        "--url",
        help="a running server (http://host:port) instead of an own one; it is shown PLAIT_TOKEN",
    )
    command.add_argument(
        "--methods", nargs="+", choices=METHODS, help="default: those whose models are installed"
    )
    command.add_argument("--minutes", type=_minutes, default=10.0, help="default: 10")
    command.add_argument(
        "--clients", type=positive, default=8, help="connected at a time (default: 8)"
    )
    command.add_argument("--seed", type=int, default=1, help="of what clients do (default: 1)")
    command.add_argument(
        "--memory-bound",
        type=float,
        default=report.BOUND_MIB_PER_HOUR,
        metavar="MIB_PER_HOUR",
        help="most that a process may grow, files it has mapped apart (default: "
        f"{report.BOUND_MIB_PER_HOUR:g})",
    )
    command.add_argument(
        "--report", type=Path, metavar="DIR", help="write soak.md, .json, .svg and .png there"
    )
    add_output(command)
    command.set_defaults(run=_soak)


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0 < minutes < 60 * 24 * 30:
        raise argparse.ArgumentTypeError(f"{text} is not a number of minutes above 0")
    return minutes


def _soak(parsed: argparse.Namespace) -> int:
    return publish_measured(parsed, _measure(parsed))


async def _measure(parsed: argparse.Namespace) -> Findings:
    if parsed.report is not None:
        await asyncio.to_thread(check_charts, parsed.report / files.CHARTS[0])
    seconds = 60 * parsed.minutes
    every = max(0.5, seconds / MOST_SAMPLES)
    plan = Plan(seconds, parsed.clients, every, parsed.seed)
    engine: str = parsed.engine or default_chat_engine()
    async with _target(parsed.url, engine, parsed.methods) as (server, asking, names):
        with _status(plan) as tell:
            soak = Soak(server, plan, asking, Watch(server, names), tell)
            with _interrupted_by_ctrl_c(soak):
                outcome = await soak.run()
    shown = parsed.url or f"{engine}: {', '.join(sorted(asking.scripted))}"
    tables = [report.ends_table(outcome), report.rest_table(outcome)]
    targets = report.targets(outcome, parsed.memory_bound)
    if parsed.report is not None:
        await asyncio.to_thread(_write, parsed.report, engine, shown, outcome, tables, targets)
    return Findings(engine, tables, targets, {"soaked": shown, **files.record(outcome)})


def _write(
    directory: Path,
    engine: str,
    shown: str,
    outcome: Outcome,
    tables: Sequence[Table],
    targets: Sequence[Target],
) -> None:
    """Where it runs against somebody's server, only ours is known of the machine."""
    facts = {"command": shlex.join(["plait", *sys.argv[1:]]), **machine(engine), "engine": shown}
    if outcome.ended_early:
        facts["note"] = "ended early, by Ctrl-C"
    files.write(directory, facts, outcome, tables, targets)


# --- servers -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _target(url: str | None, engine: str, wanted: list[str] | None) -> AsyncIterator[Target_]:
    names = Names()
    if url is not None:
        server = running_server(url)
        await server.metrics()  # says what is wrong better than a handshake does
        yield server, await _offered(server, wanted), names
        return
    engines = engines_of(engine, wanted)
    settings: dict[str, int | str] = {"context_tokens": CONTEXT_TOKENS, "max_tokens": MAX_TOKENS}
    for method, (setting, _) in SETTINGS.items():
        if method != "chat":
            settings[setting] = engines.get(method, "off")
    # A gateway without chat is none: its worker is there then, and nobody asks it.
    chat_engine = engines.get("chat", "scripted")
    async with own_server(chat_engine, names.read, **settings) as server:
        asking = Asking({method: name == "scripted" for method, name in engines.items()})
        yield server, asking, names


def engines_of(engine: str, wanted: Sequence[str] | None) -> dict[str, str]:
    """Method -> its engine. Raises BenchError when a wanted one has no model here."""
    if engine == "scripted":
        return dict.fromkeys(wanted or METHODS, "scripted")
    real = {
        "chat": engine,
        "synthesize": best_speech_engine(),
        "transcribe": "whisper",
        "embed": "onnx",
    }
    config, store = Config(), ModelStore()
    models = {method: getattr(config, setting) for method, (_, setting) in SETTINGS.items()}
    there = {method for method, model in models.items() if store.find(model) is not None}
    missing = sorted(set(wanted or ()) - there)
    if missing or not there:
        model = models[missing[0] if missing else "chat"]
        raise BenchError(f"{model} is not installed: plait models pull {model}")
    return {method: name for method, name in real.items() if method in (wanted or there)}


async def _offered(server: Server, wanted: Sequence[str] | None) -> Asking:
    """What its `welcome` says; scripted models by their name."""
    async with linked(server) as link:
        methods = link.welcome["methods"]
    offered = {m: methods[m]["models"][0].startswith("scripted") for m in METHODS if m in methods}
    missing = sorted(set(wanted or ()) - offered.keys())
    if missing or not offered:
        raise BenchError(f"{server.typed} does not offer {', '.join(missing) or 'any method'}")
    return Asking({method: offered[method] for method in wanted or offered})


# --- meanwhile ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _interrupted_by_ctrl_c(soak: Soak) -> Iterator[None]:
    """The first one ends the soak early, the second one everything."""
    loop, whole = asyncio.get_running_loop(), asyncio.current_task()
    assert whole is not None
    asked = False

    def interrupt() -> None:
        nonlocal asked
        if asked:
            whole.cancel()
        asked = True
        soak.stop()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@contextlib.contextmanager
def _status(plan: Plan) -> Iterator[Callable[[Progress], None]]:
    """A bar with the time left, and what is held now; on a terminal only."""
    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", markup=False),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("soak", total=plan.seconds, now="")

        def tell(progress: Progress) -> None:
            bar.update(
                task,
                description=progress.phase,
                completed=progress.seconds,
                total=progress.of_seconds,
                now=status_line(progress),
            )

        yield tell


def status_line(progress: Progress) -> str:
    """One line, short enough for 80 columns beside the bar."""
    tally, sample = progress.tally, progress.sample
    parts = [f"{tally.ends.total()} streams", f"{len(tally.broken)} broken"]
    if GATEWAY in sample.processes:
        parts.insert(0, f"{sample.processes[GATEWAY].rss_bytes / report.MIB:.0f} MiB")
    return ", ".join(parts)
