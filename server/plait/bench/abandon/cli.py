"""`plait bench abandon`: readers who hang up, on Plait and on any other server.

Does NOT know how figures are shown (see `bench.output`) nor judged (see `report`).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from plait.bench import charts
from plait.bench.abandon import report
from plait.bench.abandon.comparing import Comparison, compare
from plait.bench.abandon.peers import PEERS, base_of, open_target as open_peer
from plait.bench.abandon.plait_target import PlaitTarget, open_own
from plait.bench.abandon.running import Terms
from plait.bench.abandon.schedule import Plan
from plait.bench.abandon.target import Target
from plait.bench.meanwhile import progress
from plait.bench.output import (
    Findings,
    add_output,
    positive,
    publish_measured,
    seconds,
)
from plait.bench.report import machine
from plait.bench.serving import BenchError, running_server
from plait.config import default_chat_engine

OWN = {"plait:llamacpp": "llama.cpp", "plait:mlx": "mlx-lm", "plait:scripted": "scripted"}
ENGINES = {"plait:llamacpp": "llamacpp", "plait:mlx": "mlx", "plait:scripted": "scripted"}
PEER_ENGINES = dict(zip(PEERS, ("llamacpp", "mlx"), strict=True))
SATURATED = "saturated"
CONTEXT_TOKENS = 2048
PERCENTS, CLIENTS, SLOTS, REQUESTS, TOKENS, WORDS = (0.0, 20.0, 40.0), 8, 4, 40, 120, 300
SLICES = 2


def add_arguments(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = kinds.add_parser("abandon", help="what readers who hang up cost, here and elsewhere")
    own, peers = ", ".join(OWN), ", ".join(PEERS)
    command.add_argument(
        "--target",
        action="append",
        dest="targets",
        metavar="TARGET",
        help=f"repeatable: {own}, {peers} (llama-server:N computes at most N tokens at once), or a "
        "URL (ws: a running Plait, http: any OpenAI-compatible server) (default: Plait with this "
        "platform's engine)",
    )
    command.add_argument(
        "--rates",
        type=percent,
        nargs="+",
        default=PERCENTS,
        help="of the requests hang up, in percent (default: 0 20 40)",
    )
    _add_load(command)
    command.add_argument(
        "--no-cancel",
        action="store_true",
        help="for comparison: who leaves says nothing, and dead requests run to their end",
    )
    command.add_argument(
        "--control", action="store_true", help="also the same useful work with nobody leaving"
    )
    command.add_argument(
        "--interleave",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="targets and rates take turns in slices of the schedule (default); otherwise one "
        "target after the other, alone on the machine",
    )
    command.add_argument(
        "--slices", type=positive, default=SLICES, help=f"when in turns (default: {SLICES})"
    )
    command.add_argument("--chart", type=Path, metavar="FILE", help="draw it, as .svg or .png")
    add_output(command)
    command.set_defaults(run=_abandon)


def _add_load(command: argparse.ArgumentParser) -> None:
    for option, default, what in (
        ("--clients", CLIENTS, "at once"),
        ("--slots", SLOTS, "of each server of our own; the other clients queue"),
        ("--requests", REQUESTS, "at each rate"),
        ("--tokens", TOKENS, "per answer"),
        ("--prefill-words", WORDS, "of a long prompt, which one request of five has"),
    ):
        command.add_argument(
            option, type=positive, default=default, help=f"{what} (default: {default})"
        )
    command.add_argument(
        "--load",
        type=offered,
        default=SATURATED,
        help="requests per second, in a Poisson process; or saturated: clients are always busy, "
        "each with the next request (default)",
    )
    command.add_argument(
        "--prefill-seconds",
        type=seconds,
        default=0.0,
        help="how long reading a long prompt takes, for the moments of leaving it "
        "(default: as measured)",
    )
    command.add_argument("--seed", type=int, default=1, help="of the schedule (default: 1)")


def percent(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not a percentage (0 to 100)")
    return number


def offered(text: str) -> float | None:
    if text == SATURATED:
        return None
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a rate: give requests per second")
    return number


def _abandon(parsed: argparse.Namespace) -> int:
    # Given more than once, a target or a rate is still measured once.
    targets = tuple(dict.fromkeys(parsed.targets or [f"plait:{default_chat_engine()}"]))
    load = None if parsed.load == SATURATED else parsed.load
    plan = Plan(
        parsed.requests,
        parsed.tokens,
        parsed.seed,
        parsed.prefill_words,
        parsed.prefill_seconds,
        load,
        "scripted" if "plait:scripted" in targets else "",
    )
    comparison = Comparison(
        targets,
        tuple(sorted(set(parsed.rates))),
        Terms(parsed.clients, load, parsed.no_cancel),
        parsed.slices,
        parsed.control,
        parsed.interleave,
    )
    return publish_measured(parsed, _measure(comparison, plan, parsed.slots, parsed.chart))


async def _measure(comparison: Comparison, plan: Plan, slots: int, chart: Path | None) -> Findings:
    if chart is not None:
        if not any(comparison.percents):
            raise BenchError("--chart shows what hang-ups cost: give --rates one above 0")
        await asyncio.to_thread(charts.check_charts, chart)
    # Some 1.3 tokens a word; room for the template and whatever a tokenizer makes of it.
    context_tokens = max(CONTEXT_TOKENS, 2 * plan.prefill_words + plan.tokens + 256)
    opened = partial(
        open_target, slots=slots, context_tokens=context_tokens, max_tokens=plan.tokens
    )
    with progress("requests", comparison.steps(plan.requests)) as advance:
        outcomes, plan = await compare(comparison, plan, opened, advance)
    terms = comparison.terms
    title = f"{plan.tokens} tokens an answer, {terms.clients} clients"
    title += "" if terms.load is None else f", {terms.load:g} requests/s"
    title += ", nothing is cancelled" if terms.no_cancel else ""
    engines = _engines_of(comparison.targets)
    date = machine(engines)["date"]
    return Findings(
        engines,
        report.tables(outcomes, title),
        report.targets(outcomes, plan.tokens, saturated=terms.load is None),
        {
            "plan": asdict(plan),
            "comparison": asdict(comparison),
            "slots": slots,
            "outcomes": [report.record(outcome) for outcome in outcomes],
        },
        None if chart is None else partial(report.draw, chart, outcomes, f"{title}; {date}"),
    )


@asynccontextmanager
async def open_target(
    name: str, *, slots: int, context_tokens: int, max_tokens: int
) -> AsyncIterator[Target]:
    """Raises BenchError for a name that is none, and for a server that does not come up."""
    async with _opening(name, slots, context_tokens, max_tokens) as target:
        yield target


def _opening(
    name: str, slots: int, context_tokens: int, max_tokens: int
) -> AbstractAsyncContextManager[Target]:
    if name in OWN:
        label = f"plait, {OWN[name]}"
        return open_own(ENGINES[name], label, slots, context_tokens, max_tokens)
    if name.startswith("ws://"):
        return _somebodys_plait(name)
    if base_of(name) in PEERS or name.startswith("http"):
        return open_peer(name, slots=slots, context_tokens=context_tokens, max_tokens=max_tokens)
    known = ", ".join((*OWN, *PEERS, "llama-server:N"))
    raise BenchError(f"'{name}' is no target: use {known}, ws://host:port/v1/ws or http://…")


@asynccontextmanager
async def _somebodys_plait(url: str) -> AsyncIterator[PlaitTarget]:
    server = running_server(url)
    await server.metrics()  # what is wrong is said now, not after the other targets have started
    yield PlaitTarget(f"plait at {server.url.removeprefix('http://')}", server, None)


def _engines_of(targets: Sequence[str]) -> str:
    """Whose library versions the figures depend on."""
    known = ENGINES | PEER_ENGINES
    return ", ".join(dict.fromkeys(known.get(base_of(name), "somebody's") for name in targets))
