"""mlx_lm.server as a target, with the model directory, slots and BLAS Plait has.

Its log says nothing of tasks, so its batch is watched in its own process (see `mlx_child`). Does
NOT know the schedule.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from plait.bench.abandon.child import Child, serving_child
from plait.bench.abandon.http_exchange import Address
from plait.bench.abandon.llama_server import warm_up
from plait.bench.abandon.mlx_steps import MlxSteps
from plait.bench.abandon.openai_target import OpenAITarget, StreamedAnswer
from plait.bench.abandon.served import Sent, account, charged_dead_seconds, matched
from plait.bench.abandon.target import Account
from plait.bench.serving import BenchError
from plait.engines.base import LoadSpec

NAME = "mlx_lm.server"
SOURCE = "its batch, watched step by step in its process"
QUIET_SECONDS, IDLE_ROUNDS = 15.0, 60


@contextlib.asynccontextmanager
async def mlx_server(spec: LoadSpec) -> AsyncIterator[OpenAITarget]:
    """Started and warmed up. `spec`: as for Plait's mlx worker. Raises BenchError."""
    answers: list[StreamedAnswer] = []

    def on_begin(number: int) -> None:
        # Two requests sent at once may have changed places, and then get each other's sign.
        if number < len(answers):
            answers[number].begin()

    steps = MlxSteps(on_begin)
    module = "plait.bench.abandon.mlx_child"
    async with serving_child(NAME, module, spec, steps.take, lambda line, moment: None) as child:
        accountant = StepAccountant(child, steps, answers)
        address = Address.of(child.url)
        target = OpenAITarget(NAME, address, "default_model", accountant, signs=True)
        await warm_up(target)
        yield target


class StepAccountant:
    """Reads the steps of our own child."""

    def __init__(self, child: Child, steps: MlxSteps, answers: list[StreamedAnswer]) -> None:
        self._child = child
        self._answers = answers  # of the run, in the order of their requests
        self._steps = steps
        self._cpu_before = 0.0

    async def begin(self) -> None:
        await self._idle(0)
        self._steps.forget()
        self._answers.clear()
        self._cpu_before = await self._child.cpu_seconds()

    def sent(self, answer: StreamedAnswer) -> None:
        self._answers.append(answer)

    async def account(self, sent: Sequence[Sent]) -> Account:
        await self._idle(len(sent))
        cpu_seconds = await self._child.cpu_seconds() - self._cpu_before
        works, busy = self._steps.works()
        pairs = matched(sent, works)
        told = account(pairs, SOURCE, busy, cpu_seconds)
        told.dead_seconds = charged_dead_seconds(pairs)
        return told

    async def _idle(self, tasks: int) -> None:
        """Until that many have come to the batch, and all have left it. Raises BenchError.

        A request may come late, as the batch takes new ones only between its steps, and one that
        left at once perhaps never: it is not waited for once there is nothing else to do.
        """
        steps = self._steps
        for _ in range(IDLE_ROUNDS):
            if await self._child.until(
                lambda: steps.seen >= tasks and not steps.pending, QUIET_SECONDS
            ):
                return
            if not steps.pending:
                return
        seconds = IDLE_ROUNDS * QUIET_SECONDS
        raise BenchError(f"{NAME} still computes {seconds:g} s after the last request")
