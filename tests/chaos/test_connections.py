"""Connections that are reset, flooded or offered what is not negotiated, by the hundred."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest
from websockets.asyncio.client import connect

from plait.descriptors import allow_connections
from tests.chaos.raw import handshake, raw_peer, text, trickle
from tests.chaos.rig import bystander, unharmed
from tests.chaos.sizes import IDLE_SOCKETS, OPENS_PER_CONNECTION, RESETS, SEEDS, TEST_SECONDS
from tests.live.peer import Peer, opening, peer
from tests.live.server import LiveServer, live_server

pytestmark = pytest.mark.timeout(TEST_SECONDS)

LONG = "tokens=100000 step_ms=5"
AT_ONCE = 16
PAIRS_AT_ONCE = 32
IDLE_BYTES = 64 * 1024  # of a connection, deflate offered or not; with it, zlib alone took 60 KiB


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(embed="scripted", slots=4, opens_per_second=5000) as running:
        yield running


@pytest.fixture(scope="module")
def strict() -> Iterator[LiveServer]:
    """Five opens a second, ten in a burst; 200 messages in one are a flood."""
    with live_server(opens_per_second=5) as running:
        yield running


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_storm_of_resets_at_any_moment_is_noticed_by_nobody(
    server: LiveServer, seed: int
) -> None:
    rng = random.Random(seed)
    async with unharmed(server), bystander(server, "chat"), bystander(server, "embed"):
        for _ in range(0, RESETS, AT_ONCE):
            seeds = [rng.random() for _ in range(AT_ONCE)]
            await asyncio.gather(*(be_reset(server, random.Random(one)) for one in seeds))


async def be_reset(server: LiveServer, rng: random.Random) -> None:
    """A connection that gets so far, with so many streams, and vanishes."""
    async with raw_peer(server.port) as client:
        whole = handshake(server.port)
        if rng.random() < 0.3:
            client.send(whole[: rng.randrange(len(whole))])
        else:
            client.send(whole)
            if rng.random() < 0.8:
                await client.read_head()
                streams = [opening(id, LONG, window=0) for id in range(1, rng.randint(1, 6))]
                said = b"".join(text(json.dumps(stream)) for stream in streams)
                await trickle(client, said[: rng.randint(0, len(said))], rng, 0.001)
                await asyncio.sleep(rng.uniform(0, 0.05))
        client.reset()


async def test_opens_and_cancels_paced_by_their_answers_are_all_answered(
    server: LiveServer,
) -> None:
    async with unharmed(server), bystander(server), peer(server.ws_url) as client:
        ends: Counter[str] = Counter()
        for begin in range(1, OPENS_PER_CONNECTION, PAIRS_AT_ONCE):
            ids = range(begin, begin + PAIRS_AT_ONCE)
            ends += await open_and_cancel(client, ids)
    assert set(ends) == {"cancelled"}, ends
    assert ends.total() >= OPENS_PER_CONNECTION


async def open_and_cancel(client: Peer, ids: range) -> Counter[str]:
    for id in ids:
        await client.open(id, LONG)
        await client.say({"type": "cancel", "id": id})
    ends = await client.hear_terminals(*ids)
    return Counter(end["type"] for end in ends.values())


async def test_opens_above_the_rate_are_refused_and_what_was_taken_still_ends(
    strict: LiveServer,
) -> None:
    ids = range(1, 51)
    async with (
        unharmed(strict),
        bystander(strict, pause_seconds=0.5),
        peer(strict.ws_url) as client,
    ):
        await client.say(*(json.dumps(opening(id, LONG)) for id in ids))
        await client.say(*({"type": "cancel", "id": id} for id in ids))
        ends = await client.hear_terminals(*ids)
    told = Counter(end.get("error", end).get("code", end["type"]) for end in ends.values())
    assert set(told) == {"rate_limited", "cancelled"}, told
    assert told["cancelled"] >= 10


async def test_a_flood_of_opens_and_cancels_closes_4429_and_harms_nobody(
    strict: LiveServer,
) -> None:
    pairs = (
        text(json.dumps(opening(id, LONG))) + text(json.dumps({"type": "cancel", "id": id}))
        for id in range(1, 3_001)
    )
    async with (
        unharmed(strict),
        bystander(strict, pause_seconds=0.5),
        raw_peer(strict.port) as flood,
    ):
        flood.send(handshake(strict.port))
        await flood.read_head()
        flood.send(b"".join(pairs))
        await flood.read_until((4429).to_bytes(2))  # nor does it reply to the close


async def test_compression_is_offered_in_vain_and_idle_sockets_stay_cheap(
    server: LiveServer,
) -> None:
    allow_connections(IDLE_SOCKETS)  # this process too has a limit of descriptors
    async with unharmed(server), bystander(server), contextlib.AsyncExitStack() as crowd:
        before = resident_bytes(server)
        for _ in range(IDLE_SOCKETS):
            ws = await crowd.enter_async_context(
                connect(server.ws_url, subprotocols=["plait.v1"], compression="deflate")  # type: ignore[list-item]
            )
            assert ws.response is not None
            assert "Sec-WebSocket-Extensions" not in ws.response.headers
        grown = resident_bytes(server) - before
    assert grown < IDLE_SOCKETS * IDLE_BYTES


def resident_bytes(server: LiveServer) -> int:
    resident: int = psutil.Process(server.process.pid).memory_info().rss
    return resident
