"""A server for the client to talk to: a real socket, the real codec, and a script as its mind."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from plait.wire.codec import (
    BinaryKind,
    decode_binary,
    decode_client,
    encode_binary,
    encode_item,
    encode_server,
)
from plait.wire.messages import (
    Accepted,
    Cancel,
    Cancelled,
    CancelledBy,
    ClientMessage,
    Done,
    Format,
    Limits,
    MethodInfo,
    Open,
    Ping,
    Pong,
    ServerMessage,
    Started,
    Timing,
    Welcome,
)

WELCOME = Welcome(
    protocol="plait.v1",
    session="s-1",
    server="peer",
    limits=Limits(8, 8, 1 << 20, 1 << 18, 64, 100, 10),
    methods={"chat": MethodInfo(["m"])},
    capabilities=[],
)
TONE = b"\x01\x00\xff\x7f"  # two samples
TIMING = Timing(0.0, 1.0, 2.0, 0.0)
USAGE = {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 2}


class Peer:
    """The server's end of one connection, in the words of the protocol."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket

    async def receive(self) -> ClientMessage:
        return decode_client(await self.socket.recv())

    async def receive_open(self) -> Open:
        message = await self.receive()
        assert isinstance(message, Open)
        return message

    async def receive_cancel(self) -> Cancel:
        message = await self.receive()
        assert isinstance(message, Cancel), message
        return message

    async def answer_ping(self) -> None:
        message = await self.receive()
        assert isinstance(message, Ping), message
        await self.send(Pong(message.n))

    async def send(self, *messages: ServerMessage) -> None:
        for message in messages:
            await self.socket.send(encode_server(message))

    async def say(self, id: int, *contents: str, after: int = 0) -> None:
        """Items seq after+1 …, one per content."""
        for seq, content in enumerate(contents, after + 1):
            data = b'{"content":"%s"}' % content.encode()
            await self.socket.send(encode_item(id, seq, data))

    async def speak(self, id: int, *frames: bytes, after: int = 0, at: int = 0) -> None:
        """Audio of seq after+1 …, that begins at sample `at`."""
        for seq, data in enumerate(frames, after + 1):
            await self.socket.send(encode_binary(BinaryKind.AUDIO_OUT, 0, id, seq, at, data))
            at += len(data) // 2

    async def mark(self, id: int, seq: int, text: str, start: float, end: float) -> None:
        mark = {"text": text, "start": start, "end": end, "words": []}
        await self.socket.send(encode_item(id, seq, msgspec.json.encode({"mark": mark})))

    async def start_speech(self, window_bytes: int | None = None) -> int:
        """Take an open, answer accepted and started as for a synthesis; returns its id."""
        id = (await self.receive_open()).id
        accepted = Accepted(id, "queued", 0, window_bytes=window_bytes)
        await self.send(accepted, Started(id, "m", format=Format("pcm_s16le", 24000, 1)))
        return id

    async def start_transcription(self, window_bytes: int = 1 << 20) -> int:
        """Take an open, answer accepted and started as for a transcription; returns its id."""
        id = (await self.receive_open()).id
        await self.send(Accepted(id, "queued", 0, window_bytes=window_bytes), Started(id, "m"))
        return id

    async def start_embedding(self, window_bytes: int | None = None, encoding: str = "f32") -> int:
        """Take an open, answer accepted and started as for vectors of two; returns its id."""
        id = (await self.receive_open()).id
        accepted = Accepted(id, "queued", 0, window_bytes=window_bytes)
        await self.send(accepted, Started(id, "m", format=Format(encoding, dims=2)))
        return id

    async def send_rows(self, id: int, seq: int, first: int, *rows: float, flags: int = 0) -> None:
        """A frame of rows (x, -x), of the texts from `first` on."""
        data = b"".join(struct.pack("<2f", x, -x) for x in rows)
        await self.socket.send(encode_binary(BinaryKind.ROWS, flags, id, seq, first, data))

    async def receive_audio(self, size_bytes: int) -> list[bytes]:
        """Payloads of the audio frames that hold so many bytes in all."""
        payloads: list[bytes] = []
        while sum(map(len, payloads)) < size_bytes:
            data = await self.socket.recv()
            assert isinstance(data, bytes), data
            frame = decode_binary(data)
            assert frame.kind == BinaryKind.AUDIO_IN
            payloads.append(bytes(frame.payload))
        return payloads

    async def hear(self, id: int, seq: int, text: str, **fields: object) -> None:
        """An item with a segment; `fields` are merged in."""
        segment = {"index": 0, "revision": seq, "text": text, "start": 0.5, "end": 1.5}
        segment |= {"is_final": False, "lag_ms": 180.0} | fields
        await self.send_item(id, seq, {"segment": segment})

    async def send_item(self, id: int, seq: int, data: object) -> None:
        await self.socket.send(encode_item(id, seq, msgspec.json.encode(data)))

    async def start(self) -> int:
        """Take an open, answer accepted and started; returns its id."""
        id = (await self.receive_open()).id
        await self.send(Accepted(id, "queued", 0), Started(id, "m", 100))
        return id

    async def gone(self) -> None:
        """Wait until the client has left."""
        await self.socket.wait_closed()


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serving(script: Script, *, greet: bool = True) -> AsyncIterator[str]:
    """A server that runs `script` once per connection; its failures fail the test."""
    failures: list[Exception] = []

    async def handle(socket: ServerConnection) -> None:
        peer = Peer(socket)
        try:
            if greet:
                await peer.send(WELCOME)
            await script(peer)
        except ConnectionClosed:
            pass
        except Exception as error:  # noqa: BLE001 - raised below, where the test can see it
            failures.append(error)

    async with serve(
        handle, "127.0.0.1", 0, subprotocols=[Subprotocol("plait.v1")], compression=None
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/ws"
    if failures:
        raise failures[0]


def done(id: int, seq: int) -> Done:
    return Done(id, seq, "stop", USAGE, TIMING)


def cancelled(id: int, seq: int, by: CancelledBy = "client") -> Cancelled:
    return Cancelled(id, seq, by, True, 12.5, {"tokens": 1}, USAGE, TIMING)
