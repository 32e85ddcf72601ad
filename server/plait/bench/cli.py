"""`plait bench` and its `cancel` and `chat`: arguments and what they run.

`speak`, `transcribe`, `embed` and `fairness` are in modules of their own (`speak_cli` and so on).

Does NOT know how figures are shown (see `output`) nor judged (see `report`).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from functools import partial

from plait.bench import (
    cancelling,
    chatting,
    embed_cli,
    fairness_cli,
    report,
    speak_cli,
    transcribe_cli,
)
from plait.bench.abandon import cli as abandon_cli
from plait.bench.gateway import cli as gateway_cli
from plait.bench.meanwhile import progress
from plait.bench.output import (
    EXIT_USAGE,
    Findings,
    add_output,
    positive,
    publish_measured,
)
from plait.bench.serving import Server, own_server
from plait.bench.soak import cli as soak_cli
from plait.client import connect
from plait.config import default_chat_engine
from plait.engines.base import LoadSpec

ENGINES = ("llamacpp", "mlx", "scripted")
CONTEXT_TOKENS = 2048
LEVELS = (1, 4, 8)
# mlx on a Linux CPU is some ten times slower; see docs/benchmarks.md.
CANCELS = {"llamacpp": 200, "mlx": 40, "scripted": 200}
PREFILL_WORDS = 900
CHAT_TOKENS = {"llamacpp": 64, "mlx": 24, "scripted": 64}


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `bench` and its sub-commands to the command line."""
    bench = commands.add_parser("bench", help="measure stops and throughput of every method")
    bench.set_defaults(run=partial(_help, bench))
    kinds = bench.add_subparsers(title="benchmarks", metavar="BENCHMARK")
    cancel = kinds.add_parser("cancel", help="how soon a cancelled stream's work stops")
    _add_common(cancel)
    cancel.add_argument("--url", help="a running server (http://host:port) instead of an own one")
    cancel.add_argument("--streams", type=positive, default=4, help="at once (default: 4)")
    cancel.add_argument("--cancels", type=positive, help="per phase (default: 200; mlx: 40)")
    cancel.add_argument("--phase", choices=("decode", "prefill", "both"), default="both")
    cancel.add_argument(
        "--prefill-words",
        type=positive,
        default=PREFILL_WORDS,
        help=f"length of the long prompt (default: {PREFILL_WORDS})",
    )
    cancel.add_argument("--seed", type=int, default=1, help="of the moments (default: 1)")
    cancel.set_defaults(run=_cancel)
    chat = kinds.add_parser("chat", help="tokens per second over the wire and without it")
    _add_common(chat)
    chat.add_argument("--rounds", type=positive, default=6, help="pairs per level (default: 6)")
    chat.add_argument("--tokens", type=positive, help="per answer (default: 64; mlx: 24)")
    chat.add_argument(
        "--levels", type=positive, nargs="+", default=LEVELS, help="streams (default: 1 4 8)"
    )
    chat.set_defaults(run=_chat)
    speak_cli.add_arguments(kinds)
    transcribe_cli.add_arguments(kinds)
    embed_cli.add_arguments(kinds)
    fairness_cli.add_arguments(kinds)
    abandon_cli.add_arguments(kinds)
    gateway_cli.add_arguments(kinds)
    soak_cli.add_arguments(kinds)


def _help(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> int:
    parser.print_help(sys.stderr)
    return EXIT_USAGE


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=ENGINES, help="default: this platform's")
    add_output(parser)


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
    return publish_measured(parsed, _measure_cancels(plan, phases, parsed.url))


async def _measure_cancels(
    plan: cancelling.Plan, phases: Sequence[cancelling.Phase], url: str | None
) -> Findings:
    results = []
    async with _server(url, plan.engine, plan.streams) as server:
        for phase in phases:
            # A connection for each: nothing of the first is cached for the second.
            async with connect(server.ws_url) as client:
                with progress(f"cancel in {phase}", plan.cancels) as advance:
                    results.append(await cancelling.measure(server, client, plan, phase, advance))
    title = f"cancel: {plan.engine}, {plan.streams} streams at once"
    return Findings(
        plan.engine,
        [report.cancel_table(results, title)],
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
    return publish_measured(parsed, _measure_chats(plan, settings, _spec(engine, settings)))


async def _measure_chats(plan: chatting.Plan, settings: dict[str, int], spec: LoadSpec) -> Findings:
    results = []
    async with (
        own_server(plan.engine, **settings) as server,
        chatting.direct_engine(spec) as direct,
    ):
        warm_up = chatting.Plan(plan.engine, (1,), 1, 4)
        await chatting.measure(server, direct, warm_up, 1, lambda steps: None)
        for level in plan.levels:
            with progress(f"{level} at once", plan.rounds) as advance:
                results.append(await chatting.measure(server, direct, plan, level, advance))
    title = f"chat: {plan.engine}, {plan.tokens} tokens an answer"
    return Findings(
        plan.engine,
        [report.chat_table(results, title)],
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
