"""Requests that are no HTTP, or no handshake: answered or closed, without a traceback or a leak."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from tests.chaos.raw import handshake, raw_peer
from tests.chaos.rig import bystander, unharmed
from tests.chaos.sizes import MUTATED_REQUESTS, SEEDS, TEST_SECONDS
from tests.live.server import LiveServer, live_server

pytestmark = pytest.mark.timeout(TEST_SECONDS)

PATIENCE_SECONDS = 60.0
HOST = b"Host: 127.0.0.1\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
WHOLE = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
ODD = {
    "garbage": b"\x00\xff garbage\r\n\r\n",
    "nothing but lines": b"\r\n" * 2000,
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "old": b"GET /healthz HTTP/1.0\r\n" + HOST + b"\r\n",
    "very old": b"GET /healthz\r\n\r\n",
    "whole server": b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
    "tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "absolute": b"GET http://127.0.0.1/healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "not ASCII": b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n",
    "escapes": b"GET /%ff%00%2e%2e/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "climbing": b"GET /static/sdk/../../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n",
    "long path": b"GET /" + b"x" * 60_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "two lengths": b"POST /v1/ticket HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n"
    + HOST
    + b"\r\n",
    "huge length": b"POST /v1/ticket HTTP/1.1\r\nContent-Length: 99999999999\r\n" + HOST + b"\r\n",
    "bad chunk": b"POST /v1/ticket HTTP/1.1\r\n" + CHUNKED + HOST + b"\r\nzz\r\n",
    "bad chunk later": b"POST /v1/ticket HTTP/1.1\r\n" + CHUNKED + HOST + b"\r\n1\r\nx\r\nzz\r\n",
    "garbage after": WHOLE + b"\x00\xff\r\n\r\n",
    "many at once": WHOLE * 500,
    "other upgrade": b"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" + HOST + b"\r\n",
}
HANDSHAKES = {
    "200 headers": [f"X-{number}: y" for number in range(200)],
    "a long header": ["X: " + "y" * 9000],
    "two keys": ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="],
    "another version": ["Sec-WebSocket-Version: 99"],
    "not ASCII": ["X: \u00e9"],
    "odd extensions": ["Sec-WebSocket-Extensions: ;;=,,"],
    "odd subprotocols": ["Sec-WebSocket-Protocol: ,,;"],
    "a body": ["Content-Length: 5"],
    "chunks": ["Transfer-Encoding: chunked"],
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        yield running


async def send(server: LiveServer, request: bytes) -> bytes:
    """The beginning of what comes, empty where the server closes without a word."""
    async with raw_peer(server.port) as client, asyncio.timeout(PATIENCE_SECONDS):
        client.send(request)
        try:
            return await client.reader.read(100)
        except ConnectionError:
            return b""


async def test_odd_requests_are_answered_or_closed(server: LiveServer) -> None:
    async with unharmed(server), bystander(server):
        answers = await asyncio.gather(*(send(server, request) for request in ODD.values()))
    statuses = {name: answer[9:12] for name, answer in zip(ODD, answers, strict=True)}
    assert b"500" not in statuses.values(), statuses
    assert statuses["two hosts"] == statuses["garbage"] == statuses["no host"] == b"400"
    assert statuses["garbage after"] == statuses["many at once"] == b"200"
    assert statuses["climbing"] == b"404"


async def test_odd_handshakes_are_answered_or_closed(server: LiveServer) -> None:
    requests = [handshake(server.port, *lines) for lines in HANDSHAKES.values()]
    async with unharmed(server), bystander(server):
        answers = await asyncio.gather(*(send(server, request) for request in requests))
    statuses = {name: answer[9:12] for name, answer in zip(HANDSHAKES, answers, strict=True)}
    accepted = {name for name, status in statuses.items() if status == b"101"}
    assert accepted == {"not ASCII", "odd extensions"}, statuses
    assert set(statuses.values()) == {b"101", b"400"}, statuses


@pytest.mark.parametrize("seed", SEEDS)
async def test_mutated_requests_are_answered_or_closed(server: LiveServer, seed: int) -> None:
    rng = random.Random(seed)
    async with unharmed(server), bystander(server):
        for _ in range(MUTATED_REQUESTS):
            request = bytearray(rng.choice((WHOLE, handshake(server.port), *ODD.values())))
            for _ in range(rng.randint(1, 4)):
                request[rng.randrange(len(request))] = rng.choice(b"\r\n :\x00\xffA0/")
            assert b" 500 " not in await send(server, bytes(request) + b"\r\n\r\n"), request
