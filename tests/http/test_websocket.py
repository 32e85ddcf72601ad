"""The protocol under `/v1/ws` over real sockets in this process, with an app that a test brings."""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from plait.http.websocket import READ_BYTES, PlaitWebSocketProtocol
from plait.wire.close import CloseCode

App = Callable[[Scope, Receive, Send], Awaitable[None]]

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
CLOSE = struct.pack("!H", CloseCode.UNAUTHORIZED)
MUCH_BYTES = 32 * 1024 * 1024  # more than the kernel holds for who does not read
PIECES = 10_000
WAIT_SECONDS = 30.0


@asynccontextmanager
async def serving(
    app: App, close_timeout: float, state: ServerState | None = None
) -> AsyncIterator[int]:
    """Its port. A peer has a second more than `close_timeout` to see a close through."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws_ping_interval=None)
    state = state or ServerState()

    def connect() -> PlaitWebSocketProtocol:
        protocol = PlaitWebSocketProtocol(config, state, {})
        protocol.close_timeout = close_timeout
        return protocol

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def frame(opcode: Opcode, payload: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """How many bytes are held of what was allocated in the block."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


async def test_large_frames_that_cross_the_close_do_not_hide_the_answer_to_it() -> None:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": CloseCode.UNAUTHORIZED})

    async with serving(refuse, close_timeout=3600) as port, asyncio.timeout(WAIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE)
        await reader.readuntil(CLOSE)
        writer.write(2 * frame(Opcode.BINARY, bytes(4 * READ_BYTES)))
        writer.write(frame(Opcode.CLOSE, CLOSE))

        assert await reader.read() == b""
        writer.close()


async def test_a_message_in_a_great_many_pieces_costs_its_bytes_and_no_object_each() -> None:
    heard = asyncio.Queue[Message]()

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await heard.put(await receive())

    pieces = frame(Opcode.BINARY, b"", fin=False) + PIECES * frame(Opcode.CONT, b"12", fin=False)
    async with serving(listen, 3600) as port, asyncio.timeout(WAIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        with traced() as held_bytes:
            writer.write(pieces + frame(Opcode.PING, b""))
            await reader.readexactly(2)  # the pong: all has been read
            held = held_bytes()
        writer.write(frame(Opcode.CONT, b"3"))

        assert (await heard.get())["bytes"] == PIECES * b"12" + b"3"
        assert held < 20 * PIECES
        writer.transport.abort()


async def test_who_does_not_read_is_cut_off_where_a_session_ends_without_a_close() -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "bytes": bytes(MUCH_BYTES)})

    state = ServerState()
    async with serving(fail, -0.9, state) as port, asyncio.timeout(WAIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(HANDSHAKE)
        await reader.readexactly(12)  # and nothing more

        while state.connections:  # noqa: ASYNC110 - a server tells nobody that a peer has gone
            await asyncio.sleep(0.01)
        writer.transport.abort()
