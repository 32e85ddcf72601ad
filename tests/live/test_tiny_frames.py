"""WebSocket frames below our messages: pings and pongs cost no credit, so they must cost little."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator

import pytest

from tests.live.peer import peer
from tests.live.server import LiveServer

PING = b"\x89\x80\0\0\0\0"  # masked, as a client must, and empty
LONG_PING = b"\x89\xfd\0\0\0\0" + b"x" * 125
PONG_BYTES = 2
HANDSHAKE = """GET /v1/ws HTTP/1.1\r
Host: 127.0.0.1\r
Upgrade: websocket\r
Connection: Upgrade\r
Sec-WebSocket-Key: {key}\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Protocol: plait.v1\r
\r
"""


@contextlib.asynccontextmanager
async def raw_peer(
    server: LiveServer,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """After the handshake, with `welcome` unread."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(HANDSHAKE.format(key=key).encode())
    await reader.readuntil(b"\r\n\r\n")
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def write_without_end(writer: asyncio.StreamWriter, data: bytes) -> None:
    while True:
        writer.write(data)
        await writer.drain()


async def test_every_ping_of_a_flood_is_answered_and_others_go_on(server: LiveServer) -> None:
    count = 50_000
    async with raw_peer(server) as (reader, writer), peer(server.ws_url) as bystander:
        await reader.readuntil(b"}}")  # most of `welcome`
        writer.write(PING * count)
        await bystander.open(1, "tokens=5")
        assert (await bystander.hear_until("done"))["usage"]["completion_tokens"] == 5
        await reader.readexactly(PONG_BYTES * count)


async def test_a_peer_that_asks_for_pongs_and_reads_none_is_dropped(server: LiveServer) -> None:
    async with raw_peer(server) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        with pytest.raises(ConnectionError):
            await write_without_end(writer, LONG_PING * 500)
    assert server.get("/healthz")[0] == 200
