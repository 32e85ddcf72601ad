"""A lean WebSocket client for measuring: it counts items, acknowledges them, and does little else.

Frames are cut out of what the kernel gives by hand and items are not decoded as JSON, so that the
client costs a fraction of what any server does. Its frames are masked with zeros: legal, and free
of work. Times are of the read that brought a frame, in nanoseconds of the monotonic clock, which
all processes of a machine share. Does NOT know what is measured, nor what a stream is opened for.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from plait.bench.serving import BenchError

ITEM = b'{"type":"item","id":'
SEQ, CONTENT, TAIL = b',"seq":', b'"content":"', b'"}}'
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
FINAL, MASKED = 0x80, 0x80
SHORT, MEDIUM = 125, 1 << 16
NO_MASK = bytes(4)
STAMP_DIGITS = 20  # a monotonic time and the space behind it
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Flow:
    """One stream as its reader sees it. `latest` is the last seq received, `confirmed` acked."""

    id: int
    window: int  # 0: it acknowledges nothing
    delay_seconds: float = 0.0  # how late its acks are
    stamps_ns: list[int] | None = None  # how old its items were, where they carry their time
    latest: int = 0
    acked: int = 0  # an ack is on its way
    confirmed: int = 0  # it has left
    most_outstanding: int = 0
    items: int = 0
    ended: str = ""


@dataclass(slots=True)
class Tally:
    """What the sockets of one measurement have counted. `messages`: by type, but for items."""

    item_bytes: int
    frames: int = 0
    items: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    on_start: Callable[[Flow], None] | None = None
    on_end: Callable[[Flow], None] | None = None
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, kind: str) -> None:
        self.messages[kind] += 1
        self._moved.set()

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        """Raises BenchError when a stream failed, or it takes more than WAIT_SECONDS."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not self.failure and not reached():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            counts = dict(self.messages)
            raise BenchError(f"{what}: not within {WAIT_SECONDS:g} s; so far {counts}") from None
        if self.failure:
            raise BenchError(f"{what}: {self.failure}")


async def elapse(seconds: float, came: Callable[[], bool], what: str) -> None:
    """For so long, and on a machine that is too busy until at least something came.

    Raises BenchError when nothing did within WAIT_SECONDS.
    """
    await asyncio.sleep(seconds)
    until = time.monotonic() + WAIT_SECONDS
    while not came():
        if time.monotonic() > until:
            raise BenchError(f"{what}: nothing came within {WAIT_SECONDS:g} s")
        await asyncio.sleep(LOOK_SECONDS)


class Socket(asyncio.Protocol):
    """One connection; opened by `connect`. `echoes`: each frame goes back as it came."""

    transport: asyncio.Transport

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.flows: dict[int, Flow] = {}
        self.echoes = False
        self.closed = asyncio.get_running_loop().create_future()
        self._upgraded = asyncio.get_running_loop().create_future()
        self._rest = b""
        self._out: list[bytes] = []
        self._last_id = 0
        self._hung_up = False
        self._why = ""

    async def upgrade(self, port: int, path: str, subprotocol: str | None) -> None:
        """Raises BenchError when the server refuses."""
        offered = f"Sec-WebSocket-Protocol: {subprotocol}\r\n" if subprotocol else ""
        request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Sec-WebSocket-Version: 13\r\n{offered}\r\n"
        )
        self.transport.write(request.encode())
        await self._upgraded

    def open(
        self,
        script: str,
        *,
        window: int,
        max_tokens: int,
        tell: bool = True,
        acks: bool = True,
    ) -> Flow:
        """Ask for a chat with this script; `tell` False leaves the frame to `flush`."""
        self._last_id += 1
        message = {
            "type": "open",
            "id": self._last_id,
            "method": "chat",
            "window": window,
            "params": {
                "messages": [{"role": "user", "content": script}],
                "max_tokens": max_tokens,
            },
        }
        flow = self.flows[self._last_id] = Flow(self._last_id, window if acks else 0)
        self._out.append(client_frame(msgspec.json.encode(message)))
        if tell:
            self.flush()
        return flow

    def cancel(self, flow: Flow, *, tell: bool = True) -> None:
        self._out.append(client_frame(b'{"type":"cancel","id":%d}' % flow.id))
        if tell:
            self.flush()

    def send(self, payload: bytes, times: int = 1) -> None:
        self.transport.write(client_frame(payload) * times)

    def flush(self) -> None:
        if self._out:
            self.transport.write(b"".join(self._out))
            self._out.clear()

    def abort(self) -> None:
        self._hung_up = True
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._upgraded.done():
            self._upgraded.set_exception(BenchError("the server closed instead of upgrading"))
        if not self.closed.done():
            self.closed.set_result(None)
        if not self._hung_up:
            self.tally.failure = self.tally.failure or f"the server closed: {self._why or exc}"
        self.tally.note("closed")

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if self._rest:
            data = self._rest + data
        if not self._upgraded.done():
            data = self._read_head(data)
        at, end = 0, len(data)
        while end - at >= 2:
            size, begin = data[at + 1], at + 2
            if size > SHORT:
                begin += 2 if size == SHORT + 1 else 8
                size = int.from_bytes(data[at + 2 : begin], "big")
            if end < begin + size or end < begin:
                break
            self._receive(data[at] & 0xF, data[begin : begin + size], now)
            at = begin + size
        self._rest = data[at:]
        self.flush()

    def _read_head(self, data: bytes) -> bytes:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            return data
        status = head.split(b"\r\n")[0].decode(errors="replace")
        if " 101 " in status:
            self._upgraded.set_result(None)
        else:
            self._upgraded.set_exception(BenchError(f"the server refused: {status}"))
        return rest

    def _receive(self, opcode: int, payload: bytes, now: int) -> None:
        if opcode == TEXT:
            if payload.startswith(ITEM):
                self._receive_item(payload, now)
            else:
                self._receive_message(payload)
        elif opcode == CLOSE:
            self._why = f"{int.from_bytes(payload[:2], 'big')} {payload[2:].decode()}"
        elif opcode == PING:
            self._out.append(client_frame(payload, PONG))

    def _receive_item(self, payload: bytes, now: int) -> None:
        tally = self.tally
        tally.frames += 1
        if self.echoes:
            tally.items += 1
            self._out.append(client_frame(payload))
            return
        middle = payload.index(SEQ, len(ITEM))
        end = payload.index(b",", middle + len(SEQ))
        begin = payload.index(CONTENT, end) + len(CONTENT)
        # A frame may hold several items' texts, all of one size; what else it holds is shorter.
        items = (len(payload) - begin - len(TAIL)) // tally.item_bytes
        tally.items += items
        flow = self.flows.get(int(payload[len(ITEM) : middle]))
        if flow is None:
            return  # of a bare server
        flow.items += items
        flow.latest = int(payload[middle + len(SEQ) : end])
        if flow.stamps_ns is not None:
            for at in range(begin, begin + items * tally.item_bytes, tally.item_bytes):
                flow.stamps_ns.append(now - int(payload[at : at + STAMP_DIGITS]))
        if flow.window:
            self._acknowledge(flow)

    def _acknowledge(self, flow: Flow) -> None:
        """By quarters of the window."""
        flow.most_outstanding = max(flow.most_outstanding, flow.latest - flow.confirmed)
        if flow.latest - flow.acked < (flow.window + 3) // 4:
            return
        flow.acked = flow.latest
        if flow.delay_seconds:
            later = asyncio.get_running_loop().call_later
            later(flow.delay_seconds, self._confirm, flow, flow.latest)
            return
        flow.confirmed = flow.latest
        self._out.append(client_frame(b'{"type":"ack","id":%d,"seq":%d}' % (flow.id, flow.latest)))

    def _confirm(self, flow: Flow, seq: int) -> None:
        if not flow.ended and not self.transport.is_closing():
            flow.confirmed = seq
            self.send(b'{"type":"ack","id":%d,"seq":%d}' % (flow.id, seq))

    def _receive_message(self, payload: bytes) -> None:
        message: dict[str, Any] = msgspec.json.decode(payload)
        kind = message["type"]
        flow = self.flows.get(message.get("id", 0))
        if flow is not None and kind in ("done", "cancelled", "error", "rejected"):
            del self.flows[flow.id]
            flow.ended = kind
            if kind in ("error", "rejected"):
                self.tally.failure = f"{kind}: {message['error']}"
            if self.tally.on_end is not None:
                self.tally.on_end(flow)
        elif flow is not None and kind == "started" and self.tally.on_start is not None:
            self.tally.on_start(flow)
        self.tally.note(kind)


def client_frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """One whole masked frame, below 64 KiB; the mask is zero."""
    size = len(payload)
    assert size < MEDIUM, "a frame of the bench is small"
    if size <= SHORT:
        return bytes((FINAL | opcode, MASKED | size)) + NO_MASK + payload
    head = bytes((FINAL | opcode, MASKED | SHORT + 1)) + size.to_bytes(2, "big")
    return head + NO_MASK + payload


async def connect(port: int, tally: Tally, path: str, subprotocol: str | None = None) -> Socket:
    """A connection to 127.0.0.1, upgraded. Raises BenchError when it cannot be had."""
    loop = asyncio.get_running_loop()
    try:
        _, socket = await loop.create_connection(lambda: Socket(tally), "127.0.0.1", port)
    except OSError as error:
        raise BenchError(f"port {port} cannot be connected to: {error}") from error
    await socket.upgrade(port, path, subprotocol)
    return socket
