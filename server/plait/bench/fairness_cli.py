"""`plait bench fairness`: first tokens of short chats beside a flood of somebody else's long ones.

Does NOT know how figures are shown (see `output`) nor judged (see `fairness_report`).
"""

from __future__ import annotations

import argparse

from plait.bench import fairness, fairness_report
from plait.bench.meanwhile import progress
from plait.bench.output import Findings, add_output, positive, publish_measured
from plait.bench.serving import own_server
from plait.config import default_chat_engine

ENGINES = ("llamacpp", "mlx", "scripted")
SLOTS, CONTEXT_TOKENS = 4, 2048
# mlx on a Linux CPU reads prompts some ten times slower; see docs/benchmarks.md.
WORDS = {"llamacpp": 900, "mlx": 200, "scripted": 900}
ROUNDS, CHATS = 4, 10


def add_arguments(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = kinds.add_parser("fairness", help="short chats beside a flood of long ones")
    command.add_argument("--engine", choices=ENGINES, help="default: this platform's")
    command.add_argument(
        "--slots", type=positive, default=SLOTS, help=f"of the engine (default: {SLOTS})"
    )
    command.add_argument(
        "--flood", type=positive, help="long chats that are open at once (default: twice the slots)"
    )
    command.add_argument("--words", type=positive, help="of a long prompt (default: 900; mlx: 200)")
    command.add_argument(
        "--rounds", type=positive, default=ROUNDS, help=f"pairs (default: {ROUNDS})"
    )
    command.add_argument(
        "--chats", type=positive, default=CHATS, help=f"short ones a side (default: {CHATS})"
    )
    add_output(command)
    command.set_defaults(run=_fairness)


def _fairness(parsed: argparse.Namespace) -> int:
    engine: str = parsed.engine or default_chat_engine()
    plan = fairness.Plan(
        engine,
        parsed.slots,
        parsed.flood or 2 * parsed.slots,
        parsed.words or WORDS[engine],
        parsed.rounds,
        parsed.chats,
    )
    return publish_measured(parsed, _measure(plan))


async def _measure(plan: fairness.Plan) -> Findings:
    settings = {
        "slots": plan.slots,
        "context_tokens": CONTEXT_TOKENS,
        "max_tokens": fairness.LONG_TOKENS,
    }
    async with own_server(plan.engine, **settings) as server:
        with progress("short chats", 2 * plan.rounds * plan.chats) as advance:
            result = await fairness.measure(server, plan, advance)
    return Findings(
        plan.engine,
        [fairness_report.fairness_table(result, plan)],
        fairness_report.fairness_targets(result, plan),
        fairness_report.fairness_record(result, plan),
    )
