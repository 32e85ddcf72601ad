"""Many connections that mix all methods, and leave in every way there is; what each one was told.

A connection keeps a book of every stream: frames after a terminal, a gap in the seqs or a second
terminal fail where they are read. Streams are left to their end, cancelled at a random moment, or
lost with their connection, which closes or is reset. Does NOT look into the server.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import msgspec

from plait.engines.scripted.hearing import WORDS, recite
from plait.wire.codec import decode_binary
from tests.live.peer import Peer, opening, peer

STREAMS_AT_ONCE = 4  # per connection
MOST_TEXTS = 20  # of one embedding: a real model takes some milliseconds for each
CANCELLED_SHARE = 0.3
HANG_UP_SHARE = 0.15  # of connections
LATEST_SECONDS = 0.2  # into a stream's life, for a cancel or a hang-up
PATIENCE_SECONDS = 120.0  # for the last terminal of a connection
HEARD = recite(" ".join(WORDS[:12]))
TERMINALS = ("done", "cancelled", "error")

Opening = Callable[[Peer, int, random.Random, int], Awaitable[bool]]
"""Opens a stream of that id and window, with its input; False: it ends by a cancel only."""


@dataclass(slots=True)
class Life:
    """One stream as its client saw it."""

    method: str
    accepted: bool = False
    rejected: bool = False
    seq: int = 0
    terminal: str | None = None

    @property
    def over(self) -> bool:
        return self.rejected or self.terminal is not None


@dataclass(slots=True)
class Book:
    """Of one connection."""

    lives: dict[int, Life] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return all(life.over for life in self.lives.values())

    def take(self, frame: str | bytes) -> tuple[int, int] | None:
        """(id, seq) of an item, to be acknowledged. Asserts what the protocol promises."""
        if isinstance(frame, bytes):
            header = decode_binary(frame)
            return self._take_item(header.id, header.seq)
        message = msgspec.json.decode(frame)
        life = self.lives.get(message.get("id", 0))
        if life is None:
            assert message["type"] in ("pong", "goaway"), message
            return None
        assert not life.over, (life, message)
        if message["type"] == "item":
            return self._take_item(message["id"], message["seq"])
        if message["type"] == "accepted":
            life.accepted = True
        elif message["type"] == "rejected":
            assert not life.accepted
            life.rejected = True
        elif message["type"] in TERMINALS:
            self._end(life, message)
        return None

    def _take_item(self, id: int, seq: int) -> tuple[int, int]:
        life = self.lives[id]
        assert life.accepted, life
        assert not life.over, life
        assert seq == life.seq + 1, (life, seq)
        life.seq = seq
        return id, seq

    def _end(self, life: Life, message: dict[str, Any]) -> None:
        assert life.accepted, life
        assert message["type"] != "error", message
        assert message["seq"] == life.seq, (life, message)
        life.terminal = message["type"]


async def open_chat(client: Peer, id: int, rng: random.Random, window: int) -> bool:
    prompt = f"tokens={rng.randint(0, 60)} step_ms=2 Tell story {rng.random()}."
    await client.say(opening(id, prompt, window=window))
    return True


async def open_transcription(client: Peer, id: int, rng: random.Random, window: int) -> bool:
    await client.transcribe(id, window=window)
    await client.send_audio(id, HEARD[: rng.randrange(0, len(HEARD), 6400)])
    ends = rng.random() < 0.8
    if ends:
        await client.say({"type": "end", "id": id})
    return ends


async def open_synthesis(client: Peer, id: int, rng: random.Random, window: int) -> bool:
    text = f"step_ms=2 word_ms=20 {'One two three. ' * rng.randint(1, 12)}"
    if rng.random() < 0.5:
        await client.speak(id, text, window=window)
        return True
    await client.speak(id, window=window)
    await client.say({"type": "input", "id": id, "text": text}, {"type": "end", "id": id})
    return True


async def open_embedding(client: Peer, id: int, rng: random.Random, window: int) -> bool:
    texts = ["step_ms=2", *(f"text {rng.random()}" for _ in range(rng.randint(0, MOST_TEXTS)))]
    given: dict[str, Any] = {"texts": texts} if rng.random() < 0.5 else {}
    if rng.random() < 0.3:
        given["encoding"] = "json"
    fields = {"method": "embed", "params": given, "window": window}
    await client.say({"type": "open", "id": id} | fields)
    if "texts" not in given:
        await client.say({"type": "input", "id": id, "texts": texts}, {"type": "end", "id": id})
    return True


OPENINGS: dict[str, Opening] = {
    "chat": open_chat,
    "transcribe": open_transcription,
    "synthesize": open_synthesis,
    "embed": open_embedding,
}


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
        method = self._rng.choice(list(OPENINGS))
        self.book.lives[id] = Life(method)
        window = self._windows[id] = self._rng.choice((0, 1, 4, 64))
        ends = await OPENINGS[method](self._client, id, self._rng, window)
        if not ends or self._rng.random() < CANCELLED_SHARE:
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
            ends["rejected" if life.rejected else life.terminal or "lost"] += 1
    return ends
