"""All targets at all shares of hang-ups, in turns: what else the machine does falls on all of them.

The schedule is cut into slices; in each, every target runs it at every share while the others'
servers idle, in one order and in the next slice in the opposite one. Not in turns: one target
after the other, each with the whole schedule and alone on the machine. Does NOT know what targets
are nor how figures are judged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from time import monotonic

from plait.bench import prompts
from plait.bench.abandon.outcome import Outcome
from plait.bench.abandon.running import Advance, Terms, run
from plait.bench.abandon.schedule import Plan, ended_there, schedule, slices
from plait.bench.abandon.target import Request, Target

Open = Callable[[str], AbstractAsyncContextManager[Target]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`percents` of the requests hang up, in ascending order. `control`: also the same work with
    nobody leaving. `terms.signs` is found out for each target."""

    targets: tuple[str, ...]
    percents: tuple[float, ...]
    terms: Terms
    slices: int = 1
    control: bool = False
    in_turns: bool = True

    @property
    def cases(self) -> list[tuple[float, bool]]:
        """(percent, control)."""
        cases = [(percent, False) for percent in self.percents]
        return cases + [(p, True) for p in self.percents if p and self.control]

    def steps(self, requests: int) -> int:
        return requests * len(self.targets) * len(self.cases)


@dataclass(frozen=True, slots=True)
class Warm:
    """A target that has answered. `prefill_seconds`: of a long prompt, alone."""

    target: Target
    signs: bool
    prefill_seconds: float


async def compare(
    comparison: Comparison, plan: Plan, open_target: Open, advance: Advance
) -> tuple[list[Outcome], Plan]:
    """-> the outcomes, by target and case, and the plan that was run: `prefill_seconds` 0 is
    measured on the fastest target (not in turns: on the first). Raises BenchError."""
    outcomes: list[Outcome] = []
    groups = [comparison.targets] if comparison.in_turns else [(t,) for t in comparison.targets]
    for names in groups:
        async with _opened(names, open_target, plan) as warm:
            if not plan.prefill_seconds:
                plan = replace(plan, prefill_seconds=min(one.prefill_seconds for one in warm))
            outcomes += await _run_all(comparison, plan, warm, advance)
    return outcomes, plan


async def _run_all(
    comparison: Comparison, plan: Plan, warm: Sequence[Warm], advance: Advance
) -> list[Outcome]:
    terms = comparison.terms
    count = comparison.slices if comparison.in_turns else 1
    turns = []
    for one in warm:
        for percent, control in comparison.cases:
            outcome = Outcome(one.target.name, percent, control, terms.no_cancel)
            turns.append((one, outcome, _parts(plan, percent, control, count)))
    for number in range(count):
        for one, outcome, parts in turns if number % 2 == 0 else reversed(turns):
            requests = parts[number] if number < len(parts) else []
            if requests:
                own = replace(terms, signs=one.signs)
                outcome.runs.append(await run(one.target, requests, own, advance))
    return [outcome for _, outcome, _ in turns]


def _parts(plan: Plan, percent: float, control: bool, count: int) -> list[list[Request]]:
    """By the whole schedule, so that a slice has the same requests with and without leavers."""
    parts = slices(schedule(plan, percent), count)
    return [ended_there(part) for part in parts] if control else parts


@asynccontextmanager
async def _opened(names: Sequence[str], open_target: Open, plan: Plan) -> AsyncIterator[list[Warm]]:
    async with AsyncExitStack() as stack:
        warm = []
        for name in names:
            target = await stack.enter_async_context(open_target(name))
            warm.append(await _warm_up(target, plan))
        yield warm


async def _warm_up(target: Target, plan: Plan) -> Warm:
    """The first ever pays for what others find ready; the second is timed."""
    await target.begin()
    story = prompts.story(plan.requests, engine=plan.engine)
    await _time_prompt(target, Request(plan.requests, 0.0, story, 8))
    words, number = plan.prefill_words, plan.requests + 1
    long = prompts.long_prompt(number, words, engine=plan.engine)
    seconds, signs = await _time_prompt(target, Request(number, 0.0, long, 2))
    await target.account()
    return Warm(target, signs, seconds)


async def _time_prompt(target: Target, request: Request) -> tuple[float, bool]:
    """-> (seconds from its begin, as far as that is said, to the first token; whether it is)."""
    begun, signs, first = monotonic(), False, 0.0
    async with target.open(request) as exchange:
        while (tokens := await exchange.next_tokens()) is not None:
            if not tokens and not signs:
                signs, begun = True, monotonic()
            elif tokens and not first:
                first = monotonic()
    return max(first - begun, 0.001), signs
