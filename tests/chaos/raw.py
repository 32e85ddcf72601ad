"""A peer below the level of messages: bytes of a handshake and of frames, right or wrong.

Knows no connection's state: what is sent when is the test's choice.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import socket
import struct
from collections.abc import AsyncIterator

from websockets.frames import Frame, Opcode

READ_BYTES = 65536


def handshake(port: int, *lines: str, path: str = "/v1/ws") -> bytes:
    """A whole one; `lines` are further headers."""
    key = base64.b64encode(os.urandom(16)).decode()
    head = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: plait.v1",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode("latin-1")


def text(payload: str | bytes, *, fin: bool = True) -> bytes:
    return frame(Opcode.TEXT, payload if isinstance(payload, bytes) else payload.encode(), fin=fin)


def frame(opcode: Opcode, payload: bytes, *, fin: bool = True) -> bytes:
    """Masked, as a client's must be."""
    return Frame(opcode, payload, fin).serialize(mask=True)


class RawPeer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def read_head(self) -> bytes:
        """Up to the empty line after the headers of an answer."""
        return await self.reader.readuntil(b"\r\n\r\n")

    async def read_until(self, mark: bytes) -> None:
        """However much comes before it. Raises EOFError where it never comes."""
        received = b""
        while mark not in received:
            piece = await self.reader.read(READ_BYTES)
            if not piece:
                raise EOFError(received[-200:])
            received = received[-len(mark) :] + piece

    async def read_to_end(self) -> bytes:
        """All there is until the server closes, by whatever kind of close."""
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := await self.reader.read(READ_BYTES):
                received = (received + piece)[-READ_BYTES:]
        return received

    def reset(self) -> None:
        """A TCP RST now."""
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def raw_peer(port: int) -> AsyncIterator[RawPeer]:
    """Connected by TCP, and gone with the block."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield RawPeer(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def trickle(peer: RawPeer, data: bytes, rng: random.Random, seconds: float) -> None:
    """In pieces of random size, each a moment after the last."""
    begin = 0
    while begin < len(data):
        end = begin + rng.randint(1, 64)
        peer.send(data[begin:end])
        begin = end
        await asyncio.sleep(rng.uniform(0, seconds))
