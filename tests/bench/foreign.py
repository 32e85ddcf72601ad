"""A tiny OpenAI-compatible server on a real socket, which sees how its clients leave."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from plait.bench.abandon.http_exchange import Address

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
MODELS = b'{"data": [{"id": "tiny"}]}'


def chunk(text: str = "", **more: Any) -> bytes:
    choices = [{"delta": {"content": text}, "finish_reason": more.pop("finish_reason", None)}]
    return b"data: " + json.dumps({"choices": choices, **more}).encode() + b"\n\n"


def whole(text: bytes, kind: bytes = b"application/json", status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    return head % (status, kind, len(text)) + text


END = chunk(finish_reason="length") + b"data: [DONE]\n\n"


class Foreign:
    """Says `answer` to each completion and then waits for its client to leave, unless `ends`."""

    def __init__(self, answer: bytes, *, ends: bool = False, models: bytes = MODELS) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.left: asyncio.Queue[str] = asyncio.Queue()  # "end of file" or "reset", per client
        self._answer = answer
        self._ends = ends
        self._models = models

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                writer.write(
                    whole(self._models) if b"models" in head else whole(b"", status=b"404 No")
                )
                return
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            self.bodies.append(json.loads(await reader.readexactly(length)))
            writer.write(self._answer)
            if not self._ends:
                self.left.put_nowait(await _how_it_left(reader))


async def _how_it_left(reader: asyncio.StreamReader) -> str:
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        return "reset"
    return "end of file"


@contextlib.asynccontextmanager
async def serving(foreign: Foreign) -> AsyncIterator[Address]:
    server = await asyncio.start_server(foreign.serve, "127.0.0.1", 0)
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
