"""Plain HTTP over real sockets in this process, with times that a test can wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from plait.http.visits import VisitProtocol, Visits

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BODY_BYTES = 32 * 1024 * 1024  # more than the kernel holds for who does not read
WAIT_SECONDS = 30.0


async def large_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(BODY_BYTES // 65536):
        await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def answer_at_one_go(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(BODY_BYTES)})


@asynccontextmanager
async def serving(visits: Visits, app: ASGIApp = large_answer) -> AsyncIterator[int]:
    """Its port."""
    config = uvicorn.Config(app, log_config=None, lifespan="off")
    state = ServerState()

    def connect() -> VisitProtocol:
        return VisitProtocol(config, state, {}, visits=visits)

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def is_empty(visits: Visits) -> bool:
    async with asyncio.timeout(WAIT_SECONDS):
        while len(visits):  # noqa: ASYNC110 - a server tells nobody that a peer has gone
            await asyncio.sleep(0.01)
    return True


async def test_an_answer_that_is_not_taken_is_cut_off() -> None:
    visits = Visits(60, answer_seconds=0.3)
    async with serving(visits) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(REQUEST)
        await reader.readexactly(12)  # and nothing more

        assert await is_empty(visits)
        writer.transport.abort()


async def test_an_answer_that_is_taken_in_time_is_whole() -> None:
    visits = Visits(60, answer_seconds=WAIT_SECONDS)
    async with serving(visits) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

        received = 0
        while piece := await reader.read(1 << 20):
            received += len(piece)

        assert received > BODY_BYTES
        assert await is_empty(visits)
        writer.close()


async def test_what_is_left_of_a_whole_answer_has_the_time_of_answers() -> None:
    visits = Visits(0.3, answer_seconds=WAIT_SECONDS)
    async with serving(visits, answer_at_one_go) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await reader.readexactly(12)  # and nothing more for now
        later, other = await asyncio.open_connection("127.0.0.1", port)
        assert await later.read() == b""  # by now the time for requests is over

        received = 0
        while piece := await reader.read(1 << 20):
            received += len(piece)

        assert received > BODY_BYTES
        other.close()
        writer.close()


async def test_beyond_the_most_the_longest_waiting_gives_way() -> None:
    visits = Visits(60, most=2)
    async with serving(visits) as port:
        first = await asyncio.open_connection("127.0.0.1", port)
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]

        assert await first[0].read() == b""
        assert len(visits) == 2
        for _, writer in (first, *others):
            writer.transport.abort()
        assert await is_empty(visits)


async def test_half_a_request_is_answered_408_when_its_time_is_over() -> None:
    visits = Visits(0.3)
    async with serving(visits) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST[:-2])

        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        assert len(visits) == 0
        writer.close()
