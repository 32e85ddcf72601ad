"""A raw peer: a real WebSocket that says exactly what a case wants, right or wrong.

It always reads, passes every frame to a `Checker` and keeps the last of both directions for the
report. What it sends goes out as one segment per call, unless that is too large for one. Does NOT
know what a case expects.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame as SocketFrame, Opcode

from plait.conformance.cases import Broken
from plait.conformance.checker import Checker
from plait.conformance.heard import Heard, Message
from plait.conformance.media import read_frame
from plait.conformance.target import Connection

T = TypeVar("T")

KEPT_FRAMES = 12
SHOWN_CHARACTERS = 240
CLEANUP_SECONDS = 5.0


class Peer:
    """One connection. `welcome` is empty until it came."""

    def __init__(self, ws: Connection, seconds: float) -> None:
        self.ws = ws
        self.checker = Checker()
        self.welcome: Message = {}
        self.streams: dict[int, Heard] = {}
        self.pongs: deque[int] = deque(maxlen=256)
        self.others: list[Message] = []  # neither of a stream, nor a pong
        self.close_code: int | None = None
        self.closed = False
        self.last: deque[str] = deque(maxlen=KEPT_FRAMES)
        self._seconds = seconds
        self._begin = time.monotonic()
        self._next_id = 0
        self._pings = 0
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    # --- saying ----------------------------------------------------------------------------------

    def say(self, *messages: Message | str | bytes) -> None:
        """Send all of them in one segment; a str is sent as it is, right or wrong."""
        frames = []
        for message in messages:
            data = json.dumps(message) if isinstance(message, dict) else message
            self._note_sent(message, data)
            opcode = Opcode.BINARY if isinstance(data, bytes) else Opcode.TEXT
            payload = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
            frames.append(SocketFrame(opcode, payload))
        self.write(frame.serialize(mask=True) for frame in frames)

    def write(self, data: Iterable[bytes]) -> None:
        """Bytes as they are; into a closed socket they go nowhere."""
        transport: asyncio.Transport = self.ws.transport
        if not transport.is_closing():
            transport.write(b"".join(data))

    def opening(self, method: str, params: Message, **fields: Any) -> Message:
        """An `open` with the next free id, not sent yet; its stream is listened to."""
        id = fields.pop("id", self._next_id + 1)
        acks = fields.pop("acks", True)
        self._next_id = max(self._next_id, id)
        self.streams.setdefault(id, Heard(id, method, acks))
        return {"type": "open", "id": id, "method": method, "params": params, **fields}

    def open(self, method: str, params: Message, **fields: Any) -> Heard:
        """`acks=False`: items are not acknowledged; `fields` as in `open`."""
        message = self.opening(method, params, **fields)
        self.say(message)
        return self.streams[message["id"]]

    def next_id(self) -> int:
        """Uses it up here: for opens that are written by hand."""
        self._next_id += 1
        self.streams[self._next_id] = Heard(self._next_id, "")
        self.checker.reserve(self._next_id)
        return self._next_id

    def cancel(self, *streams: Heard, **fields: Any) -> None:
        """Cancel, and ping in the same segment: no item may come after that pong."""
        cancels = [{"type": "cancel", "id": stream.id, **fields} for stream in streams]
        self.say(*cancels, self._ping())

    def ack(self, stream: Heard, seq: int | None = None, **fields: Any) -> None:
        self.say(
            {"type": "ack", "id": stream.id, "seq": stream.seq if seq is None else seq} | fields
        )

    def end(self, stream: Heard) -> None:
        self.say({"type": "end", "id": stream.id})

    def _ping(self) -> Message:
        self._pings += 1
        return {"type": "ping", "n": self._pings}

    # --- hearing ---------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], T], what: str, seconds: float | None = None) -> T:
        """The first true value of the condition; Broken after the time-out, or when closed."""
        limit = self._seconds if seconds is None else seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while not (found := condition()):
                    if self.closed:
                        raise Broken(what, f"the connection closed with {self.close_code}")
                    self._news.clear()
                    await self._news.wait()
                return found
        raise Broken(what, f"nothing of the kind within {limit:g} s")

    async def barrier(self, *before: Message | str | bytes) -> None:
        """Say that, and a ping; returns with its pong: all of it has been read by then."""
        ping = self._ping()
        self.say(*before, ping)
        await self.until(lambda: ping["n"] in self.pongs, f"pong {ping['n']} (§1 liveness)")

    async def answered(self, *streams: Heard) -> None:
        """Until each of them was accepted or refused."""
        for stream in streams:
            what = f"`accepted` or `rejected` for stream {stream.id}"
            await self.until(partial(_answered, stream), what)

    async def ended(self, *streams: Heard, seconds: float | None = None) -> None:
        """Until each of them was refused or has its terminal."""
        for stream in streams:
            await self.until(partial(_ended, stream), f"a terminal for stream {stream.id}", seconds)

    async def started(self, stream: Heard) -> None:
        """Until `started`, or its end: a fast engine may have been faster."""
        await self.until(
            lambda: stream.started or stream.ended, f"`started` for stream {stream.id}"
        )

    async def items(self, stream: Heard, count: int) -> None:
        """Until so many items came, or its end."""
        await self.until(
            lambda: len(stream.items) >= count or stream.ended,
            f"{count} items of stream {stream.id}",
        )

    async def closes(self, expected: int, what: str, seconds: float | None = None) -> None:
        """Broken unless the server closes with that code."""
        await self.until(lambda: self.closed, f"close {expected} for {what}", seconds)
        if self.close_code != expected:
            raise Broken(f"close {expected} for {what}", f"close {self.close_code}")

    # --- leaving ---------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Cancel what still runs, wait for it, close: the next case finds an idle server."""
        with contextlib.suppress(Broken):
            live = [self.streams[id] for id in self.checker.unended() if id in self.streams]
            if live and not self.closed:
                self.cancel(*live)
                await self.ended(*live, seconds=min(CLEANUP_SECONDS, self._seconds))
        await self.drop()

    async def drop(self) -> None:
        """Close 1000, whatever runs."""
        await self.ws.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    def reset(self) -> None:
        """Vanish with a TCP RST, as a killed process with unread data does."""
        sock = self.ws.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.ws.transport.abort()

    # --- reading ---------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while True:
                self._take(await self.ws.recv())
                self._news.set()
        except ConnectionClosed:
            self.close_code = self.ws.close_code
        finally:
            self.closed = True
            self._news.set()

    def _take(self, frame: str | bytes) -> None:
        self._note("<", frame)
        try:
            message = self.checker.received(frame)
            if isinstance(frame, bytes):
                self._take_binary(frame)
            elif message is not None:
                self._take_message(message)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # Rules take messages as PROTOCOL.md gives them: this one had another shape.
            self.checker.faults.append(("§2", "messages of the documented shape", f"{error!r}"))

    def _take_binary(self, data: bytes) -> None:
        with contextlib.suppress(struct.error):
            frame = read_frame(data)
            if stream := self.streams.get(frame.id):
                stream.take_frame(frame)
                self._acknowledge(stream)

    def _take_message(self, message: Message) -> None:
        if message["type"] == "pong":
            self.pongs.append(message.get("n", -1))
        elif message["type"] == "welcome":
            self.welcome = message
        elif stream := self.streams.get(message.get("id", 0)):
            stream.take(message)
            if message["type"] == "item":
                self._acknowledge(stream)
        else:
            self.others.append(message)

    def _acknowledge(self, stream: Heard) -> None:
        if stream.acks:
            self.say({"type": "ack", "id": stream.id, "seq": stream.seq})

    # --- notes -----------------------------------------------------------------------------------

    def _note_sent(self, message: Message | str | bytes, data: str | bytes) -> None:
        self._note(">", data)
        if isinstance(message, str):
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(message)
        if isinstance(message, dict):
            self.checker.sent(message)

    def _note(self, way: str, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            shown = f"{len(frame)} bytes, header {frame[:16].hex()}"
        else:
            shown = frame[:SHOWN_CHARACTERS] + ("…" if len(frame) > SHOWN_CHARACTERS else "")
        at = time.monotonic() - self._begin
        self.last.append(f"{at:8.3f} {way} {shown}")


def _answered(stream: Heard) -> bool:
    return stream.answered


def _ended(stream: Heard) -> str:
    return stream.ended
