"""A small server of plait.v1 that chats, and can be told to break one promise at a time.

Real sockets, no engine: an answer is "w0 w1 …". Without a quirk it keeps what the cases of
`test_broken_servers` ask for; it is no more of plait.v1 than they need.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

Message = dict[str, Any]

LIMITS = {
    "max_streams": 4,
    "max_queued": 8,
    "max_text_bytes": 4096,
    "max_binary_bytes": 4096,
    "window": 64,
    "opens_per_second": 5,
    "ping_seconds": 10,
}
TIMING = {"queued_ms": 0.0, "first_item_ms": None, "total_ms": 100.0, "paused_ms": 0.0}
FLOOD = 200  # pings


def error(code: str, **fields: Any) -> Message:
    return {"code": code, "class": "client", "message": "No.", "retryable": False} | fields


@dataclass(slots=True)
class SmallStream:
    id: int
    tokens: int
    limit: int
    window: int
    seq: int = 0
    task: asyncio.Task[None] | None = None
    credit: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def timing(self) -> Message:
        return TIMING | {"first_item_ms": 1.0 if self.seq else None}


class SmallConnection:
    """One client, one promise broken at most."""

    def __init__(self, ws: ServerConnection, quirk: str) -> None:
        self._ws = ws
        self._quirk = quirk
        self._streams: dict[int, SmallStream] = {}
        self._highest = 0
        self._pings = 0
        self._hear: dict[str, Callable[[Message], None]] = {
            "open": self._open,
            "ack": self._ack,
            "cancel": self._cancel,
            "ping": self._ping,
            "end": lambda message: None,
        }

    async def run(self) -> None:
        if self._quirk == "a pong before welcome":
            self._say({"type": "pong", "n": 1})
        methods = {"chat": {"models": ["small"]}}
        limits = dict(LIMITS) if self._quirk != "limits without window" else {"max_streams": 4}
        welcome: Message = {"type": "welcome", "protocol": "plait.v1", "session": str(id(self))}
        welcome |= {"server": "small/1", "limits": limits, "methods": methods}
        self._say(welcome | {"capabilities": ["chat"]})
        try:
            async for text in self._ws:
                await self._take(text)
        except ConnectionClosed:
            return
        finally:
            for stream in self._streams.values():
                if stream.task:
                    stream.task.cancel()

    async def _take(self, text: str | bytes) -> None:
        message = json.loads(text)
        self._hear[message["type"]](message)
        if self._pings > FLOOD and self._quirk != "no end of a flood":
            await self._ws.close(4429)
        if self._quirk == "a bad open closes" and message.get("priority") == "urgent":
            await self._ws.close(4400)

    def _say(self, message: Message) -> None:
        if not self._ws.transport.is_closing():
            frame = Frame(Opcode.TEXT, json.dumps(message).encode())
            self._ws.transport.write(frame.serialize(mask=False))

    # --- streams ---------------------------------------------------------------------------------

    def _open(self, message: Message) -> None:
        id, code = message["id"], ""
        fields: Message = {}
        if id <= self._highest:
            code, fields = "id_reused", {"data": {"highest_id": self._highest}}
            code = "invalid_request" if self._quirk == "another code for an old id" else code
        elif message.get("method") != "chat":
            code = "unsupported_method"
        elif param := self._bad_field(message):
            code, fields = "invalid_request", {"param": param}
        elif message["params"].get("model", "small") != "small":
            code = "model_not_found"
        self._highest = max(self._highest, id)
        if code:
            body = error(code, **fields)
            if self._quirk == "errors of another class":
                body["class"] = "capacity"
            self._say({"type": "rejected", "id": id, "error": body})
            return
        self._start(message)

    def _bad_field(self, message: Message) -> str:
        window, deadline = message.get("window", 64), message.get("deadline_ms") or 1
        checks = {
            "priority": message.get("priority", "batch") in ("batch", "interactive"),
            "window": type(window) is int and 0 <= window <= 256,
            "params": isinstance(message.get("params"), dict),
            "resume_seconds": message.get("resume_seconds", 0) == 0,
            "deadline_ms": type(deadline) is int and 1 <= deadline <= 86_400_000,
        }
        return next((name for name, holds in checks.items() if not holds), "")

    def _start(self, message: Message) -> None:
        window = message.get("window", 64)
        tokens = message["params"].get("max_tokens", 400)
        stream = SmallStream(message["id"], tokens, window or 10**9, window)
        self._streams[stream.id] = stream
        self._say({"type": "accepted", "id": stream.id, "phase": "preparing", "position": 0})
        if self._quirk == "rejected after accepted":
            self._say({"type": "rejected", "id": stream.id, "error": error("invalid_request")})
        if self._quirk == "started at once":
            self._say_started(stream)
        stream.task = asyncio.create_task(self._answer(stream))
        if message.get("deadline_ms") and self._quirk != "no deadlines":
            loop = asyncio.get_running_loop()
            loop.call_later(message["deadline_ms"] / 1000, self._stop, stream, "deadline")

    def _say_started(self, stream: SmallStream) -> None:
        started = {"type": "started", "id": stream.id, "model": "small"}
        self._say(started | {"max_tokens": stream.tokens})

    async def _answer(self, stream: SmallStream) -> None:
        await asyncio.sleep(0.002)
        if self._quirk != "started at once":
            self._say_started(stream)
        while stream.seq < stream.tokens:
            while stream.seq >= stream.limit and self._quirk != "windows exceeded":
                stream.credit.clear()
                await stream.credit.wait()
            self._say_item(stream)
            await asyncio.sleep(0.002)
        self._end(stream, {"type": "done", "finish_reason": "length"})

    def _say_item(self, stream: SmallStream) -> None:
        stream.seq += 2 if self._quirk == "a gap" and stream.seq == 2 else 1
        data = {"content": f"w{stream.seq} "}
        self._say({"type": "item", "id": stream.id, "seq": stream.seq, "data": data})

    def _end(self, stream: SmallStream, terminal: Message) -> None:
        if self._streams.pop(stream.id, None) is None:
            return
        if stream.task:
            stream.task.cancel()
        seq = stream.seq + (self._quirk == "a terminal of another seq")
        usage = {"prompt_tokens": 3, "completion_tokens": stream.seq}
        common = {"id": stream.id, "seq": seq, "usage": usage, "timing": stream.timing}
        if self._quirk == "a terminal without usage":
            del common["usage"]
        self._say(terminal | common)
        if self._quirk == "two terminals":
            self._say(terminal | common)
        if self._quirk == "an item after the terminal":
            self._say_item(stream)

    # --- what else a client says -----------------------------------------------------------------

    def _ack(self, message: Message) -> None:
        stream = self._streams.get(message["id"])
        if stream is None:
            if self._quirk == "an error for a late ack":
                late = {"type": "error", "id": message["id"], "seq": 0, "usage": {}}
                self._say(late | {"error": error("invalid_request"), "timing": TIMING})
            return
        seq = message["seq"]
        if seq > stream.seq and self._quirk != "acks of anything":
            self._end(stream, {"type": "error", "error": error("invalid_request", param="seq")})
            return
        stream.window = message.get("window") or stream.window
        stream.limit = max(stream.limit, seq + stream.window)
        stream.credit.set()

    def _cancel(self, message: Message) -> None:
        stream = self._streams.get(message["id"])
        if stream is None or self._quirk == "no cancels":
            return
        if self._quirk == "items after a cancel":
            stream.limit += 2
            stream.credit.set()
            asyncio.get_running_loop().call_later(0.05, self._stop, stream, "client")
            return
        self._stop(stream, "client")

    def _stop(self, stream: SmallStream, by: str) -> None:
        by = "slow" if self._quirk == "cancelled by another" else by
        honest = {"released": True, "stop_ms": 0.5, "wasted": {"tokens": 0}}
        if self._quirk == "stop_ms of what was not released":
            honest["released"] = False
        self._end(stream, {"type": "cancelled", "by": by} | honest)

    def _ping(self, message: Message) -> None:
        self._pings += 1
        self._say({"type": "pong", "n": message["n"] + (self._quirk == "pongs of another n")})


@contextlib.asynccontextmanager
async def small_server(quirk: str = "") -> AsyncIterator[str]:
    """Its URL, until the block ends."""

    async def handle(ws: ServerConnection) -> None:
        await SmallConnection(ws, quirk).run()

    def admit(ws: ServerConnection, request: Request) -> Response | None:
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        origin = request.headers.get("Origin")
        if "?" in request.path and quirk != "tokens in URLs":
            return ws.respond(HTTPStatus.BAD_REQUEST, "")
        if origin is not None and quirk != "any origin":
            return ws.respond(HTTPStatus.FORBIDDEN, "")
        if "plait.v1" not in offered.split(", ") and quirk != "any subprotocol":
            return ws.respond(HTTPStatus.BAD_REQUEST, "")
        return None

    server = serve(
        handle,
        "127.0.0.1",
        0,
        process_request=admit,
        select_subprotocol=lambda ws, offered: _plait(offered),
        compression="deflate" if quirk == "deflate" else None,
        max_size=None if quirk == "frames of any size" else LIMITS["max_text_bytes"],
        ping_interval=None,
        close_timeout=1,
    )
    async with server as running:
        port = next(iter(running.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}"


def _plait(offered: Any) -> Subprotocol | None:
    return Subprotocol("plait.v1") if "plait.v1" in offered else None
