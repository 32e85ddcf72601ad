"""The fuzzer's own books of a connection, of credit and of rates, kept in the plainest way.

`play` takes an input's steps one by one through a real connection, and through these books; where
they disagree an assertion fails. Time is what the steps say. Does NOT know how inputs are made.
"""

from __future__ import annotations

import json
from typing import Any

from plait.errors import InputOverflow, InvalidRequest
from plait.wire.codec import decode_binary
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
from plait.wire.frames import HEADER_BYTES
from plait.wire.messages import MAX_WINDOW, Limits
from plait.wire.window import Credit, InputCredit
from tests.fuzz import checks, script

OF_LIVE = (AckReceived, AudioReceived, CancelReceived, EndReceived, InputReceived, StreamFaulted)


def play(data: bytes) -> None:
    """One input. Raises AssertionError, or what a fault of ours lets out."""
    books = Books(limits_of(b""))
    for step in script.divided(data):
        kind, rest = step[:1], step[1:]
        if kind == script.LIMITS:
            books = Books(limits_of(rest))
        elif kind == script.WAIT:
            books.now += sum(rest[:2]) / 50
        elif kind == script.FORGET:
            books.forget(rest[0] if rest else 0)
        elif kind == script.BINARY:
            checks.check_binary(rest)
            books.take_binary(rest)
        elif kind == script.SERVER:
            checks.check_server(readable(rest))
        elif kind == script.PARAMS_OF:
            checks.check_params(script.METHODS.get(rest[:1], "paint"), rest[1:])
        elif kind == script.CREDIT:
            spend(rest)
        else:
            text = rest if kind == script.TEXT_BYTES else readable(rest)
            checks.check_client(text)
            books.take_text(text)


def readable(data: bytes) -> str | bytes:
    """As a socket hands it on: text where it is UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def limits_of(data: bytes) -> Limits:
    """Limits from four bytes; small ones mostly, as those are reached."""
    streams, text, binary, rate = (*data[:4], *b"\x04\0\0\0")[:4]
    return Limits(
        max_streams=1 + streams % 8,
        max_queued=64,
        max_text_bytes=(1 << 20, 1 << 16, 256, 80)[text % 4],
        max_binary_bytes=(1 << 18, 1024, 32, 16)[binary % 4],
        window=64,
        opens_per_second=(100.0, 3.0, 1.0, 0.1)[rate % 4],
        ping_seconds=10,
    )


class Books:
    """What a connection must think of its ids; `now` in seconds."""

    def __init__(self, limits: Limits) -> None:
        self.now = 1000.0
        self._limits = limits
        self._connection = Connection(limits)
        self._live: dict[int, str] = {}
        self._faulted: set[int] = set()
        self._ended: set[int] = set()
        self._highest = 0
        self._closed = False

    def forget(self, choice: int) -> None:
        """The terminal of one of the live streams was sent."""
        ids = sorted(self._live)
        id = ids[choice % len(ids)] if ids else choice
        self._connection.forget(id)
        self._live.pop(id, None)
        self._compare()

    def take_text(self, text: str | bytes) -> None:
        asked = _asked_open(text)
        was_closed = self._closed
        events = self._connection.receive_text(text, self.now)
        self._follow(events)
        if asked is not None and not was_closed:
            assert len(events) == 1, "an open is accepted or rejected, or the socket closes"
            assert isinstance(events[0], (OpenReceived, OpenRejected, CloseRequired))

    def take_binary(self, frame: bytes) -> None:
        events = self._connection.receive_binary(frame, self.now)
        self._follow(events)
        if HEADER_BYTES <= len(frame) <= self._limits.max_binary_bytes:
            assert all(getattr(e, "id", None) == decode_binary(frame).id for e in events)

    def _follow(self, events: list[ConnectionEvent]) -> None:
        assert len(events) <= 1, events
        for event in events:
            assert not self._closed, "a closed connection is silent"
            if isinstance(event, CloseRequired):
                checks.check_close(event.code, event.reason)
                self._closed = True
            elif isinstance(event, OpenReceived):
                assert event.id > self._highest
                assert len(self._live) < self._limits.max_streams
                assert 0 <= event.window <= MAX_WINDOW
                self._live[event.id] = event.method
            elif isinstance(event, OpenRejected):
                checks.check_error(event.error)
                assert (event.error.code == "id_reused") == (event.id <= self._highest)
            elif not isinstance(event, PingReceived):
                self._follow_live(event)
            if isinstance(event, (OpenReceived, OpenRejected)):
                self._highest = max(self._highest, event.id)
        self._compare()

    def _follow_live(self, event: ConnectionEvent) -> None:
        """Of a live stream; once it is faulted, only a cancel still means something."""
        assert isinstance(event, OF_LIVE)
        assert event.id in self._live
        assert isinstance(event, CancelReceived) or event.id not in self._faulted
        if isinstance(event, StreamFaulted):
            checks.check_error(event.error)
            self._faulted.add(event.id)
        elif isinstance(event, (AudioReceived, EndReceived, InputReceived)):
            assert event.id not in self._ended, "input, or a second end, after the end"
            self._check_kind(event)
        if isinstance(event, EndReceived):
            self._ended.add(event.id)

    def _check_kind(self, event: AudioReceived | EndReceived | InputReceived) -> None:
        method = self._live[event.id]
        if isinstance(event, AudioReceived):
            assert method == "transcribe"
        elif isinstance(event, EndReceived):
            assert method != "chat"
        else:
            assert (event.text is None) == (method == "embed")
            assert (event.texts is None) == (method == "synthesize")

    def _compare(self) -> None:
        assert self._connection.live_ids == self._live.keys()
        assert self._connection.highest_id == self._highest


def _asked_open(text: str | bytes) -> int | None:
    """The id of an open that the standard library can read."""
    try:
        value: Any = json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("type") != "open":
        return None
    id = value.get("id")
    return id if type(id) is int else None


# --- credit ------------------------------------------------------------------------------------


def spend(data: bytes) -> None:
    """Sends, acks and uploads by the bytes: each pair is what is done and how much."""
    window, upload = (*data[:2], 1, 1)[:2]
    down, up = Down(window), Up(1 + upload)
    for kind, amount in zip(data[2::2], data[3::2], strict=False):
        if kind % 4 == 0:
            down.send(amount)
        elif kind % 4 == 1:
            down.ack(amount, None if kind & 4 else 1 + kind)
        elif kind % 4 == 2:
            up.receive(amount)
        else:
            up.consume(amount)


class Down:
    """Items of one stream, as PROTOCOL.md §5 says it: what may be sent is the most ever granted."""

    def __init__(self, window: int) -> None:
        self._credit = Credit(window)
        self._window, self._granted = window, window
        self._sent = self._consumed = 0

    def send(self, items: int) -> None:
        for _ in range(items):
            free = self._window == 0
            assert self._credit.can_send == (free or self._sent < self._granted)
            if not self._credit.can_send:
                return
            self._sent += 1
            assert self._credit.sent() == self._sent
            assert free or self._credit.outstanding <= MAX_WINDOW

    def ack(self, back: int, window: int | None) -> None:
        """Of `back` - 2 items before the last one sent, so also of some never sent."""
        seq = max(0, self._sent + 2 - back)
        try:
            self._credit.receive_ack(seq, window)
        except InvalidRequest as error:
            assert seq > self._sent
            checks.check_error(error)
            return
        assert seq <= self._sent
        if self._window and seq >= self._consumed:
            self._consumed = seq
            self._window = window or self._window
            self._granted = max(self._granted, seq + self._window)
        assert self._credit.last_sent == self._sent
        assert self._credit.consumed == (self._consumed if self._window else self._sent)


class Up:
    """Bytes of one upload: never more unconfirmed than its window, and all is confirmed in time."""

    def __init__(self, window_bytes: int) -> None:
        self._credit = InputCredit(window_bytes)
        self._window = window_bytes
        self._received = self._consumed = self._confirmed = 0

    def receive(self, size: int) -> None:
        fits = self._received + size <= self._confirmed + self._window
        try:
            self._credit.receive(size)
        except InputOverflow as error:
            assert not fits
            checks.check_error(error)
            return
        assert fits
        self._received += size
        assert self._credit.pending_bytes == self._received - self._consumed

    def consume(self, size: int) -> None:
        size = min(size, self._received - self._consumed)
        self._consumed += size
        confirmed = self._credit.consume(size)
        if confirmed is not None:
            assert self._confirmed < confirmed == self._consumed
            self._confirmed = confirmed
        if self._consumed == self._received:
            assert self._confirmed == self._received, "a client would wait for ever"
