"""One session per socket: a reader that never waits for a stream, and the writer that owns `send`.

The reader turns frames into events (`wire.connection`) and moves streams synchronously; the writer
drains the outbox. Both live in one task group that ends with the socket. Losing the socket cancels
every stream on it by the streams' own path; their leases are the scheduler's and outlive us.

It does not know HTTP: a `Socket` gives it frames and takes them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import assert_never

from plait.engines.base import Released
from plait.errors import PlaitError, ShuttingDown
from plait.metrics import Metrics
from plait.sessions.caller import Caller
from plait.sessions.outbox import AUDIO, TEXT, VECTORS, Outbox, StreamQueue
from plait.sessions.reports import Reports
from plait.sessions.socket import Socket as Socket, SocketClosed as SocketClosed
from plait.sessions.stopwatch import Stopwatch
from plait.sessions.stream import Stream, StreamPolicy
from plait.wire.close import CloseCode
from plait.wire.codec import encode_server
from plait.wire.connection import Connection
from plait.wire.events import (
    AckReceived,
    AudioReceived,
    CancelReceived,
    CloseRequired,
    ConnectionEvent,
    EndReceived,
    InputReceived,
    OpenReceived,
    OpenRejected,
    PingReceived,
    StreamFaulted,
)
from plait.wire.messages import (
    Cancelled,
    CancelledBy,
    ErrorBody,
    GoAway,
    Limits,
    Pong,
    Rejected,
)
from plait.wire.window import Credit

# A transcription is little, and what it says may be that somebody talks into that audio.
RANK = {"synthesize": AUDIO, "transcribe": AUDIO, "chat": TEXT, "embed": VECTORS}
FRAMES_PER_TURN = 16
BATCH_RANKS = 3  # batch streams rank after all interactive ones


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """What all sessions of a server share."""

    limits: Limits
    streams: StreamPolicy = field(default_factory=StreamPolicy)
    clock: Callable[[], float] = time.monotonic


class Session:
    def __init__(
        self, name: str, socket: Socket, caller: Caller, metrics: Metrics, policy: SessionPolicy
    ) -> None:
        self.name = name
        self.outbox = Outbox(self._wake_writer, self._overflowed)
        self._socket = socket
        self._caller = caller
        self._reports = Reports(name, metrics, caller.app)
        self._policy = policy
        self._clock = policy.clock
        self._connection = Connection(policy.limits)
        self._streams: dict[int, Stream] = {}
        self._ready = asyncio.Event()  # the outbox has something, or it is time to close
        self._draining = False
        self._closing: tuple[int, str] | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def run(self) -> None:
        """Serve the socket until either side ends it. Streams are told before this returns."""
        self._reports.session_opened()
        self._caller.account.connections += 1
        self.outbox.send_control(
            encode_server(self._caller.welcome(self.name, self._policy.limits))
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(self._write())
                reader = tasks.create_task(self._read(writer))
                self._tasks = (reader, writer)
        finally:
            self._cancel_all("disconnect")
            self._caller.account.connections -= 1
            self._reports.session_closed()

    @property
    def running(self) -> int:
        """Streams that have a slot; the others end at once when the server drains."""
        return sum(stream.started for stream in self._streams.values())

    def drain(self, drain_seconds: float) -> None:
        """Shutting down: say so, end what is pending now, let the rest run on."""
        if self._draining:
            return
        self._draining = True
        self.outbox.send_control(
            encode_server(GoAway("shutting_down", round(drain_seconds * 1000)))
        )
        for stream in [s for s in self._streams.values() if not s.started]:
            stream.cancel("shutdown")
        self._close_if_drained()

    def stop(self) -> None:
        """The grace is over: cancel what still runs, then close once the terminals are out."""
        self._cancel_all("shutdown")
        self._close_if_drained()

    def revoke(self) -> None:
        """What it was let in with counts no longer: cancel its streams and close."""
        self._close(CloseCode.UNAUTHORIZED, "the token was revoked or has expired")

    def abandon(self) -> None:
        """The peer does not take its terminals: leave without it."""
        for task in self._tasks:
            task.cancel()

    # --- tasks ---------------------------------------------------------------------------------

    async def _read(self, writer: asyncio.Task[None]) -> None:
        frames = 0
        try:
            while True:
                frame = await self._socket.receive()
                frames += 1
                if frames % FRAMES_PER_TURN == 0:
                    await asyncio.sleep(0)  # a burst of frames must not starve other sessions
                # Read and dropped while closing: a peer blocked in sending never reads our close.
                if self._closing is None:
                    self._receive_frame(frame)
        except SocketClosed:  # in this tick, before the writer or anyone else runs
            self._cancel_all("disconnect")
            writer.cancel()

    async def _write(self) -> None:
        """The only caller of `send`. Ends by closing the socket, or with it."""
        try:
            while True:
                if await self._socket.writable():  # and take only then: what waits can be purged
                    self.outbox.lagging = True
                frames, ids = self.outbox.take_turn()
                if frames:
                    self._socket.send(frames)
                    for stream in filter(None, map(self._streams.get, ids)):
                        stream.items_left()
                    if not self.outbox.empty:
                        await asyncio.sleep(0)  # others' turn; `writable` itself rarely waits
                elif self._closing is not None:
                    await self._socket.close(*self._closing)
                    return
                else:
                    self._ready.clear()
                    await self._ready.wait()
        except SocketClosed:
            self._cancel_all("disconnect")

    def _wake_writer(self) -> None:
        self._ready.set()

    def _overflowed(self) -> None:
        """After this tick: closing cancels streams, and a scheduler may be granting them slots."""
        reason = "answers pile up: the peer asks without reading"
        asyncio.get_running_loop().call_soon(self._close, CloseCode.FLOOD, reason)

    # --- events --------------------------------------------------------------------------------

    def _receive_frame(self, frame: str | bytes) -> None:
        now = self._clock()
        if isinstance(frame, str):
            events = self._connection.receive_text(frame, now)
        else:
            events = self._connection.receive_binary(frame, now)
        for event in events:
            self._receive(event, now)

    def _receive(self, event: ConnectionEvent, now: float) -> None:
        match event:
            case OpenReceived():
                self._open(event, now)
            case OpenRejected():
                self._reject(event.id, event.method, event.error)
            case PingReceived():
                self.outbox.send_control(encode_server(Pong(event.n)))
            case CloseRequired():
                self._close(event.code, event.reason)
            case _:
                stream = self._streams.get(event.id)
                if stream is not None:
                    self._receive_for(stream, event, now)

    def _receive_for(
        self,
        stream: Stream,
        event: AckReceived
        | InputReceived
        | AudioReceived
        | EndReceived
        | CancelReceived
        | StreamFaulted,
        now: float,
    ) -> None:
        match event:
            case AckReceived():
                stream.receive_ack(event.seq, event.window)
            case InputReceived() | AudioReceived():
                stream.receive_input(event)
            case EndReceived():
                stream.finish_input()
            case CancelReceived():
                stream.cancel("client", now, event.heard_ms)
            case StreamFaulted():
                stream.fail(event.error)
            case _:
                assert_never(event)

    def _open(self, event: OpenReceived, now: float) -> None:
        try:
            if self._draining:
                raise ShuttingDown("the server is shutting down: reconnect in a moment")
            self._caller.account.admit(now)
            offer = self._caller.models.resolve(event.method, event.params.model)
            request = replace(event, params=offer.complete(event.params))
            policy = self._policy.streams
            queue = _queue_for(event, policy.max_outbox_bytes)
            stream = Stream(request, queue, self, offer.scheduler, policy, self._clock, now)
            stream.open(self._caller.owner)
        except PlaitError as error:
            self._connection.forget(event.id)
            self._reject(event.id, event.method, error)
            return
        self._streams[event.id] = stream
        self._caller.account.stream_opened()
        self._reports.opened(event.id, event.method)

    def _reject(self, id: int, method: str, error: PlaitError) -> None:
        self.outbox.send_control(encode_server(Rejected(id, ErrorBody.of(error))))
        self._caller.account.stream_rejected()
        self._reports.rejected(id, method, error)

    # --- streams call back (StreamOwner) -------------------------------------------------------

    def on_stream_started(self, stream: Stream) -> None:
        self._caller.account.stream_started()
        self._reports.started(stream.id, stream.method)

    def on_first_item(self, stream: Stream, seconds: float) -> None:
        self._reports.first_item(stream.method, seconds)

    def on_stream_ended(self, stream: Stream, outcome: str, cancelled: Cancelled | None) -> None:
        del self._streams[stream.id]
        self._connection.forget(stream.id)
        self._caller.account.stream_ended(outcome, started=stream.started)
        self._reports.ended(stream.id, stream.method, stream.started, outcome, cancelled)
        # After this tick, so that the terminal itself is in the outbox first.
        if self._draining:
            asyncio.get_running_loop().call_soon(self._close_if_drained)

    def on_stream_released(self, id: int, times: Stopwatch, released: Released) -> None:
        self._reports.released(id, times, released)

    # --- ending --------------------------------------------------------------------------------

    def _cancel_all(self, by: CancelledBy) -> None:
        now = self._clock()
        for stream in list(self._streams.values()):
            stream.cancel(by, now)

    def _close_if_drained(self) -> None:
        if self._draining and not self._streams:
            self._close(CloseCode.GOING_AWAY, "server is shutting down")

    def _close(self, code: int, reason: str) -> None:
        """Close once what is queued has been sent; the first reason counts."""
        if self._closing is None:
            self._closing = (code, reason)
            self._cancel_all("disconnect")
            self._wake_writer()


def _queue_for(event: OpenReceived, max_bytes: int) -> StreamQueue:
    rank = RANK[event.method] + BATCH_RANKS * (event.priority == "batch")
    return StreamQueue(event.id, Credit(event.window), rank, max_bytes, event.method == "chat")
