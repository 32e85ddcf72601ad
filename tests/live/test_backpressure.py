"""Slow readers cost themselves: engines pause, memory stays flat, others run at full speed."""

from __future__ import annotations

import asyncio
import os
import time

import psutil
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.frames import Frame, Opcode
from websockets.protocol import Event

from tests.live.peer import Peer, peer
from tests.live.server import LiveServer, live_server

ENDLESS = "tokens=1000000 burst=4 step_ms=1"
MIB = 1024 * 1024
IDLE_SOCKETS = 1000 if os.environ.get("PLAIT_TEST_PROOF") == "full" else 250


def rss_bytes(server: LiveServer) -> int:
    rss: int = psutil.Process(server.process.pid).memory_info().rss
    return rss


async def hear_without_acking(client: Peer, streams: int) -> dict[int, list[str]]:
    """Read everything until each stream has its terminal."""
    heard: dict[int, list[str]] = {id: [] for id in range(1, streams + 1)}
    left = streams
    while left:
        message = await client.hear()
        heard[message["id"]].append(message["type"])
        left -= message["type"] == "cancelled"
        if message["type"] == "cancelled":
            assert message["by"] == "slow"
    return heard


@pytest.mark.slow
@pytest.mark.waits
async def test_a_peer_that_never_acks_is_paused_then_slow_while_others_run_at_full_speed() -> None:
    with live_server(slots=9, max_tokens=1 << 20, context_tokens=1 << 20) as server:
        async with peer(server.ws_url) as stuck, peer(server.ws_url) as other:
            for id in range(1, 9):
                await stuck.open(id, ENDLESS)
            listening = asyncio.create_task(hear_without_acking(stuck, 8))
            await asyncio.to_thread(
                server.wait_until,
                lambda: server.metric("plait_slots_used", model="scripted") == 0,
                30,
                "all eight paused and their slots yielded",
            )
            before = rss_bytes(server)
            begin = time.monotonic()
            await other.open(1, "tokens=5000 burst=4 step_ms=1")
            assert (await other.hear_terminals(1))[1]["type"] == "done"
            assert time.monotonic() - begin < 20
            heard = await asyncio.wait_for(listening, 40)
            assert rss_bytes(server) - before < 16 * MIB
        assert {types.count("item") for types in heard.values()} == {64}
        await asyncio.to_thread(server.wait_idle)


async def test_a_reader_that_comes_back_gets_every_item_in_order(server: LiveServer) -> None:
    async with peer(server.ws_url) as client:
        await client.open(1, "tokens=300 burst=10", window=8)
        seqs: list[int] = []
        while (message := await client.hear())["type"] != "done":
            if message["type"] == "item":
                seqs.append(message["seq"])
                if message["seq"] % 2 == 0:  # a quarter of the window, as the protocol asks
                    await client.say({"type": "ack", "id": 1, "seq": message["seq"]})
        assert seqs == list(range(1, 301))
        assert message["timing"]["paused_ms"] > 0


@pytest.mark.slow
async def test_idle_connections_are_cheap() -> None:
    with live_server() as server:
        async with peer(server.ws_url):
            before = rss_bytes(server)
            peers = [peer(server.ws_url, compression="deflate") for _ in range(IDLE_SOCKETS)]
            opened = [await each.__aenter__() for each in peers]
            each_bytes = (rss_bytes(server) - before) / len(opened)
            await asyncio.gather(*(each.__aexit__(None, None, None) for each in peers))
        assert each_bytes < 100_000


class Watching(ClientConnection):
    """A client that notes the server's pings, which the library answers by itself."""

    pinged: asyncio.Event

    def process_event(self, event: Event) -> None:
        if isinstance(event, Frame) and event.opcode is Opcode.PING:
            self.pinged.set()
        super().process_event(event)


@pytest.mark.slow
@pytest.mark.waits
async def test_a_silent_engine_is_bridged_by_pings_within_a_proxys_patience(
    server: LiveServer,
) -> None:
    Watching.pinged = asyncio.Event()
    async with peer(server.ws_url, create_connection=Watching, ping_interval=None) as client:
        await client.open(1, "tokens=10 prefill_steps=10000000 step_ms=50")
        await client.hear_until("started")
        await asyncio.wait_for(Watching.pinged.wait(), 15)
        await client.say({"type": "cancel", "id": 1})
        assert (await client.hear_until("cancelled", 1))["by"] == "client"
