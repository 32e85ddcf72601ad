"""Everything a client can size has a limit, and a fault stays with the stream it names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import socket
import sys
from typing import Any

import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from tests.live.peer import opening, peer
from tests.live.server import LiveServer, live_server

LONG = "tokens=100000 step_ms=5"
DEEP = "[" * 1500 + "]" * 1500


async def close_code_after(server: LiveServer, frame: str | bytes) -> int | None:
    async with peer(server.ws_url) as client:
        await client.ws.send(frame)
        return await client.hear_close()


@pytest.mark.parametrize("frame", ["not json", '{"type":"open"', "[1]", '{"type":"nope","id":1}'])
async def test_unreadable_messages_close_4400_and_leave_other_sockets_alone(
    server: LiveServer, frame: str
) -> None:
    async with peer(server.ws_url) as bystander:
        await bystander.open(1, "tokens=50 step_ms=2", window=0)
        assert await close_code_after(server, frame) == 4400
        assert (await bystander.hear_until("done"))["usage"]["completion_tokens"] == 50


async def test_invalid_utf8_closes_1007(server: LiveServer) -> None:
    async with peer(server.ws_url) as client:
        client.ws.transport.write(b"\x81\x84\0\0\0\0\xff\xfe\xfd\xfc")
        with pytest.raises(ConnectionClosed):
            await client.ws.recv()
        assert client.ws.close_code == 1007


async def test_a_frame_over_the_announced_limit_closes_1009(server: LiveServer) -> None:
    assert await close_code_after(server, "x" * (1 << 20) + "y") == 1009
    assert await close_code_after(server, b"x" * ((1 << 18) + 1)) == 1009


FIELDS = ["max_tokens", "top_p", "temperature", "seed", "stop", "messages", "tools"]
BAD_VALUES: list[Any] = [
    *(None, True, "5", -1, 0, 1.5, [], {}, math.nan, math.inf, 10**9, 2**63, 10**400),
    [{"n": 10**30}],
]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: repr(value)[:12])
async def test_bad_params_are_a_typed_refusal_naming_the_field_or_are_allowed(
    server: LiveServer, field: str, value: Any
) -> None:
    async with peer(server.ws_url) as client:
        await client.say(json.dumps(opening(1, params={field: value})))
        end = (await client.hear_terminals(1))[1]
        if end["type"] != "done":
            assert end["error"]["code"] in {"invalid_request", "template_error"}
            assert end["error"]["param"].startswith(field)
        await client.open(2, "tokens=1")
        assert (await client.hear_terminals(2))[2]["type"] == "done"


async def test_nesting_without_end_is_refused_on_that_stream_alone(server: LiveServer) -> None:
    async with peer(server.ws_url) as client:
        await client.open(1, "tokens=50 step_ms=2", window=0)
        await client.say(f'{{"type":"open","id":2,"method":"chat","params":{DEEP}}}')
        assert (await client.hear_until("rejected", 2))["error"]["class"] == "client"
        assert (await client.hear_until("done", 1))["usage"]["completion_tokens"] == 50


async def test_half_a_surrogate_pair_is_refused_on_that_stream(server: LiveServer) -> None:
    async with peer(server.ws_url) as client:
        await client.say(
            '{"type":"open","id":1,"method":"chat","params":'
            '{"messages":[{"role":"user","content":"\\ud800"}]}}'
        )
        rejected = await client.hear_until("rejected", 1)
        assert rejected["error"]["param"].startswith("messages")


async def test_a_thousand_opens_and_cancels_in_one_segment_give_a_thousand_terminals() -> None:
    with live_server(opens_per_second=1000, max_streams=4096, max_queued=4096) as server:
        async with peer(server.ws_url) as client:
            ids = range(1, 1001)
            pairs = [[json.dumps(opening(i, LONG)), f'{{"type":"cancel","id":{i}}}'] for i in ids]
            for pair in pairs:
                write_in_one_segment(client.ws.transport, pair)
            ends = await client.hear_terminals(*ids)
            assert {(end["type"], end["by"]) for end in ends.values()} == {("cancelled", "client")}
        await asyncio.to_thread(server.wait_idle)


def write_in_one_segment(transport: asyncio.Transport, frames: list[str]) -> None:
    """Masked text frames, concatenated: the peer reads them in one go."""
    from websockets.frames import Frame, Opcode

    encoded = [Frame(Opcode.TEXT, f.encode()).serialize(mask=True) for f in frames]
    transport.write(b"".join(encoded))


async def test_a_flood_of_opens_closes_4429() -> None:
    with live_server(opens_per_second=1) as server:
        async with peer(server.ws_url) as client:
            with contextlib.suppress(ConnectionClosed):
                for id in range(1, 1000):
                    await client.say(f'{{"type":"open","id":{id},"method":"nope"}}')
            assert await client.hear_close() == 4429


async def test_more_streams_than_the_limit_are_rejected_and_counted_right(
    server: LiveServer,
) -> None:
    async with peer(server.ws_url) as client:
        for id in range(1, 66):
            await client.open(id, LONG, window=0)
        rejected = await client.hear_until("rejected", 65)
        assert rejected["error"]["code"] == "too_many_streams"


async def test_connections_beyond_the_limit_get_503_and_others_live() -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    with live_server(max_connections=2) as server:
        async with peer(server.ws_url) as one, peer(server.ws_url):
            with pytest.raises(InvalidStatus) as refused:
                await connect(server.ws_url, subprotocols=["plait.v1"])  # type: ignore[list-item]
            assert refused.value.response.status_code == 503
            await one.open(1)
            assert (await one.hear_terminals(1))[1]["type"] == "done"


async def test_names_a_client_makes_up_never_become_metric_labels(server: LiveServer) -> None:
    before = len(server.metrics())
    async with peer(server.ws_url) as client:
        for id in range(1, 101):
            await client.open(id, params={"model": f"bogus-{id}"})
            await client.hear_until("rejected", id)
    assert len(server.metrics()) <= before + 2


def test_a_request_that_is_no_http_does_no_harm(server: LiveServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(b"\x00\xff garbage\r\n\r\n")
        sock.recv(100)
    assert server.get("/healthz")[0] == 200


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are Linux's to set")
async def test_without_file_descriptors_the_connected_are_served_and_the_log_stays_short() -> None:
    with live_server() as server:
        async with peer(server.ws_url) as client, contextlib.AsyncExitStack() as crowd:
            process = psutil.Process(server.process.pid)
            few = process.num_fds() + 4
            process.rlimit(psutil.RLIMIT_NOFILE, (few, few))
            for _ in range(50):
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                crowd.callback(writer.close)
            server.wait_for_line("accept.failed")
            await client.open(1)
            assert (await client.hear_terminals(1))[1]["type"] == "done"
        server.wait_until(lambda: server.get("/healthz")[0] == 200, 10, "accepting again")
        assert len(server.output) < 20_000
