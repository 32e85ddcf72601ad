"""One socket's books, without the socket: which ids live, what a frame means for them.

Ids are used up in the order they come: only the highest is remembered, plus the live streams. A
fault stays with the stream it names; only a frame that names none, or a flood, closes the socket.
Frames for ids that are not live (finished, rejected, never opened) are ignored: they crossed on
the wire, or concern nobody. Time is passed in, in seconds of a monotonic clock.
This module does NOT know credit, outboxes, engines or terminals: the session keeps those and calls
`forget` when a terminal is handed to the socket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plait.errors import (
    IdReused,
    InvalidMessage,
    InvalidRequest,
    PlaitError,
    RateLimited,
    TooManyStreams,
)
from plait.wire.close import CloseCode, close_reason
from plait.wire.codec import BadField, decode_client, decode_params
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
from plait.wire.frames import VERSION, BinaryKind, Undecodable, decode_binary
from plait.wire.input import InputPort, input_mistake, one_input_needed, port_for
from plait.wire.messages import (
    PARAMS,
    Ack,
    Cancel,
    ClientMessage,
    End,
    Input,
    Limits,
    Open,
    Ping,
)
from plait.wire.rate import TokenBucket

OPEN_BURST_SECONDS = 2
FLOOD_FACTOR = 20  # messages that cost us an answer, per second, in units of opens_per_second
FLOOD_BURST_SECONDS = 2
BAD_MESSAGE_CHARACTERS = 4096  # a bad message counts once more for each so many


@dataclass(slots=True)
class LiveStream:
    method: str
    port: InputPort
    faulted: bool = False


class Connection:
    """Feed it frames in order; act on the events in order. Never raises for what a peer sends."""

    def __init__(self, limits: Limits) -> None:
        rate = limits.opens_per_second
        self._limits = limits
        self._highest_id = 0
        self._live: dict[int, LiveStream] = {}
        self._opens = TokenBucket(rate, max(1.0, rate * OPEN_BURST_SECONDS))
        flood = rate * FLOOD_FACTOR
        self._answers = TokenBucket(flood, max(1.0, flood * FLOOD_BURST_SECONDS))
        self._closing = False

    @property
    def highest_id(self) -> int:
        return self._highest_id

    @property
    def live_ids(self) -> frozenset[int]:
        return frozenset(self._live)

    def forget(self, id: int) -> None:
        """The stream's terminal (or `rejected`) was handed to the socket. Unknown ids: no-op."""
        self._live.pop(id, None)

    def receive_text(self, text: str | bytes, now: float) -> list[ConnectionEvent]:
        if self._closing:
            return []
        if _exceeds(text, self._limits.max_text_bytes):
            return self._close_too_big("text", self._limits.max_text_bytes)
        try:
            message = decode_client(text)
        except Undecodable as error:
            return self._close(error.code, error.reason)
        except BadField as error:
            return self._receive_bad(error, len(text), now)
        if isinstance(message, (Open, Cancel, Ping)) and not self._answers.take(now):
            return self._close_flood()
        if isinstance(message, Open):
            return [self._receive_open(message, now)]
        return self._receive(message)

    def receive_binary(self, data: bytes | memoryview, now: float) -> list[ConnectionEvent]:
        """`now` is unused so far: uploads are bounded by their credit, not by a rate."""
        if self._closing:
            return []
        if len(data) > self._limits.max_binary_bytes:
            return self._close_too_big("binary", self._limits.max_binary_bytes)
        try:
            frame = decode_binary(data)
        except Undecodable as error:
            return self._close(error.code, error.reason)
        stream = self._live.get(frame.id)
        if stream is None or stream.faulted:
            return []
        if frame.version != VERSION or frame.kind != BinaryKind.AUDIO_IN:
            return self._fault(frame.id, stream, _bad_header(frame.version, frame.kind))
        mistake = input_mistake(stream.method, stream.port, InputPort.AUDIO)
        if mistake is not None:
            return self._fault(frame.id, stream, mistake)
        return [AudioReceived(frame.id, frame.payload, frame.flags)]

    # --- opens ---------------------------------------------------------------------------------

    def _receive_open(self, message: Open, now: float) -> OpenReceived | OpenRejected:
        try:
            self._use_up(message.id)
            self._admit(now)
            _refuse_resuming(message.resume_seconds)
            params = decode_params(message.method, message.params)
        except PlaitError as error:
            method = message.method if message.method in PARAMS else "other"
            return OpenRejected(message.id, error, method)
        self._live[message.id] = LiveStream(message.method, port_for(params))
        return OpenReceived(
            message.id,
            message.method,
            params,
            message.window,
            message.priority,
            message.deadline_ms,
        )

    def _receive_bad_open(self, bad: BadField) -> OpenRejected:
        try:
            self._use_up(bad.stream_id)
        except IdReused as error:
            return OpenRejected(bad.stream_id, error)
        return OpenRejected(bad.stream_id, bad.error)

    def _use_up(self, id: int) -> None:
        """Ids at or below the highest are spent, whatever became of them. Raises IdReused."""
        if id <= self._highest_id:
            raise IdReused(
                f"id {id}: ids must rise, and {self._highest_id} was used already. Open with a"
                " higher id.",
                param="id",
                data={"highest_id": self._highest_id},
            )
        self._highest_id = id

    def _admit(self, now: float) -> None:
        """Raises RateLimited or TooManyStreams."""
        if not self._opens.take(now):
            raise RateLimited(
                f"more than {self._limits.opens_per_second:g} opens per second on this connection."
                " Wait retry_after_ms.",
                retry_after_ms=max(1, math.ceil(self._opens.wait_seconds * 1000)),
            )
        if len(self._live) >= self._limits.max_streams:
            raise TooManyStreams(
                f"{len(self._live)} streams live on this connection, and {self._limits.max_streams}"
                " is the limit. Wait for one to end, or cancel one.",
                data={"limit": self._limits.max_streams},
            )

    # --- everything else -----------------------------------------------------------------------

    def _receive(self, message: ClientMessage) -> list[ConnectionEvent]:
        if isinstance(message, Ping):
            return [PingReceived(message.n)]
        stream = self._live.get(message.id)
        if stream is None:
            return []
        if isinstance(message, Cancel):
            return [CancelReceived(message.id, message.heard_ms)]
        if stream.faulted:
            return []
        if isinstance(message, Ack):
            return [AckReceived(message.id, message.seq, message.window)]
        if isinstance(message, End):
            return self._receive_end(message.id, stream)
        assert isinstance(message, Input)
        return self._receive_input(message, stream)

    def _receive_end(self, id: int, stream: LiveStream) -> list[ConnectionEvent]:
        if stream.port in (InputPort.NONE, InputPort.ENDED):
            return []
        stream.port = InputPort.ENDED
        return [EndReceived(id)]

    def _receive_input(self, message: Input, stream: LiveStream) -> list[ConnectionEvent]:
        if message.text is not None and message.texts is not None:
            mistake: InvalidRequest | None = one_input_needed(stream.port, given=True)
        elif message.text is None and message.texts is None:
            mistake = one_input_needed(stream.port, given=False)
        else:
            came = InputPort.TEXTS if message.text is None else InputPort.TEXT
            mistake = input_mistake(stream.method, stream.port, came)
        if mistake is not None:
            return self._fault(message.id, stream, mistake)
        return [InputReceived(message.id, message.text, message.texts)]

    def _receive_bad(self, bad: BadField, size: int, now: float) -> list[ConnectionEvent]:
        """To find the fault takes longer than to read a good message, the more the longer it is."""
        if not self._answers.take(now, 1 + size // BAD_MESSAGE_CHARACTERS):
            return self._close_flood()
        if bad.type == "open":
            return [self._receive_bad_open(bad)]
        stream = self._live.get(bad.stream_id)
        return [] if stream is None else self._fault(bad.stream_id, stream, bad.error)

    def _fault(self, id: int, stream: LiveStream, error: PlaitError) -> list[ConnectionEvent]:
        if stream.faulted:
            return []
        stream.faulted = True
        return [StreamFaulted(id, error)]

    # --- closing -------------------------------------------------------------------------------

    def _close(self, code: CloseCode, reason: str) -> list[ConnectionEvent]:
        self._closing = True
        return [CloseRequired(code, close_reason(reason))]

    def _close_too_big(self, what: str, limit_bytes: int) -> list[ConnectionEvent]:
        return self._close(CloseCode.TOO_BIG, f"{what} frame larger than {limit_bytes} bytes")

    def _close_flood(self) -> list[ConnectionEvent]:
        return self._close(
            CloseCode.FLOOD, "too many opens, cancels, pings or bad messages per second"
        )


def _exceeds(text: str | bytes, limit_bytes: int) -> bool:
    """Whether `text` takes more than `limit_bytes` in UTF-8, encoding it only if it may."""
    if isinstance(text, bytes) or len(text) > limit_bytes or text.isascii():
        return len(text) > limit_bytes
    return len(text) * 3 > limit_bytes and len(text.encode("utf-8", "replace")) > limit_bytes


def _refuse_resuming(seconds: float) -> None:
    if seconds > 0:
        raise InvalidRequest(
            f"resume_seconds: {seconds:g}, but this server cannot resume streams. Leave it out, or"
            " send 0.",
            param="resume_seconds",
        )


def _bad_header(version: int, kind: int) -> PlaitError:
    param = "version" if version != VERSION else "kind"
    return InvalidMessage(
        f"binary frame of version {version}, kind {kind}: clients send version {VERSION}, kind"
        f" {int(BinaryKind.AUDIO_IN)} (audio_in).",
        param=param,
    )
