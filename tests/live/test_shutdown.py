"""SIGTERM: goaway, a terminal for everyone, close 1001, and out within the grace period."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import ConnectionClosed

from plait.engines.scripted.hearing import recite
from tests.live.peer import TERMINALS, Peer, peer
from tests.live.server import LiveServer, live_server
from tests.live.stopped_reader import stopped_reader

LONG = "tokens=100000 step_ms=5"


@pytest.fixture
async def doomed() -> AsyncIterator[LiveServer]:
    """A server that the test shuts down."""
    with live_server(
        slots=4, drain_seconds=1, max_tokens=1 << 20, context_tokens=1 << 20
    ) as running:
        yield running
        assert "Traceback" not in running.output


async def hear_all(client: Peer) -> list[dict[str, object]]:
    """Everything up to the close."""
    messages = []
    try:
        while True:
            messages.append(await client.hear())
    except ConnectionClosed:
        return messages


async def test_sigterm_ends_pending_at_once_running_after_the_grace_and_exits(
    doomed: LiveServer,
) -> None:
    async with peer(doomed.ws_url) as client:
        for id in range(1, 11):
            await client.open(id, LONG, window=0)
        await client.hear_until("started", 4)
        await client.say({"type": "ping", "n": 1})
        await client.hear_until("pong")  # all ten opens are read
        code = asyncio.create_task(asyncio.to_thread(doomed.stop))
        messages = await hear_all(client)
        assert await code == 0
        ends = {m["id"]: m["by"] for m in messages if m["type"] == "cancelled"}
        assert ends == dict.fromkeys(range(1, 11), "shutdown")
        assert "goaway" in [m["type"] for m in messages]
        assert client.ws.close_code == 1001


async def test_streams_of_every_method_end_by_the_shutdown_and_the_server_with_them() -> None:
    with live_server(
        speech="scripted", transcribe="scripted", drain_seconds=1,
        max_tokens=1 << 20, context_tokens=1 << 20,
    ) as server:  # fmt: skip
        async with peer(server.ws_url) as client:
            for id in range(1, 12, 3):
                await client.open(id, LONG, window=0)
                await client.speak(id + 1, "step_ms=50 " + "word " * 5000, window=0)
                await client.transcribe(id + 2)
                await client.send_audio(id + 2, recite("one two three"))
            await client.say({"type": "ping", "n": 1})
            await client.hear_until("pong")  # all of them are read
            code = asyncio.create_task(asyncio.to_thread(server.stop))
            messages = await hear_all(client)
            assert await code == 0
            assert client.ws.close_code == 1001
    ends = {m["id"]: m.get("by", m) for m in messages if m["type"] in TERMINALS}
    assert ends == dict.fromkeys(range(1, 13), "shutdown")


async def test_a_stream_that_ends_within_the_grace_completes() -> None:
    with live_server(drain_seconds=15) as server:
        async with peer(server.ws_url) as client:
            await client.open(1, "tokens=100 step_ms=5", window=0)
            await client.hear_until("item")
            code = asyncio.create_task(asyncio.to_thread(server.stop))
            messages = await hear_all(client)
            assert [m["type"] for m in messages][-1] == "done"
            assert await code == 0


async def test_an_open_during_the_drain_is_rejected(doomed: LiveServer) -> None:
    async with peer(doomed.ws_url) as client:
        await client.open(1, LONG, window=0)
        await client.hear_until("item")
        code = asyncio.create_task(asyncio.to_thread(doomed.stop))
        await client.hear_until("goaway")
        await client.open(2)
        rejected = await client.hear_until("rejected", 2)
        assert rejected["error"]["code"] == "shutting_down"
        await code


async def test_idle_connections_do_not_hold_the_server_up() -> None:
    with live_server(drain_seconds=600) as server:
        async with peer(server.ws_url), peer(server.ws_url):
            assert await asyncio.to_thread(server.stop) == 0


async def test_a_peer_that_stopped_reading_does_not_hold_the_server_up(
    doomed: LiveServer,
) -> None:
    async with stopped_reader(doomed.ws_url, "tokens=100000000 burst=50"):
        assert await asyncio.to_thread(doomed.stop) == 0


async def test_a_second_signal_ends_the_grace_but_not_the_manners() -> None:
    with live_server(drain_seconds=60) as server:
        async with peer(server.ws_url) as client:
            await client.open(1, LONG, window=0)
            await client.hear_until("item")
            server.process.send_signal(signal.SIGTERM)
            await client.hear_until("goaway")
            server.wait_for_line("1 stream has up to 60 s; press Ctrl-C again to stop now")
            code = asyncio.create_task(asyncio.to_thread(server.stop))
            assert (await client.hear_until("cancelled", 1))["by"] == "shutdown"
            assert await code == 0
        server.wait_for_line(r"^Stopped\.$")


async def test_no_worker_outlives_the_server_not_even_when_it_is_killed(
    doomed: LiveServer,
) -> None:
    worker = doomed.worker
    doomed.process.kill()
    await asyncio.to_thread(worker.wait, 30)
    assert not worker.is_running()
