"""A raw peer: a real WebSocket that says exactly what a test wants, right or wrong."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from plait.wire.codec import BinaryFrame, BinaryKind, decode_binary, encode_binary

TERMINALS = {"done", "cancelled", "error", "rejected"}


@dataclass
class Transcript:
    """What came of one transcription."""

    segments: list[dict[str, Any]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    @property
    def finals(self) -> list[str]:
        return [segment["text"] for segment in self.segments if segment["is_final"]]

    @property
    def text(self) -> str:
        return " ".join(self.finals)

    def take(self, message: dict[str, Any]) -> None:
        if message["type"] in TERMINALS:
            self.end = message
        elif message["type"] == "item" and "segment" in message["data"]:
            self.segments.append(message["data"]["segment"])
        elif message["type"] == "item":
            self.events.append(message["data"]["event"])


class Peer:
    """Reads only when asked to, acks only when told to."""

    def __init__(self, socket: ClientConnection) -> None:
        self.ws = socket

    async def say(self, *messages: dict[str, Any] | str) -> None:
        for message in messages:
            await self.ws.send(message if isinstance(message, str) else json.dumps(message))

    async def open(self, id: int, prompt: str = "tokens=3", **fields: Any) -> None:
        await self.say(opening(id, prompt, **fields))

    async def speak(self, id: int, text: str | None = None, **fields: Any) -> None:
        """Open a synthesis, of `text` or of input to come; `params` are merged in."""
        params = ({} if text is None else {"text": text}) | fields.pop("params", {})
        opening = {"type": "open", "id": id, "method": "synthesize", "params": params}
        await self.say(opening | fields)

    async def hear_audio(self, id: int, frames: int) -> bytes:
        """The audio of the next so many frames of that stream; what comes between is dropped."""
        audio = b""
        while frames:
            received = await self.ws.recv()
            if isinstance(received, bytes) and int.from_bytes(received[4:8], "little") == id:
                audio += received[16:]
                frames -= 1
        return audio

    async def transcribe(self, id: int, **fields: Any) -> None:
        """Open a transcription of 16 kHz mono PCM16; `params` are merged in."""
        params = {"sample_rate": 16_000} | fields.pop("params", {})
        opening = {"type": "open", "id": id, "method": "transcribe", "params": params}
        await self.say(opening | fields)

    async def send_audio(self, id: int, audio: bytes, piece: int = 32_000) -> None:
        """In frames of `piece` bytes."""
        for begin in range(0, len(audio), piece):
            payload = audio[begin : begin + piece]
            await self.ws.send(encode_binary(BinaryKind.AUDIO_IN, 0, id, 0, 0, payload))

    async def hear_transcripts(self, *ids: int) -> dict[int, Transcript]:
        """Read until each id has its terminal; acks every item on the way."""
        heard = {id: Transcript() for id in ids}
        while not all(transcript.end for transcript in heard.values()):
            message = await self.hear()
            transcript = heard.get(message.get("id", 0))
            if message["type"] == "item":
                await self.say({"type": "ack", "id": message["id"], "seq": message["seq"]})
            if transcript is not None:
                transcript.take(message)
        return heard

    async def embed(self, id: int, texts: list[Any] | None = None, **fields: Any) -> None:
        """Open an embedding, of `texts` or of input to come; `params` are merged in."""
        params = ({} if texts is None else {"texts": texts}) | fields.pop("params", {})
        opening = {"type": "open", "id": id, "method": "embed", "params": params}
        await self.say(opening | fields)

    async def hear_rows(self, id: int) -> BinaryFrame:
        """The next frame of rows of that stream; what comes before it is dropped."""
        while True:
            received = await self.ws.recv()
            if isinstance(received, bytes) and (frame := decode_binary(received)).id == id:
                return frame

    async def hear(self) -> dict[str, Any]:
        """The next text message."""
        while isinstance(received := await self.ws.recv(), bytes):
            pass
        message: dict[str, Any] = json.loads(received)
        return message

    async def hear_until(self, type: str, id: int | None = None) -> dict[str, Any]:
        """The next message of that type (and id); what comes before it is dropped."""
        while True:
            message = await self.hear()
            if message["type"] == type and id in (None, message.get("id")):
                return message

    async def hear_terminals(self, *ids: int) -> dict[int, dict[str, Any]]:
        """Read until each id has its terminal; acks every item on the way."""
        left, ends = set(ids), {}
        while left:
            message = await self.hear()
            if message["type"] == "item":
                await self.say({"type": "ack", "id": message["id"], "seq": message["seq"]})
            elif message["type"] in TERMINALS and message["id"] in left:
                left.discard(message["id"])
                ends[message["id"]] = message
        return ends

    async def hear_close(self) -> int | None:
        """Read on until the server closes; its code."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self.ws.recv()
        return self.ws.close_code

    def reset(self) -> None:
        """Vanish with a TCP RST, as a killed process with unread data does."""
        sock: socket.socket = self.ws.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.ws.transport.abort()


def opening(id: int, prompt: str = "tokens=3", **fields: Any) -> dict[str, Any]:
    params = {"messages": [{"role": "user", "content": prompt}], **fields.pop("params", {})}
    return {"type": "open", "id": id, "method": "chat", "params": params, **fields}


@contextlib.asynccontextmanager
async def peer(url: str, **options: Any) -> AsyncIterator[Peer]:
    """Connected and welcomed; closed on leaving, however the test left the socket."""
    options.setdefault("close_timeout", 1)  # a peer that does not read cannot see the close reply
    ws = await connect(url, subprotocols=["plait.v1"], **options)  # type: ignore[list-item]
    try:
        connected = Peer(ws)
        await connected.hear_until("welcome")
        yield connected
    finally:
        await ws.close()
