"""One client's visit: it connects, opens some streams, reads them its own way, and leaves its way.

Streams are read to their end, cancelled at a random moment, acknowledged late or sent nonsense;
reading pauses; the connection stays to the end, is closed, or is lost by FIN or RST. What a server
may not do is `Broken`. Does NOT know what is asked (see `asking`) nor who counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import json
import random
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

import websockets
from websockets.asyncio.client import ClientConnection

from plait.bench.serving import BenchError, Server
from plait.bench.soak.asking import GARBAGE, Asking, Frame, bad_message
from plait.bench.soak.books import Book, Broken, Life

Leaving = Literal["stays", "closes", "fin", "rst", "garbage"]
LEAVINGS: dict[Leaving, int] = {"stays": 75, "closes": 7, "fin": 7, "rst": 7, "garbage": 4}

MOST_STREAMS = 4  # of one visit
WINDOWS = (0, 1, 4, 64)
CANCELLED_SHARE, BAD_OPENING_SHARE, BAD_MESSAGE_SHARE = 0.3, 0.08, 0.05
LATE_SHARE, PAUSING_SHARE = 0.2, 0.15  # of streams acknowledged late; of visits that stop reading
LATEST_SECONDS = 0.5  # into a stream's life, for a cancel, a bad message or a leaving
LATE_SECONDS = 2.5  # longest wait of an ack: a paused stream yields its slot after 1 s
PAUSE_SECONDS = 1.5
PATIENCE_SECONDS = 120.0  # with a server that says nothing; longer than any queue's time-out
WELCOME_SECONDS = 20.0


class Link:
    """A connection as its client's socket has it, and every way to lose it."""

    def __init__(self, ws: ClientConnection, welcome: dict[str, Any]) -> None:
        self.ws = ws
        self.welcome = welcome

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            await self.ws.send(frame)

    async def say(self, type: str, id: int, **fields: int) -> None:
        await self.ws.send(json.dumps({"type": type, "id": id} | fields))

    def finish(self) -> None:
        """FIN without a close frame, as when a process ends."""
        self.ws.transport.close()

    def reset(self) -> None:
        """RST, as when it is killed with unread data."""
        sock: socket.socket = self.ws.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.ws.transport.abort()


@contextlib.asynccontextmanager
async def linked(server: Server) -> AsyncIterator[Link]:
    """Welcomed, and closed at the end of the block. Raises BenchError when it cannot connect."""
    try:
        ws = await websockets.connect(
            server.ws_url,
            additional_headers=server.headers,
            subprotocols=[websockets.Subprotocol("plait.v1")],
            compression=None,
            close_timeout=1,
        )
    except (OSError, TimeoutError, websockets.InvalidHandshake) as error:
        raise BenchError(f"{server.typed or server.url} takes no connection: {error}") from error
    try:
        yield Link(ws, await _welcome(ws))
    finally:
        await ws.close()


async def _welcome(ws: ClientConnection) -> dict[str, Any]:
    try:
        async with asyncio.timeout(WELCOME_SECONDS):
            welcome: dict[str, Any] = json.loads(await ws.recv())
    except (TimeoutError, websockets.ConnectionClosed) as error:
        raise BenchError(f"a connection was not welcomed: {str(error) or 'not a word'}") from error
    return welcome


@dataclass(frozen=True, slots=True, order=True)
class _Due:
    at: float
    number: int
    what: Literal["ack", "cancel", "bad"]
    id: int


class Visit:
    """Over a link; `book` tells afterwards how its streams ended."""

    def __init__(self, link: Link, asking: Asking, rng: random.Random) -> None:
        self.book = Book()
        self.leaving = rng.choices(list(LEAVINGS), list(LEAVINGS.values()))[0]
        self._link = link
        self._asking = asking
        self._rng = rng
        self._due: list[_Due] = []
        self._numbers = itertools.count()
        self._windows: dict[int, int] = {}
        self._late: set[int] = set()
        self._ack_due: set[int] = set()
        self._heard_at = monotonic()

    async def run(self) -> None:
        """Raises Broken."""
        try:
            for id in range(1, 1 + self._rng.randint(1, MOST_STREAMS)):
                await self._open(id)
            if self.leaving == "stays":
                await self._stay()
            else:
                await self._read_until(monotonic() + self._rng.uniform(0, LATEST_SECONDS))
                await self._leave()
        except websockets.ConnectionClosed as closed:
            raise Broken(f"the server closed a connection it had no reason to: {closed}") from None

    async def hurry(self) -> None:
        """Nobody wants the answers any more: cancel what still runs."""
        with contextlib.suppress(websockets.ConnectionClosed):
            for id, life in self.book.lives.items():
                if not life.over:
                    await self._link.say("cancel", id)

    async def _open(self, id: int) -> None:
        rng, window = self._rng, self._rng.choice(WINDOWS)
        if rng.random() < BAD_OPENING_SHARE:
            method, asked = self._asking.bad_opening(id, rng)
        else:
            method, asked = self._asking.opening(id, window, rng)
        self.book.lives[id] = Life(method)
        self._windows[id] = window
        if window > 1 and rng.random() < LATE_SHARE:
            self._late.add(id)
        await self._link.send(*asked.frames)
        now = monotonic()
        if rng.random() < BAD_MESSAGE_SHARE:
            self._plan(now + rng.uniform(0, LATEST_SECONDS), "bad", id)
        if not asked.ends or rng.random() < CANCELLED_SHARE:
            self._plan(now + rng.uniform(0, LATEST_SECONDS), "cancel", id)

    async def _stay(self) -> None:
        if self._rng.random() < PAUSING_SHARE:
            await self._read_until(monotonic() + self._rng.uniform(0, LATEST_SECONDS))
            await asyncio.sleep(self._rng.uniform(0, PAUSE_SECONDS))  # nothing is read meanwhile
        while not self.book.over:
            await self._read_until(self._heard_at + PATIENCE_SECONDS)
            if monotonic() >= self._heard_at + PATIENCE_SECONDS:
                open_ = {id: life for id, life in self.book.lives.items() if not life.over}
                raise Broken(f"not a word for {PATIENCE_SECONDS:g} s: {open_}")

    async def _leave(self) -> None:
        if self.leaving == "fin":
            self._link.finish()
        elif self.leaving == "rst":
            self._link.reset()
        elif self.leaving == "garbage":
            await self._link.send(self._rng.choice(GARBAGE))
            await self._hear_close()

    async def _hear_close(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    self.book.take(await self._link.ws.recv())
        except websockets.ConnectionClosed:
            if self._link.ws.close_code != 4400:
                code = self._link.ws.close_code
                raise Broken(f"a frame of no stream closed the socket with {code}") from None
        except TimeoutError:
            raise Broken("a frame of no stream did not close the socket") from None

    async def _read_until(self, moment: float) -> None:
        """Or until every stream is over; does on the way what is due."""
        while not self.book.over and monotonic() < moment:
            wake = min(moment, self._due[0].at) if self._due else moment
            try:
                async with asyncio.timeout(max(0.0, wake - monotonic())):
                    frame = await self._link.ws.recv()
            except TimeoutError:
                await self._do_due()
                continue
            self._heard_at = monotonic()
            item = self.book.take(frame)
            if item is not None:
                await self._acknowledge(*item)

    async def _acknowledge(self, id: int, seq: int) -> None:
        if id in self._late:
            if id not in self._ack_due:
                self._ack_due.add(id)
                self._plan(monotonic() + self._rng.uniform(0, LATE_SECONDS), "ack", id)
        elif self._windows[id]:
            await self._link.say("ack", id, seq=seq)

    async def _do_due(self) -> None:
        now = monotonic()
        while self._due and self._due[0].at <= now:
            due = heapq.heappop(self._due)
            if due.what == "ack":
                self._ack_due.discard(due.id)
                await self._link.say("ack", due.id, seq=self.book.lives[due.id].seq)
            elif due.what == "cancel":
                await self._link.say("cancel", due.id)
            else:
                await self._link.send(bad_message(due.id, self._rng))

    def _plan(self, at: float, what: Literal["ack", "cancel", "bad"], id: int) -> None:
        heapq.heappush(self._due, _Due(at, next(self._numbers), what, id))
