"""Many connections that mix all methods, and leave in every way there is; what each one was told.

The books and the openings are those of `plait bench soak`, but here an error is a failure, too.
Streams are left to their end, cancelled at a random moment, or lost with their connection, which
closes or is reset. Does NOT look into the server.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from time import monotonic
from typing import Any

from plait.bench.soak import books
from plait.bench.soak.asking import METHODS, Asking
from plait.bench.soak.books import Life as Life
from tests.live.peer import Peer, peer

STREAMS_AT_ONCE = 4  # per connection
CANCELLED_SHARE = 0.3
HANG_UP_SHARE = 0.15  # of connections
LATEST_SECONDS = 0.2  # into a stream's life, for a cancel or a hang-up
PATIENCE_SECONDS = 120.0  # for the last terminal of a connection
ASKING = Asking(dict.fromkeys(METHODS, True))  # real embedders take a script for a text, too


class Book(books.Book):
    """Of a connection where no stream may fail."""

    def _end(self, life: Life, message: dict[str, Any]) -> None:
        assert message["type"] != "error", message
        super()._end(life, message)


class Conversation:
    """One connection's streams, from their opens to its end."""

    def __init__(self, client: Peer, rng: random.Random) -> None:
        self.book = Book()
        self._client = client
        self._rng = rng
        self._cancels: dict[int, float] = {}  # ids, and when
        self._windows: dict[int, int] = {}

    async def run(self) -> None:
        hangs_up = self._rng.random() < HANG_UP_SHARE
        for id in range(1, 1 + self._rng.randint(1, STREAMS_AT_ONCE)):
            await self._open(id)
        if hangs_up:
            await self._read_until(monotonic() + self._rng.uniform(0, LATEST_SECONDS))
            if self._rng.random() < 0.5:
                self._client.reset()
            return  # the block around us closes
        await self._read_until(monotonic() + PATIENCE_SECONDS)
        assert self.book.over, self.book

    async def _open(self, id: int) -> None:
        window = self._windows[id] = self._rng.choice((0, 1, 4, 64))
        method, asked = ASKING.opening(id, window, self._rng)
        self.book.lives[id] = Life(method)
        for frame in asked.frames:
            await self._client.ws.send(frame)
        if not asked.ends or self._rng.random() < CANCELLED_SHARE:
            self._cancels[id] = monotonic() + self._rng.uniform(0, LATEST_SECONDS)

    async def _read_until(self, moment: float) -> None:
        """Or until every stream is over. Acknowledges items, and cancels what is due."""
        while not self.book.over and monotonic() < moment:
            due = min([moment, *self._cancels.values()])
            try:
                async with asyncio.timeout(max(0.0, due - monotonic())):
                    frame = await self._client.ws.recv()
            except TimeoutError:
                await self._cancel_due()
                continue
            item = self.book.take(frame)
            if item is not None and self._windows[item[0]]:
                await self._client.say({"type": "ack", "id": item[0], "seq": item[1]})

    async def _cancel_due(self) -> None:
        now = monotonic()
        for id in [id for id, when in self._cancels.items() if when <= now]:
            del self._cancels[id]
            await self._client.say({"type": "cancel", "id": id})


async def converse(url: str, connections: int, rng: random.Random) -> Counter[str]:
    """So many connections one after the other: how their streams ended; "lost" with theirs."""
    ends: Counter[str] = Counter()
    for _ in range(connections):
        async with peer(url) as client:
            conversation = Conversation(client, rng)
            await conversation.run()
        for life in conversation.book.lives.values():
            ends[life.end] += 1
    return ends
