"""Plait as a target: a server of our own, whose log tells what each request cost, or somebody's.

Of a foreign server only the metrics are asked, which know all streams together. Dead work counts
from the client's hang-up: tokens beyond those that had arrived by then, the time until the server
heard of it included. Does NOT know how requests are sent (see `plait_exchange`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from plait.bench.abandon.dead import engine_seconds
from plait.bench.abandon.plait_exchange import PlaitExchange, Sent, chat
from plait.bench.abandon.plait_log import Entry, PlaitLog
from plait.bench.abandon.target import Account, Request, Span
from plait.bench.figures import Metrics
from plait.bench.serving import BenchError, Server, own_server

IDLE_SECONDS = 600.0  # whatever nobody reads any more runs to its end in that time
POLL_SECONDS = 0.05


class PlaitTarget:
    """`log` None: the server is not ours."""

    def __init__(self, name: str, server: Server, log: PlaitLog | None) -> None:
        self.name = name
        self._server = server
        self._log = log
        self._sent: list[Sent] = []
        self._before: Metrics = {}
        self._cpu_before: float | None = None

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[PlaitExchange]:
        sent = Sent(request.index, asyncio.get_running_loop().time())
        self._sent.append(sent)
        async with chat(self._server, request, sent) as exchange:
            yield exchange

    async def begin(self) -> None:
        self._sent.clear()
        self._cpu_before = await self._cpu_seconds()
        self._before = await self._server.metrics()

    async def account(self) -> Account:
        """Raises BenchError when the server does not come to rest."""
        after = await self._rest()
        cpu = await self._cpu_seconds()
        told = Account("its metrics", busy_seconds=self._grown(after, "engine_busy_seconds"))
        if cpu is not None and self._cpu_before is not None:
            told.cpu_seconds = cpu - self._cpu_before
        if self._log is None:
            self._account_by_metrics(told, after)
        else:
            told.source = "its own log"
            entries = await self._log.settled([sent.session for sent in self._sent])
            _account_by_log(told, self._sent, entries)
        return told

    async def _rest(self) -> Metrics:
        """Metrics once no slot is taken and nothing waits. A scrape is how a server is asked."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                while True:
                    metrics = await self._server.metrics()
                    gauges = ("slots_used", "streams_active", "streams_queued")
                    if not any(_sum(metrics, f"plait_{gauge}") for gauge in gauges):
                        return metrics
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise BenchError(
                f"{self._server.url} still works after {IDLE_SECONDS:g} s; does somebody else "
                "use it?"
            ) from error

    def _account_by_metrics(self, told: Account, after: Metrics) -> None:
        told.dead_seconds = self._grown(after, "engine_dead_seconds")
        left = [sent for sent in self._sent if sent.left is not None]
        decoded = self._grown(after, "tokens") + self._grown(after, "wasted_tokens")
        if left:
            received = sum(sent.received for sent in self._sent)
            told.mean_after = max(0.0, decoded - received) / len(left)
        for sent in self._sent:
            if sent.started is not None:
                told.queue_waits[sent.index] = sent.started - sent.at

    def _grown(self, after: Metrics, counter: str) -> float:
        name = f"plait_{counter}_total"
        return _sum(after, name) - _sum(self._before, name)

    async def _cpu_seconds(self) -> float | None:
        workers = await self._server.workers_cpu_seconds()
        if workers is None:
            return None
        return workers + (await self._server.cpu_seconds())[0]


def _sum(metrics: Metrics, name: str) -> float:
    return sum(value for (sample, _), value in metrics.items() if sample == name)


def _account_by_log(told: Account, requests: list[Sent], entries: Mapping[str, Entry]) -> None:
    told.decoded_after, told.prefilled_after = {}, {}
    for sent in requests:
        line = entries[sent.session].cost
        if line is not None:
            told.spans[sent.index] = Span(
                line.started_at,
                line.released_at,
                line.usage.get("completion_tokens", 0) + line.wasted,
                line.usage.get("prompt_tokens", 0),
                tuple(line.wasted_prompt),
            )
            if line.started_at is not None:
                told.queue_waits[sent.index] = max(0.0, line.started_at - sent.at)
        if sent.left is not None:
            span = told.spans.get(sent.index)
            decoded, prompt = (0, 0) if span is None else (span.decoded, sum(span.chunks_after))
            told.decoded_after[sent.index] = max(0, decoded - sent.received)
            told.prefilled_after[sent.index] = prompt
    told.dead_seconds = engine_seconds(
        told.spans,
        {
            sent.index: (sent.left, span.released_at)
            for sent in requests
            if sent.left is not None
            and (span := told.spans.get(sent.index)) is not None
            and span.released_at > sent.left
        },
    )


@contextlib.asynccontextmanager
async def open_own(
    engine: str, name: str, slots: int, context_tokens: int, max_tokens: int
) -> AsyncIterator[PlaitTarget]:
    """A server of our own. Raises BenchError when it does not come up."""
    log = PlaitLog()
    server = own_server(
        engine,
        log.take,
        slots=slots,
        context_tokens=context_tokens,
        max_tokens=max_tokens,
        queue_timeout_seconds=3600,  # a slow machine is no reason to refuse anybody
        log_level="debug",
    )
    async with server as running:
        yield PlaitTarget(name, running, log)
