"""Hostile clients over real sockets: answered as PROTOCOL.md §6 says, noticed by nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from tests.chaos.fuzzing import Fuzz
from tests.chaos.rig import bystander, unharmed
from tests.chaos.sizes import FUZZED_CONNECTIONS, SEEDS, TEST_SECONDS
from tests.live.peer import TERMINALS, Peer, peer
from tests.live.server import LiveServer, live_server

pytestmark = pytest.mark.timeout(TEST_SECONDS)

AT_ONCE = 8
FRAMES = 60  # of a connection, unless one of them closes it
PATIENCE_SECONDS = 60.0
LAST_PING = 2**53 - 1
# 1002: what is no frame at all (RFC 6455); 1006: the reset that follows overtook the reason.
OURS = {1002, 1006, 1007, 1009, 4400}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server("scripted", "scripted", "scripted", "scripted", slots=8) as running:
        yield running


@pytest.mark.parametrize("seed", SEEDS)
async def test_hostile_clients_are_answered_by_the_book_and_noticed_by_nobody(
    server: LiveServer, seed: int
) -> None:
    rng = random.Random(seed)
    closes: Counter[int | None] = Counter()
    async with unharmed(server), bystander(server, "chat"), bystander(server, "embed"):
        for _ in range(0, FUZZED_CONNECTIONS, AT_ONCE):
            seeds = [rng.random() for _ in range(AT_ONCE)]
            closes.update(await asyncio.gather(*(attack(server, one) for one in seeds)))
    assert closes[4400] > 0, closes


async def attack(server: LiveServer, seed: float) -> int | None:
    """Its close code, None where the server had no reason to close."""
    async with (
        peer(server.ws_url, max_size=None) as client,
        asyncio.timeout(PATIENCE_SECONDS),
        asyncio.TaskGroup() as tasks,
    ):
        heard = Heard(client)
        hearing = tasks.create_task(heard.run())
        fuzz = Fuzz(random.Random(seed))
        fates = await shout(client, fuzz)
        if "closes" not in fates and await finish(client, heard):
            hearing.cancel()
        code = await hear_close(hearing, client)
        assert code in OURS | {None}, (seed, code, client.ws.close_reason)
        assert code is None or fates != {"stays"}, (seed, code, client.ws.close_reason)
        if code is None:
            assert fuzz.opened <= heard.answered, (seed, fuzz.opened - heard.answered)
            assert heard.accepted == heard.ended, (seed, heard.accepted ^ heard.ended)
    return code


async def shout(client: Peer, fuzz: Fuzz) -> set[str]:
    """Until enough is said, or the connection is closed; what fates there were."""
    fates: set[str] = set()
    for _ in range(FRAMES):
        said = fuzz.next()
        fates.add(said.fate)
        client.ws.transport.write(said.data)
        await asyncio.sleep(0)
        if said.fate == "closes" or client.ws.state is not State.OPEN:
            break
    return fates


async def finish(client: Peer, heard: Heard) -> bool:
    """Whether everything it said is read, and everything that lived is cancelled and over."""
    with contextlib.suppress(ConnectionClosed):
        await client.say({"type": "ping", "n": LAST_PING})
        await heard.wait_for(lambda: LAST_PING in heard.pongs)
        await client.say(*({"type": "cancel", "id": id} for id in heard.accepted - heard.ended))
        await heard.wait_for(lambda: heard.accepted == heard.ended)
        return not heard.closed
    return False


async def hear_close(hearing: asyncio.Task[None], client: Peer) -> int | None:
    """None where we stopped listening first."""
    await asyncio.wait([hearing])
    return None if hearing.cancelled() else client.ws.close_code


class Heard:
    """What the server said on one connection; asserts the guarantees of PROTOCOL.md §2."""

    def __init__(self, client: Peer) -> None:
        self.accepted: set[int] = set()
        self.ended: set[int] = set()
        self.answered: set[int] = set()
        self.pongs: set[int] = set()
        self.closed = False
        self._client = client
        self._more = asyncio.Event()

    async def run(self) -> None:
        """Until the close."""
        try:
            while True:
                self._take(await self._client.hear())
                self._more.set()
        except ConnectionClosed:
            self.closed = True
            self._more.set()

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        while not condition() and not self.closed:
            self._more.clear()
            await self._more.wait()

    def _take(self, message: dict[str, Any]) -> None:
        id = message.get("id", 0)
        if message["type"] == "pong":
            self.pongs.add(message["n"])
        elif message["type"] == "rejected":
            self.answered.add(id)  # and nothing of a stream of that id that lives
        elif message["type"] != "welcome":
            assert id not in self.ended, message
            if message["type"] == "accepted":
                self.accepted.add(id)
                self.answered.add(id)
            assert id in self.accepted, message
            if message["type"] in TERMINALS:
                self.ended.add(id)
