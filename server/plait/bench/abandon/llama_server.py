"""llama-server as a target: the one built into xllamacpp, with the model and slots Plait has.

Its log says of every task when it was launched and released and how many tokens it held, so its
account is exact in decode; in prefill, where it computes a prompt in one go, tokens after the
hang-up are a share of that time. Does NOT know the schedule.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from plait.bench.abandon.child import Child, serving_child
from plait.bench.abandon.gauges import Gauges
from plait.bench.abandon.http_exchange import Address
from plait.bench.abandon.llama_child import Settings
from plait.bench.abandon.llama_log import LlamaLog
from plait.bench.abandon.openai_target import OpenAITarget, StreamedAnswer, model_of
from plait.bench.abandon.served import Sent, account, matched
from plait.bench.abandon.target import Account, Request
from plait.engines.base import LoadSpec

NAME = "llama-server"
SOURCE = "its own log, task by task"
# Prompts differ but begin alike: nobody may profit from what another has computed.
EXTRA = {"cache_prompt": False, "return_progress": True}
LOG_SECONDS = 10.0  # lines written are read within that
WARM_UP = [
    {"role": "user", "content": "Tell me in a few words what a harbour is and who needs it."}
]
WARM_UP_TOKENS = 24


@contextlib.asynccontextmanager
async def llama_server(
    spec: LoadSpec, batch_tokens: int | None = None
) -> AsyncIterator[OpenAITarget]:
    """Started and warmed up. `spec`: as for Plait's llama.cpp worker; `batch_tokens`: computed at
    once, None for its own default. Raises BenchError.
    """
    log = LlamaLog()
    module = "plait.bench.abandon.llama_child"
    name = NAME if batch_tokens is None else f"{NAME}, batches of {batch_tokens}"
    settings = Settings(spec, batch_tokens)
    async with serving_child(name, module, settings, lambda line, moment: None, log.take) as child:
        address = Address.of(child.url)
        accountant = LogAccountant(child, Gauges(address), log)
        model = await model_of(address)
        target = OpenAITarget(name, address, model, accountant, EXTRA, signs=True)
        await warm_up(target)
        yield target


async def warm_up(target: OpenAITarget) -> None:
    """The first answer of a server pays for what others find ready."""
    async with target.open(Request(-1, 0.0, WARM_UP, WARM_UP_TOKENS)) as exchange:
        while await exchange.next_tokens() is not None:
            pass


class LogAccountant:
    """Reads the log of our own child."""

    def __init__(self, child: Child, gauges: Gauges, log: LlamaLog) -> None:
        self._child = child
        self._gauges = gauges
        self._log = log
        self._cpu_before = 0.0

    async def begin(self) -> None:
        await self.idle(0)
        self._log.forget()
        self._cpu_before = await self._child.cpu_seconds()

    def sent(self, answer: StreamedAnswer) -> None:
        """The answer itself tells when it has begun."""

    async def account(self, sent: Sequence[Sent]) -> Account:
        await self.idle(len(sent))
        cpu_seconds = await self._child.cpu_seconds() - self._cpu_before
        works, busy = self._log.works()
        return account(matched(sent, works), SOURCE, busy, cpu_seconds)

    async def idle(self, tasks: int) -> None:
        """Until nothing is in work and the log tells of so many tasks. Raises BenchError.

        A request that left at once may never become a task: it is waited for only so long.
        """
        await self._gauges.idle()
        log = self._log
        await self._child.until(lambda: log.seen >= tasks and not log.pending, LOG_SECONDS)
