"""An open socket to a Plait server and the streams on it: the `Client`.

Two tasks drive it, both owned by `opening.connect`: the reader, which never waits for a consumer,
and the writer, which owns `send`. Frames to send wait in one queue of MAX_OUTGOING_FRAMES: when
it is full the server has stopped reading, and the connection is given up.
This module does NOT connect or reconnect, and never sends a request twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from time import monotonic
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from plait.client.errors import ConnectionLost, lost_by
from plait.client.methods import Methods
from plait.client.stream import IllegalServer, Stream
from plait.client.texts_upload import TextsUpload
from plait.client.upload import Upload
from plait.errors import InvalidRequest, TooManyStreams
from plait.wire.close import CloseCode, close_reason
from plait.wire.codec import decode_binary, decode_server, encode_client, encode_params
from plait.wire.frames import Undecodable
from plait.wire.messages import (
    DEFAULT_WINDOW,
    MAX_ID,
    MAX_WINDOW,
    Accepted,
    Cancelled,
    ClientMessage,
    Done,
    GoAway,
    InputAck,
    ItemMessage,
    Open,
    Ping,
    Pong,
    Priority,
    Rejected,
    ServerMessage,
    Started,
    StreamFailed,
    Welcome,
)

if TYPE_CHECKING:
    from plait.client.upload import Piece

MAX_OUTGOING_FRAMES = 8192
MAX_UPLOAD_FRAMES = 64


class Client(Methods):
    """An open connection; made by `connect`. Not for use from other threads or event loops."""

    def __init__(
        self, socket: ClientConnection, welcome: Welcome, tasks: asyncio.TaskGroup
    ) -> None:
        """`tasks` outlives the connection's streams, and ends with the connection."""
        self.welcome = welcome
        self.goaway: GoAway | None = None
        self._socket = socket
        self._highest_id = 0
        self._streams: dict[int, Stream] = {}
        self._outgoing: asyncio.Queue[str | bytes] = asyncio.Queue(MAX_OUTGOING_FRAMES)
        self._room = asyncio.Event()  # for uploads, which leave most of the queue to the others
        self._tasks = tasks
        self._lost: ConnectionLost | None = None
        self._last_ping = 0
        self._pings: dict[int, asyncio.Future[None]] = {}

    @property
    def live_ids(self) -> frozenset[int]:
        """Streams without an ending yet."""
        return frozenset(self._streams)

    def open(
        self,
        method: str,
        params: dict[str, Any],
        *,
        source: AsyncIterable[Piece] | None = None,
        window: int = DEFAULT_WINDOW,
        priority: Priority = "interactive",
        deadline_ms: int | None = None,
    ) -> Stream:
        """Open a stream of any method and see its items as they are on the wire.

        `source`: its input, texts or audio, where it is opened without; closed with the stream.
        Returns at once. Raises InvalidRequest for what cannot be sent, and ConnectionLost.
        """
        if self._lost is not None:
            raise self._lost
        if not 0 <= window <= MAX_WINDOW:
            raise InvalidRequest(f"window: {window} is not within 0 … {MAX_WINDOW}", param="window")
        if self._highest_id == MAX_ID:
            raise TooManyStreams("this connection has used all its ids. Connect again.")
        id = self._highest_id + 1
        frame = encode_client(
            Open(id, method, encode_params(params), window, priority, deadline_ms)
        )
        self._highest_id = id
        stream = self._streams[id] = Stream(id, method, window, self._send)
        self._put(frame)
        if source is not None:
            stream.upload = self._upload(id, method)
            upload = self._tasks.create_task(stream.upload.run(source, stream.cancel_nowait))
            stream.when_ended(upload.cancel)
        return stream

    def _upload(self, id: int, method: str) -> Upload:
        limits = self.welcome.limits
        if method == "embed":
            return TextsUpload(id, self._send_when_room, limits.max_text_bytes)
        return Upload(id, self._send_when_room, limits.max_binary_bytes)

    async def ping(self) -> float:
        """Seconds to the server and back, past everything sent before. Raises ConnectionLost."""
        if self._lost is not None:
            raise self._lost
        self._last_ping += 1
        waiting = asyncio.get_running_loop().create_future()
        self._pings[self._last_ping] = waiting
        sent_at = monotonic()
        self._send(Ping(self._last_ping))
        await waiting
        return monotonic() - sent_at

    def _send(self, message: ClientMessage | bytes) -> None:
        if self._lost is None:
            self._put(message if isinstance(message, bytes) else encode_client(message))

    async def _send_when_room(self, message: ClientMessage | bytes) -> None:
        """As uploads do: they wait for the socket, and for those who cannot wait."""
        while self._outgoing.qsize() >= MAX_UPLOAD_FRAMES and self._lost is None:
            self._room.clear()
            await self._room.wait()
        self._send(message)

    def _put(self, frame: str | bytes) -> None:
        try:
            self._outgoing.put_nowait(frame)
        except asyncio.QueueFull:
            self._lose(ConnectionLost(f"{MAX_OUTGOING_FRAMES} frames wait: the server reads none"))
            self._socket.transport.abort()

    # --- the two tasks ---------------------------------------------------------------------------

    async def write_frames(self) -> None:
        """Send what is queued, in order, until cancelled or the socket is closed."""
        try:
            while True:
                frame = await self._outgoing.get()
                self._room.set()
                await self._socket.send(frame)
        except ConnectionClosed:
            pass  # the reader sees it too, and tells the streams

    async def read_frames(self) -> None:
        """Hand frames to their streams until the socket is closed; then every stream knows."""
        try:
            while True:
                self._receive(await self._socket.recv())
        except ConnectionClosed as closed:
            self._lose(lost_by(closed))
        except (Undecodable, IllegalServer) as error:
            async with asyncio.TaskGroup() as tasks:
                reason = close_reason(str(error))
                tasks.create_task(self._socket.close(CloseCode.UNREADABLE, reason))
                tasks.create_task(self._discard_frames())  # or the close would wait behind them
                # Last: a consumer it wakes may leave, and must not be the first to close.
                self._lose(ConnectionLost(f"the server does not speak plait.v1: {error}"))

    async def _discard_frames(self) -> None:
        try:
            while True:
                await self._socket.recv()
        except ConnectionClosed:
            pass

    def _receive(self, data: str | bytes) -> None:
        if isinstance(data, str):
            message = decode_server(data)
            if message is not None:
                self._receive_message(message)
            return
        frame = decode_binary(data)
        stream = self._streams.get(frame.id)
        if stream is not None:
            stream.receive_item(frame)

    def _receive_message(self, message: ServerMessage) -> None:
        if isinstance(message, GoAway):
            self.goaway = message
        elif isinstance(message, Pong):
            self._receive_pong(message.n)
        stream = self._streams.get(getattr(message, "id", 0))
        if stream is None:
            return
        match message:
            case ItemMessage():
                stream.receive_item(message)
            case Accepted():
                stream.receive_accepted(message)
            case Started():
                stream.receive_started(message)
            case Done() | Cancelled() | StreamFailed():
                stream.receive_terminal(message)
                del self._streams[message.id]
            case Rejected():
                stream.receive_rejected(message)
                del self._streams[message.id]
            case InputAck():
                stream.receive_input_ack(message)
            case _:
                pass

    def _receive_pong(self, n: int) -> None:
        waiting = self._pings.pop(n, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _lose(self, error: ConnectionLost) -> None:
        """Every live stream fails; nothing can be opened any more. The first reason stays."""
        if self._lost is None:
            self._lost = error
        while self._streams:
            _, stream = self._streams.popitem()
            if not stream.state.ended:
                stream.receive_failure(self._lost)
        while self._pings:
            _, waiting = self._pings.popitem()
            if not waiting.done():
                waiting.set_exception(self._lost)
