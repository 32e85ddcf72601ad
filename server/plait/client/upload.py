"""Input on its way to a stream that was opened without it: as it comes, within the credit.

A source gives pieces, texts or audio; `run` is a task of the connection's. The source is asked for
more only when what it gave is sent, so where the credit is used up it waits, and it is closed
whichever way the stream ends. Does NOT know sockets nor methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from plait.wire.codec import encode_params
from plait.wire.frames import HEADER_BYTES, BinaryKind, encode_binary
from plait.wire.messages import ClientMessage, End, Input

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    Piece = str | ReadableBuffer

# Of a text, or of a frame's audio: so small that a cancel never waits long behind it.
MAX_PIECE_BYTES = 16 * 1024
OPEN_BYTES = 4096  # what an open holds besides its text, at most
_WIDEST_CHARACTER_BYTES = 4
_WIDEST_ESCAPE_BYTES = 6

Send = Callable[[ClientMessage | bytes], Awaitable[None]]
"""A message, or a binary frame."""


class Upload:
    """Of one stream. `error` is what the source raised, if it did."""

    def __init__(self, id: int, send: Send, max_frame_bytes: int) -> None:
        """`max_frame_bytes`: of a binary frame, its header included."""
        self.sent_bytes = 0
        self.error: Exception | None = None
        self._id = id
        self._send = send
        self._max_audio_bytes = min(MAX_PIECE_BYTES, max_frame_bytes - HEADER_BYTES)
        self._limit_bytes = 0
        self._granted = asyncio.Event()

    def grant(self, limit_bytes: int) -> None:
        """So many bytes may have been sent in all."""
        self._limit_bytes = max(self._limit_bytes, limit_bytes)
        self._granted.set()

    async def run(self, source: AsyncIterable[Piece], failed: Callable[[], None]) -> None:
        """Send what the source gives, then `end`; calls `failed` when the source raises."""
        pieces = aiter(source)
        try:
            async for piece in pieces:
                if isinstance(piece, str):
                    await self._send_text(piece)
                else:
                    await self._send_audio(memoryview(piece))
            await self._send(End(self._id))
        except Exception as error:  # noqa: BLE001 - the consumer's own: raised where it consumes
            self.error = error
            failed()
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def _send_text(self, text: str) -> None:
        while text:
            room = await self._room(_WIDEST_CHARACTER_BYTES)
            piece = _head(text, min(room, MAX_PIECE_BYTES))
            text = text[len(piece) :]
            self.sent_bytes += _size(piece)
            await self._send(Input(self._id, piece))

    async def _send_audio(self, audio: memoryview) -> None:
        assert audio.itemsize == 1, "audio goes up as bytes"
        while audio:
            piece = audio[: min(await self._room(1), self._max_audio_bytes)]
            audio = audio[len(piece) :]
            self.sent_bytes += len(piece)
            await self._send(encode_binary(BinaryKind.AUDIO_IN, 0, self._id, 0, 0, piece))

    async def _room(self, needed_bytes: int) -> int:
        """Bytes that may be sent now, once they are at least `needed_bytes`."""
        while (room := self._limit_bytes - self.sent_bytes) < needed_bytes:
            self._granted.clear()
            await self._granted.wait()
        return room


async def in_pieces(text: str) -> AsyncIterator[str]:
    """A text that is there already, as a source."""
    yield text


def fits_frame(text: str, max_bytes: int) -> bool:
    """Whether `text` fits into an `open` of `max_bytes`, however its characters are escaped."""
    limit_bytes = max_bytes - OPEN_BYTES
    if len(text) * _WIDEST_ESCAPE_BYTES <= limit_bytes:
        return True
    return len(bytes(encode_params({"text": text}))) <= limit_bytes


def _head(text: str, max_bytes: int) -> str:
    """As many whole characters as fit."""
    if _size(text) <= max_bytes:
        return text
    head = text[:max_bytes].encode("utf-8", "surrogatepass")[:max_bytes]
    return head.decode("utf-8", "ignore")


def _size(text: str) -> int:
    # Half a surrogate pair is refused by the codec, which can say so.
    return len(text.encode("utf-8", "surrogatepass"))
