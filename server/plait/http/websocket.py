"""`/v1/ws`: from handshake to session, and the socket a session talks to.

Refusals that a program can see are HTTP statuses before accepting; a page cannot see those, so a
wrong token from a page (it sends an Origin) is accepted and closed 4401. Pages may show a ticket,
which opens this one connection, instead of a token.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State

from plait.access.access import Access
from plait.access.keyring import Grant
from plait.http.security import (
    ORIGIN_REFUSED,
    SUBPROTOCOL,
    Perimeter,
    bearer,
    deny,
    subprotocol_token,
)
from plait.sessions.session import SocketClosed
from plait.wire.close import CloseCode

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

FIN = 0x80
SHORT, MEDIUM, LONG = struct.Struct("!BB"), struct.Struct("!BBH"), struct.Struct("!BBQ")

READ_BYTES = 4 * 1024  # some 700 of the tiniest frames: several ms
INCOMING = memoryview(bytearray(READ_BYTES))  # for every connection: a read is parsed at once
MAX_UNTAKEN = 16  # messages that the session has not taken: then nothing more is read
LATE_SECONDS = 1.0  # a timer that fires so late was held up by a suspended process, or a stall
MAX_UNREAD_BYTES = 1024 * 1024  # far above what the transport holds before sending waits (64 KiB)


class FrameSink(Protocol):
    """Where frames leave without an ASGI event each: our extension `plait.frames` of the scope."""

    writable: asyncio.Event

    def send_frames(self, frames: Sequence[str | bytes]) -> None:
        """In one write. Raises ClientDisconnected."""


class AsgiSocket:
    """A session's `Socket` over ASGI, but for the frames it sends."""

    def __init__(self, receive: Receive, send: Send, sink: FrameSink) -> None:
        self._receive = receive
        self._send = send
        self._sink = sink

    async def receive(self) -> str | bytes:
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            raise SocketClosed
        text: str | None = event.get("text")
        if text is not None:
            return text
        data: bytes = event["bytes"]
        return data

    async def writable(self) -> bool:
        if self._sink.writable.is_set():
            return False
        return await self._sink.writable.wait()

    def send(self, frames: Sequence[str | bytes]) -> None:
        try:
            self._sink.send_frames(frames)
        except ClientDisconnected:
            raise SocketClosed from None

    async def close(self, code: int, reason: str) -> None:
        try:
            await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except ClientDisconnected:
            raise SocketClosed from None


class Gateway(Protocol):
    """Who runs sessions; `plait.app` provides it."""

    access: Access

    def refusal(self) -> str | None: ...

    async def run_session(self, socket: AsgiSocket, grant: Grant) -> None: ...


class WebSocketEndpoint:
    """ASGI application for one path."""

    def __init__(self, gateway: Gateway, perimeter: Perimeter) -> None:
        self._gateway = gateway
        self._perimeter = perimeter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        offered: list[str] = scope["subprotocols"]
        if SUBPROTOCOL not in offered:
            text = (
                f"Offer the WebSocket subprotocol {SUBPROTOCOL}; offered: {len(offered)} other.\n"
            )
            await deny(scope, receive, send, 400, text)
            return
        refusal = self._gateway.refusal()
        if refusal is not None:
            await deny(scope, receive, send, 503, refusal)
            return
        shown = bearer(headers.get("authorization")) or subprotocol_token(offered)
        origin = headers.get("origin")
        grant = self._gateway.access.admit(shown)
        if grant is None and origin is None:
            await deny(scope, receive, send, 401, "Send Authorization: Bearer <token>.\n")
            return
        if grant is not None and not self._perimeter.origin_counts(origin, grant.app):
            await deny(scope, receive, send, 403, ORIGIN_REFUSED)
            return
        await receive()  # websocket.connect
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        socket = AsgiSocket(receive, send, scope["extensions"]["plait.frames"]["sink"])
        if grant is None:
            await socket.close(CloseCode.UNAUTHORIZED, "a valid token is required")
            return
        await self._gateway.run_session(socket, grant)


def encode_frame(frame: str | bytes) -> bytes:
    """As a server sends it: whole, unmasked (RFC 6455, 5.2). A `str` is a text frame."""
    if isinstance(frame, str):
        payload, first = frame.encode(), FIN | Opcode.TEXT
    else:
        payload, first = frame, FIN | Opcode.BINARY
    size = len(payload)
    if size < 126:
        return SHORT.pack(first, size) + payload
    if size < 65536:
        return MEDIUM.pack(first, 126, size) + payload
    return LONG.pack(first, 127, size) + payload


class PlaitWebSocketProtocol(WebSocketsSansIOProtocol, asyncio.BufferedProtocol):
    """Uvicorn's protocol, for peers that send a great many tiny frames, or stopped reading.

    All frames of a read are parsed at one go, and the event loop waits: 256 KiB, what asyncio
    reads otherwise, can hold 40,000 of them. Hence a small buffer of our own.

    `transport.close()` waits until its buffer is flushed, and a peer that does not read lets that
    take for ever: no ping time-out, refusal or close would ever free the connection. So it is
    aborted, at once or in a while. Nor may the pongs pile up that such a peer keeps asking for:
    they are all that is sent without waiting.
    """

    _farewell: asyncio.TimerHandle | None = None
    _pieces: bytearray  # of the message that is under way, from its second one on

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._farewell is not None:
            self._farewell.cancel()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"]["plait.frames"] = {"sink": self}

    def send_frames(self, frames: Sequence[str | bytes]) -> None:
        if self.disconnected or self.close_sent or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(b"".join(map(encode_frame, frames)))

    def get_buffer(self, sizehint: int) -> memoryview:
        return INCOMING

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(INCOMING[:nbytes]))
        if pongs := b"".join(self.conn.data_to_send()):
            self.transport.write(pongs)
            if self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
                self.transport.abort()
        if self.transport.is_closing():
            self._see_off()

    def handle_cont(self, event: Frame) -> None:
        """In one buffer: only a message's bytes are bounded, not in how many pieces they come."""
        if self.frames:  # its first one
            self._pieces, self.frames = bytearray(self.frames[0]), []
        self._pieces += event.data
        if event.fin:
            self.frames = [bytes(self._pieces)]
            del self._pieces
            self.send_receive_event_to_app()

    def send_receive_event_to_app(self) -> None:
        """Uvicorn stops reading after each message, two system calls for every ack."""
        size = sum(map(len, self.frames))
        paused, self.read_paused = self.read_paused, True  # which keeps it from doing so
        super().send_receive_event_to_app()
        self.read_paused = paused
        if paused or self.close_sent:  # nobody takes anything after our close: its answer is due
            return
        if size > READ_BYTES or self.queue.qsize() >= MAX_UNTAKEN:
            self.read_paused = True
            self.transport.pause_reading()

    def handle_ping(self) -> None:
        """The pongs of one read leave together, in `buffer_updated`."""

    def keepalive_timeout(self) -> None:
        """Not by a clock that went on while this process did not run: the pong may lie unread."""
        assert self.ping_timeout is not None
        now = self.loop.time()
        if now - self.ping_sent_at - self.ping_timeout > LATE_SECONDS:
            self.ping_sent_at = now
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()
        self.transport.abort()

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self._see_off()  # also where a session failed, and nobody has said goodbye

    async def send(self, message: ASGISendEvent) -> None:
        await self.writable.wait()
        if message["type"] in ("websocket.send", "websocket.close") and self.close_sent:
            # The ping time-out closed it while we waited; uvicorn would call that our mistake.
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # refused; uvicorn would log it as an unfinished one
        if message["type"] == "websocket.close" or self.transport.is_closing():
            self._see_off()

    def _see_off(self) -> None:
        """A close is under way; uvicorn's own timer would only ask for it again."""
        if self._farewell is None and not self.disconnected:
            loop = asyncio.get_running_loop()
            self._farewell = loop.call_later(self.close_timeout + 1, self.transport.abort)
