"""A mixed load that goes on while its workers die: every stream gets its one terminal all the same.

The streams are those of the soak; here they may fail, with an error that says so and may be tried
again. A connection is never lost by the death of a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from tests.live.peer import peer
from tests.live.server import LiveServer
from tests.proofs.soak_rig import Book, Conversation, Life

LANES = 4


class HardBook(Book):
    """Of a connection whose workers may die."""

    def _end(self, life: Life, message: dict[str, Any]) -> None:
        if message["type"] != "error":
            super()._end(life, message)
            return
        assert life.accepted, life
        assert message["seq"] == life.seq, (life, message)
        assert message["error"]["code"] == "engine_crashed", message
        assert message["error"]["retryable"], message
        life.terminal = "error"


class Load:
    """So many connections at a time, one after the other; `ends` is how their streams ended."""

    def __init__(self, url: str, seed: int) -> None:
        self.ends: Counter[str] = Counter()
        self.over = False
        self._url = url
        self._seed = seed

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for lane in range(LANES):
                tasks.create_task(self._run_lane(random.Random(1000 * self._seed + lane)))

    async def _run_lane(self, rng: random.Random) -> None:
        while not self.over:
            async with peer(self._url) as client:
                conversation = Conversation(client, rng)
                conversation.book = HardBook()
                await conversation.run()
            for life in conversation.book.lives.values():
                self.ends["rejected" if life.rejected else life.terminal or "lost"] += 1


@contextlib.asynccontextmanager
async def mixed_load(server: LiveServer, seed: int) -> AsyncIterator[Load]:
    """For as long as the block, and until its last connection has all its terminals."""
    load = Load(server.ws_url, seed)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(load.run())
        yield load
        load.over = True
