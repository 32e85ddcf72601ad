"""Peers that connect and say nothing, or say it byte by byte, or do not read the answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Iterator

import pytest
from websockets.frames import Opcode

from plait.descriptors import allow_connections
from plait.http.visits import MOST_VISITS
from tests.chaos.raw import RawPeer, frame, handshake, raw_peer, text
from tests.chaos.rig import bystander, unharmed
from tests.live.peer import opening, peer
from tests.live.server import LiveServer, live_server

TIMEOUT_SECONDS = 8.0  # longer than this process may be held up between a connect and a send
PATIENCE_SECONDS = 60.0  # generous: two shared cores
DRIP_SECONDS = 0.05
CLOSE = frame(Opcode.CLOSE, struct.pack("!H", 1000))
TICKET = b"POST /v1/ticket HTTP/1.1\r\nHost: 127.0.0.1\r\n"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def impatient() -> Iterator[LiveServer]:
    with live_server(
        embed="scripted",
        request_timeout_seconds=TIMEOUT_SECONDS,
        max_tokens=1 << 20,
        context_tokens=1 << 20,
    ) as running:
        yield running


async def is_closed(client: RawPeer) -> bytes:
    """What the server had to say before it closed, of its own accord."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await client.read_to_end()


UNFINISHED = {
    b"": b"",
    b"GET /v1": b"408",
    REQUEST: b"408",
    TICKET + b"Content-Length: 9\r\n\r\n{": b"200",  # it needs no body, and waits for none
    REQUEST + b"\r\n": b"200",
    REQUEST + b"\r\n" + REQUEST: b"200",
}
"""What is sent, and what must be among the answers before the close."""


@pytest.mark.waits
async def test_requests_that_are_not_whole_in_time_are_closed(impatient: LiveServer) -> None:
    async def send(begun: bytes) -> bytes:
        async with raw_peer(impatient.port) as client:
            client.send(begun)
            return await is_closed(client)

    async with unharmed(impatient), bystander(impatient):
        answers = await asyncio.gather(*map(send, UNFINISHED))
        for answer, expected in zip(answers, UNFINISHED.values(), strict=True):
            assert expected in answer


@pytest.mark.waits
async def test_headers_that_drip_without_end_are_closed_in_time(impatient: LiveServer) -> None:
    async def drip(client: RawPeer) -> None:
        client.send(handshake(impatient.port)[:-2])
        while True:
            client.send(b"X: y\r\n")
            await asyncio.sleep(DRIP_SECONDS)

    async with unharmed(impatient), bystander(impatient), raw_peer(impatient.port) as client:
        dripping = asyncio.create_task(drip(client))
        await is_closed(client)
        dripping.cancel()


async def test_headers_without_bound_are_refused_at_once(impatient: LiveServer) -> None:
    async with unharmed(impatient), raw_peer(impatient.port) as client:
        client.send(REQUEST + b"X: " + b"y" * 200_000)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b"400" in await client.read_head()


async def test_more_silent_connections_than_are_held_keep_nobody_out() -> None:
    allow_connections(MOST_VISITS)  # this process too has a limit of descriptors
    with live_server(request_timeout_seconds=3600) as server:
        async with unharmed(server), bystander(server), contextlib.AsyncExitStack() as crowd:
            first = await crowd.enter_async_context(raw_peer(server.port))
            for _ in range(MOST_VISITS):
                await crowd.enter_async_context(raw_peer(server.port))
            await is_closed(first)  # it has waited longest
            async with peer(server.ws_url) as client:
                await client.open(1)
                assert (await client.hear_terminals(1))[1]["type"] == "done"


@pytest.mark.waits
async def test_a_peer_that_says_goodbye_and_never_reads_is_let_go(impatient: LiveServer) -> None:
    stuffed = json.dumps(opening(1, "tokens=20000 burst=50 size=4096", window=0))
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        async with unharmed(impatient), bystander(impatient, "embed"):
            sock.connect(("127.0.0.1", impatient.port))
            sock.sendall(handshake(impatient.port))
            assert b"101" in await asyncio.to_thread(sock.recv, 100)
            sock.sendall(text(stuffed))
            await asyncio.to_thread(wait_stuck, impatient)
            sock.sendall(CLOSE)
        # and now it has gone, while this end is still open


def wait_stuck(server: LiveServer) -> None:
    """Until its one chat waits for a reader, and has yielded its slot."""
    server.wait_until(
        lambda: (
            server.metric("plait_streams_active", method="chat") == 1
            and server.metric("plait_slots_used", model="scripted") == 0
        ),
        PATIENCE_SECONDS,
        "waits for its reader",
    )
