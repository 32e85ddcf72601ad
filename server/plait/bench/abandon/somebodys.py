"""A server that is not ours: asked by its `/metrics` page, else, on this machine, by its CPU time.

The page counts tokens of all requests, so what was decoded for readers who had left is what it
decoded beyond the tokens that were received, as a mean. Nobody else may use the server meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import PurePath
from time import monotonic

from plait.bench.abandon.cpu_account import CpuAccountant, local_pid
from plait.bench.abandon.gauges import Gauges, Reading
from plait.bench.abandon.http_exchange import Address, connected
from plait.bench.abandon.llama_server import EXTRA, NAME as LLAMA_SERVER
from plait.bench.abandon.openai_target import OpenAITarget, StreamedAnswer, model_of
from plait.bench.abandon.served import Sent
from plait.bench.abandon.target import Account
from plait.bench.serving import ENDPOINT, BenchError


@contextlib.asynccontextmanager
async def somebodys(address: Address) -> AsyncIterator[OpenAITarget]:
    """Asked for its model and for how it can be asked what it did. Raises BenchError."""
    model, gauges = await _model_of(address), Gauges(address)
    known = await gauges.read()
    pid = None if known else await asyncio.to_thread(local_pid, address)
    accountant = GaugeAccountant(gauges) if pid is None else CpuAccountant(pid, monotonic)
    own = known is not None and known.server == LLAMA_SERVER
    name = f"{PurePath(model).name} at {address}"  # some name a model by its file
    extra = EXTRA if own else None
    target = OpenAITarget(name, address, model, accountant, extra, signs=own)
    if isinstance(accountant, CpuAccountant):
        accountant.target = target
    yield target


async def _model_of(address: Address) -> str:
    try:
        return address.model or await model_of(address)
    except BenchError:
        if await _is_plait(address):
            ws_url = f"ws{str(address).removeprefix('http')}{ENDPOINT}"
            raise BenchError(f"{address} is a Plait: use --target {ws_url}") from None
        raise


async def _is_plait(address: Address) -> bool:
    """Its endpoint says so to whoever asks it for a page."""
    try:
        async with connected(address) as exchange:
            await exchange.send("GET", ENDPOINT)
            await exchange.next_piece()
    except BenchError as refusal:
        return "plait.v1" in str(refusal)
    return False


class GaugeAccountant:
    """Reads the page before and after a run."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._before: Reading | None = None

    async def begin(self) -> None:
        self._before = await self._gauges.idle()

    def sent(self, answer: StreamedAnswer) -> None:
        """Nobody tells when it begins, unless the answer itself does."""

    async def account(self, sent: Sequence[Sent]) -> Account:
        after = await self._gauges.idle()
        if self._before is None or after is None:
            return Account("unknown: it has no metrics that we can read")
        return account_of(self._before, after, sent)


def account_of(before: Reading, after: Reading, sent: Sequence[Sent]) -> Account:
    """Whole answers are taken at the server's own count of them, where it gives one."""
    live = sum(
        request.received
        if request.hung_up is not None or request.completion_tokens is None
        else request.completion_tokens
        for request in sent
    )
    left = sum(request.hung_up is not None for request in sent)
    beyond = max(0.0, after.decoded - before.decoded - live)
    source = f"{after.server}'s /metrics: decoded less received"
    return Account(source, mean_after=beyond / left if left else None)
