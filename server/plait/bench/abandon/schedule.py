"""The schedule of a run: what is asked, when, who hangs up, where and how. Pure and seeded.

The requests are the same at every share of hang-ups and for every target, and who leaves at 20 %
leaves at 40 % in the same place, too: so that two runs differ in nothing but what is compared. A
fifth of all requests have a long prompt; whoever leaves one of them leaves while it is read. Does
NOT know targets nor how long a prompt takes: prefill moments are shares of `prefill_seconds`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plait.bench import prompts
from plait.bench.abandon.target import HangUp, How, Request

HOWS: tuple[How, ...] = ("cancel", "close", "reset")
PREFILL_EVERY = 5  # one of so many has a long prompt
# A prompt that reads alone in `prefill_seconds` is surely being read in this part of them.
PREFILL_SHARES = (0.1, 0.8)


@dataclass(frozen=True, slots=True)
class Plan:
    """`load`: requests per second, None: the clients are always busy. `prefill_seconds`: how long
    a prompt of `prefill_words` words takes. `engine`: "scripted", where prompts are scripts."""

    requests: int
    tokens: int
    seed: int
    prefill_words: int
    prefill_seconds: float
    load: float | None = None
    engine: str = ""


def schedule(plan: Plan, percent: float) -> list[Request]:
    """All requests in order of arrival; of them `percent` % hang up (rounded to whole ones)."""
    moments = list(itertools.islice(_arrivals(plan), plan.requests))
    leaves = _hang_ups(plan)
    leaving = set(_in_order_of_leaving(plan)[: round(plan.requests * percent / 100)])
    return [
        Request(
            index,
            at,
            _messages(plan, index, leaves[index]),
            plan.tokens,
            leaves[index] if index in leaving else None,
        )
        for index, at in enumerate(moments)
    ]


def ended_there(requests: Sequence[Request]) -> list[Request]:
    """The control: nobody hangs up. Who would in decode asks for no more tokens than that, and
    who would in prefill does not come: the same useful work, without anything abandoned."""
    kept = []
    for request in requests:
        leave = request.hang_up
        if leave is None:
            kept.append(request)
        elif leave.phase == "decode":
            tokens = min(leave.after_tokens, request.max_tokens)
            kept.append(Request(request.index, request.at, request.messages, tokens))
    return kept


def slices(requests: Sequence[Request], count: int) -> list[list[Request]]:
    """Runs of about equal length, in order, each with its arrivals from 0 on."""
    size = -(-len(requests) // count)
    parts = [requests[begin : begin + size] for begin in range(0, len(requests), size)]
    return [[_sooner(request, part[0].at) for request in part] for part in parts]


def _sooner(request: Request, seconds: float) -> Request:
    at = request.at - seconds
    return Request(request.index, at, request.messages, request.max_tokens, request.hang_up)


def _arrivals(plan: Plan) -> Iterator[float]:
    """A Poisson process; without a load all is due at once, and clients take what is next."""
    rng = random.Random(f"{plan.seed} arrivals")
    at = 0.0
    while True:
        yield at
        at += 0.0 if plan.load is None else rng.expovariate(plan.load)


def _in_order_of_leaving(plan: Plan) -> list[int]:
    """Every index. Any beginning of it has its fifth of long prompts, spread over it."""
    order = list(range(plan.requests))
    random.Random(f"{plan.seed} order").shuffle(order)
    return order


def _hang_ups(plan: Plan) -> dict[int, HangUp]:
    """Where each request would be left, whether or not it is."""
    rng = random.Random(f"{plan.seed} places")
    leaves = {}
    for rank, index in enumerate(_in_order_of_leaving(plan)):
        how = HOWS[rank % len(HOWS)]
        # Both are always drawn, so that one request's kind does not move the others' places.
        tokens, share = rng.randint(1, max(1, plan.tokens - 1)), rng.uniform(*PREFILL_SHARES)
        if rank % PREFILL_EVERY == PREFILL_EVERY // 2:
            seconds = share * plan.prefill_seconds
            leaves[index] = HangUp("prefill", how, after_seconds=seconds)
        else:
            leaves[index] = HangUp("decode", how, after_tokens=tokens)
    return leaves


def _messages(plan: Plan, index: int, leave: HangUp) -> list[dict[str, Any]]:
    if leave.phase == "prefill":
        return prompts.long_prompt(index, plan.prefill_words, engine=plan.engine)
    return prompts.story(index, engine=plan.engine)
