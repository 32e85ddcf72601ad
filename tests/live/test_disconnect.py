"""Losing the socket, in every way a socket can be lost, stops the work and frees everything."""

from __future__ import annotations

import asyncio
import json

import psutil
import pytest

from tests.live.peer import peer
from tests.live.server import LiveServer, live_server
from tests.live.stopped_reader import stopped_reader

LONG = "tokens=100000 step_ms=5"
PREFILL = "tokens=10 prefill_steps=100000 step_ms=5"


async def vanish_after(server: LiveServer, prompt: str, message: str) -> None:
    async with peer(server.ws_url) as client:
        await client.open(1, prompt)
        await client.hear_until(message)
        client.reset()


@pytest.mark.parametrize(("prompt", "message"), [(LONG, "item"), (PREFILL, "started")])
async def test_a_reset_in_decode_or_prefill_frees_the_slot(
    server: LiveServer, prompt: str, message: str
) -> None:
    await vanish_after(server, prompt, message)
    await asyncio.to_thread(server.wait_idle)


async def test_the_log_says_what_a_cancel_gave_back_and_what_it_cost() -> None:
    with live_server(log_level="debug") as server:
        for _ in range(5):  # a machine that stalls confirms one or another too late to be told
            await vanish_after(server, LONG, "item")
        server.wait_for_line('"stream": 1, .*"stream.started"')
        ended = json.loads(server.wait_for_line('^{.*"released": true.*"stream.ended".*}$')[0])

    assert ended["by"] == "disconnect"
    assert 0 <= ended["stop_ms"] < 1000
    assert ended["wasted"]["tokens"] >= 0


async def test_a_reset_while_queued_leaves_the_queue(server: LiveServer) -> None:
    async with peer(server.ws_url) as busy, peer(server.ws_url) as client:
        for id in range(1, 5):
            await busy.open(id, LONG)
        await client.open(1, LONG)
        await client.hear_until("accepted")
        client.reset()
        await asyncio.to_thread(
            server.wait_until,
            lambda: server.metric("plait_streams_queued", method="chat") == 0,
            10.0,
            "the queue place given back",
        )
    await asyncio.to_thread(server.wait_idle)


async def test_fifty_resets_leave_the_same_processes_and_a_bystander_unharmed(
    server: LiveServer,
) -> None:
    worker = server.worker.pid
    async with peer(server.ws_url) as bystander:
        await bystander.open(1, "tokens=200 step_ms=5", window=0)
        for _ in range(50):
            await vanish_after(server, LONG, "item")
        end = await bystander.hear_until("done")
    assert end["usage"]["completion_tokens"] == 200
    assert server.worker.pid == worker


async def test_sockets_closed_during_the_handshake_or_at_once_leave_no_traceback(
    server: LiveServer,
) -> None:
    for _ in range(50):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n")
        writer.transport.abort()
        async with peer(server.ws_url) as client:
            await client.open(1, LONG)
            client.reset()
    assert "Traceback" not in server.output


async def test_two_hundred_disconnects_leak_no_slot(server: LiveServer) -> None:
    for _ in range(50):
        await asyncio.gather(*(vanish_after(server, LONG, "item") for _ in range(4)))
    await asyncio.to_thread(server.wait_idle)
    async with peer(server.ws_url) as client:
        for id in range(1, 5):
            await client.open(id, "tokens=20")
        ends = await client.hear_terminals(1, 2, 3, 4)
    assert {end["type"] for end in ends.values()} == {"done"}


@pytest.mark.slow
@pytest.mark.waits
async def test_a_half_open_peer_is_freed_within_20_s_of_ping_and_time_out(
    server: LiveServer,
) -> None:
    async with stopped_reader(server.ws_url, "tokens=100000 step_ms=20"):
        took = await asyncio.to_thread(server.wait_idle, 60.0)
    assert took <= 30  # 20 s and what a busy machine adds


@pytest.mark.slow
@pytest.mark.waits
async def test_a_peer_that_stops_reading_tcp_ends_by_ping_time_out_with_flat_memory() -> None:
    with live_server(slots=8, max_tokens=1 << 20, context_tokens=1 << 20) as server:
        before = server_rss(server)
        async with stopped_reader(server.ws_url, *["tokens=100000000 burst=50"] * 8):
            await asyncio.to_thread(server.wait_idle, 60.0)
        assert server_rss(server) - before < 64 * 1024 * 1024


def server_rss(server: LiveServer) -> int:
    rss: int = psutil.Process(server.process.pid).memory_info().rss
    return rss
