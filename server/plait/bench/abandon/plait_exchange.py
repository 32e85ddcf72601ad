"""One chat on a Plait connection of its own, read as it comes and left as a client leaves.

An item is taken for one token, as a chunk of the peers' is; `done` tells how many there were. A
lagging connection's items may hold several: then what is received is told too low, and what was
decoded after a hang-up too high. (Log-probabilities have an entry per token, but cost an engine
more than a tenth of its time, which the peers are spared.) What had arrived when the reader left
counts as received, read or not. Does NOT know schedules nor what the work cost.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import monotonic

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from plait.bench.abandon.target import How, Request
from plait.bench.serving import BenchError, Server
from plait.wire.codec import decode_server, encode_client, encode_params
from plait.wire.frames import Undecodable
from plait.wire.messages import (
    DEFAULT_WINDOW,
    Ack,
    Cancel,
    Done,
    ItemMessage,
    Open,
    Rejected,
    ServerMessage,
    Started,
    StreamFailed,
    Welcome,
)

ID = 1  # the only stream of its connection
ACK_EVERY = DEFAULT_WINDOW // 4
CONNECT_SECONDS = 10.0
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Sent:
    """A request as its client saw it. `received`: tokens that had arrived when it left or ended."""

    index: int
    at: float
    session: str = ""
    started: float | None = None
    received: int = 0
    left: float | None = None


class PlaitExchange:
    """The `Exchange` of one request."""

    def __init__(self, ws: ClientConnection, sent: Sent) -> None:
        self._ws = ws
        self._sent = sent
        self._over = False

    async def next_tokens(self) -> int | None:
        """0 for `started`. Raises BenchError for any other end than `done`."""
        while not self._over:
            try:
                message = decode_server(await self._ws.recv(decode=False))
            except (ConnectionClosed, Undecodable) as error:
                raise BenchError(f"the connection broke in the midst of an answer: {error}") from (
                    error
                )
            tokens = self._take(message)
            if isinstance(message, ItemMessage) and message.seq % ACK_EVERY == 0:
                await self._say(encode_client(Ack(ID, message.seq)))
            if tokens is not None:
                return tokens
        return None

    async def hang_up(self, how: How) -> float:
        """Raises BenchError when the server had something else to say than items."""
        await self._take_arrived()
        moment = monotonic()
        if how == "cancel":
            await self._say(encode_client(Cancel(ID)))
        else:
            self._vanish(reset=how == "reset")
        if not self._over:
            self._sent.left = moment
            self._over = True
        return moment

    def _take(self, message: ServerMessage | None) -> int | None:
        """-> tokens it brings; None for what brings none."""
        match message:
            case Welcome():
                self._sent.session = message.session
            case Started():
                self._sent.started = monotonic()
                return 0
            case ItemMessage():
                self._sent.received += 1
                return 1
            case Done():
                self._over = True
                return self._take_uncounted(message)
            case Rejected() | StreamFailed():
                error = message.error
                raise BenchError(f"a chat ended with {error.code}: {error.message}")
            case _:
                pass
        return None

    def _take_uncounted(self, done: Done) -> int | None:
        """Tokens that no item told of. One that ends an answer has no text and no reader."""
        told = done.usage.get("completion_tokens", 0) - (done.finish_reason == "stop")
        more = max(0, told - self._sent.received)
        self._sent.received += more
        return more or None

    async def _take_arrived(self) -> None:
        """Without waiting: what the loop finds on the socket now, then what was read from it."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError, ConnectionClosed):
            while not self._over:
                async with asyncio.timeout(0):
                    self._take(decode_server(await self._ws.recv(decode=False)))

    async def _say(self, text: str) -> None:
        with contextlib.suppress(ConnectionClosed):  # the reader hears of it
            await self._ws.send(text)

    def _vanish(self, *, reset: bool) -> None:
        transport = self._ws.transport
        sock: socket.socket = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # the other side may have left sooner
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            else:
                sock.shutdown(socket.SHUT_RDWR)
        transport.abort()


@contextlib.asynccontextmanager
async def chat(server: Server, request: Request, sent: Sent) -> AsyncIterator[PlaitExchange]:
    """Connected and sent; the block's end closes. Raises BenchError when there is no server."""
    try:
        ws = await connect(
            server.ws_url,
            additional_headers=server.headers,
            subprotocols=[Subprotocol("plait.v1")],
            compression=None,
            proxy=None,
            open_timeout=CONNECT_SECONDS,
            close_timeout=CONNECT_SECONDS,
        )
    except (OSError, WebSocketException) as error:
        raise BenchError(
            f"{server.typed or server.ws_url} takes no chat ({error}); see that server's log"
        ) from error
    try:
        exchange = PlaitExchange(ws, sent)
        params = {
            "messages": request.messages,
            "max_tokens": request.max_tokens,
            "temperature": 0,
        }
        await ws.send(encode_client(Open(ID, "chat", encode_params(params))))
        yield exchange
    finally:
        await ws.close()
