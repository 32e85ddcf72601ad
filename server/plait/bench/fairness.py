"""First tokens of short chats, alone and beside a flood of long ones of somebody else, in pairs.

The flood comes over a connection of its own (another app, where apps are declared), keeps more
chats open than there are slots, each with a long prompt and a long answer, and opens the next one
when one ends. The short chats come one after the other, so each waits for nothing but the flood.
Does NOT judge the figures (see `fairness_report`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import monotonic

from plait.bench import prompts
from plait.bench.figures import Spread
from plait.bench.serving import BenchError, Server
from plait.client import Client, Stream, connect
from plait.errors import QueueTimeout
from plait.wire.messages import Done

Advance = Callable[[int], None]

SHORT_TOKENS = 8
LONG_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Plan:
    """`rounds` pairs of `chats` short chats; `flood` long ones of `words` words on `slots`."""

    engine: str
    slots: int
    flood: int
    words: int
    rounds: int
    chats: int


@dataclass(slots=True)
class Pair:
    """Milliseconds from the open to the first item, of each short chat."""

    alone_ms: list[float] = field(default_factory=list)
    beside_ms: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Of the p95s."""
        alone, beside = Spread.of(self.alone_ms), Spread.of(self.beside_ms)
        assert alone is not None
        assert beside is not None
        return beside.p95 / alone.p95


@dataclass(slots=True)
class Result:
    """`flood_tokens` came in `flood_seconds`, while the short chats were timed."""

    pairs: list[Pair] = field(default_factory=list)
    flood_tokens: int = 0
    flood_seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """Median over the pairs: what else the machine does falls on both sides of one."""
        return median(pair.ratio for pair in self.pairs)

    @property
    def alone_ms(self) -> Spread | None:
        return Spread.of(ms for pair in self.pairs for ms in pair.alone_ms)

    @property
    def beside_ms(self) -> Spread | None:
        return Spread.of(ms for pair in self.pairs for ms in pair.beside_ms)

    @property
    def flood_tokens_per_second(self) -> float:
        return self.flood_tokens / self.flood_seconds if self.flood_seconds else 0.0


async def measure(server: Server, plan: Plan, advance: Advance) -> Result:
    """`advance(1)` after each short chat. Raises BenchError, and what ends a chat."""
    run = _Run(plan, advance)
    async with connect(server.ws_url) as visitor, connect(server.ws_url) as hog:
        await run.short(visitor)  # the first ever pays for what others find ready
        for number in range(plan.rounds):
            pair = Pair()
            # They take turns at going first, as caches and clocks are warmer for the second.
            for beside in (False, True) if number % 2 == 0 else (True, False):
                if not beside:
                    pair.alone_ms = await run.shorts(visitor)
                    continue
                async with run.flooding(hog):
                    pair.beside_ms = await run.shorts(visitor)
            run.result.pairs.append(pair)
    return run.result


class _Run:
    """One numbering, so that no prompt comes twice."""

    def __init__(self, plan: Plan, advance: Advance) -> None:
        self.result = Result()
        self._plan = plan
        self._advance = advance
        self._numbers: Iterator[int] = itertools.count(1)
        self._counting = False

    async def shorts(self, client: Client) -> list[float]:
        times = []
        for _ in range(self._plan.chats):
            times.append(await self.short(client))
            self._advance(1)
        return times

    async def short(self, client: Client) -> float:
        messages = prompts.story(next(self._numbers), engine=self._plan.engine, tokens=SHORT_TOKENS)
        begin = monotonic()
        async with self._open(client, messages, SHORT_TOKENS) as stream:
            first = (await anext(stream)).at
            await stream.collect()
        if not isinstance(stream.terminal, Done):
            raise BenchError("a short chat was not answered")
        return 1000 * (first - begin)

    @contextlib.asynccontextmanager
    async def flooding(self, client: Client) -> AsyncIterator[None]:
        """Once all slots are taken, and until the block is left; then it is cancelled."""
        busy = asyncio.Semaphore(0)
        async with asyncio.TaskGroup() as tasks:
            lanes = [tasks.create_task(self._flood(client, busy)) for _ in range(self._plan.flood)]
            for _ in range(min(self._plan.slots, self._plan.flood)):
                await busy.acquire()
            begin, self._counting = monotonic(), True
            try:
                yield
            finally:
                self.result.flood_seconds += monotonic() - begin
                self._counting = False
                for lane in lanes:
                    lane.cancel()

    async def _flood(self, client: Client, busy: asyncio.Semaphore) -> None:
        while True:
            number, words = next(self._numbers), self._plan.words
            messages = prompts.long_prompt(number, words, engine=self._plan.engine)
            # There are more of them than slots: on a slow engine some wait longer than they may.
            with contextlib.suppress(QueueTimeout):
                async with self._open(client, messages, LONG_TOKENS) as stream:
                    await stream.wait_started()
                    busy.release()
                    async for _ in stream:
                        self.result.flood_tokens += self._counting

    def _open(self, client: Client, messages: list[dict[str, object]], tokens: int) -> Stream:
        return client.open("chat", {"messages": messages, "max_tokens": tokens, "temperature": 0})
