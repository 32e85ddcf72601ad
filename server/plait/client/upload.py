"""Input on its way to a stream that was opened without it: as it comes, within the credit.

A source gives pieces, texts or audio; `run` is a task of the connection's. The source is asked for
more only when what it gave is sent, so where the credit is used up it waits, and it is closed
whichever way the stream ends. Does NOT know sockets nor methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, cast

from plait.errors import InputOverflow
from plait.wire.codec import encode_params
from plait.wire.frames import HEADER_BYTES, BinaryKind, encode_binary
from plait.wire.messages import ClientMessage, End, Input

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    Piece = str | Sequence[str] | ReadableBuffer

# Of a text, or of a frame's audio: so small that a cancel never waits long behind it.
MAX_PIECE_BYTES = 16 * 1024
OPEN_BYTES = 4096  # what an open holds besides its text, at most
_WIDEST_CHARACTER_BYTES = 4
_WIDEST_ESCAPE_BYTES = 6
_QUOTES_BYTES = 3  # of a string in a list, with its comma

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
        self._window_bytes = 0  # 0: not told
        self._granted = asyncio.Event()

    def grant(self, limit_bytes: int, window_bytes: int = 0) -> None:
        """So many bytes may have been sent in all; `window_bytes`: ahead at any time, if known."""
        self._limit_bytes = max(self._limit_bytes, limit_bytes)
        self._window_bytes = window_bytes
        self._granted.set()

    async def run(self, source: AsyncIterable[Piece], failed: Callable[[], None]) -> None:
        """Send what the source gives, then `end`; calls `failed` when the source raises."""
        pieces = aiter(source)
        try:
            await self._send_pieces(pieces)
            await self._send(End(self._id))
        except Exception as error:  # noqa: BLE001 - the consumer's own: raised where it consumes
            self.error = error
            failed()
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def _send_pieces(self, pieces: AsyncIterator[Piece]) -> None:
        """All of the source's, in order."""
        async for piece in pieces:
            if isinstance(piece, str):
                await self._send_text(piece)
            else:
                await self._send_audio(memoryview(cast("ReadableBuffer", piece)))

    async def _send_text(self, text: str) -> None:
        while text:
            room = await self._room(_WIDEST_CHARACTER_BYTES)
            piece = _head(text, min(room, MAX_PIECE_BYTES))
            text = text[len(piece) :]
            self.sent_bytes += text_bytes(piece)
            await self._send(Input(self._id, piece))

    async def _send_audio(self, audio: memoryview) -> None:
        assert audio.itemsize == 1, "audio goes up as bytes"
        while audio:
            piece = audio[: min(await self._room(1), self._max_audio_bytes)]
            audio = audio[len(piece) :]
            self.sent_bytes += len(piece)
            await self._send(encode_binary(BinaryKind.AUDIO_IN, 0, self._id, 0, 0, piece))

    async def _room(self, needed_bytes: int) -> int:
        """Bytes that may be sent now, once they are at least `needed_bytes`.

        Raises InputOverflow where they never will be.
        """
        while (room := self._limit_bytes - self.sent_bytes) < needed_bytes:
            if 0 < self._window_bytes < needed_bytes:
                raise InputOverflow(
                    f"a piece of {needed_bytes} bytes does not fit into the server's window of"
                    f" {self._window_bytes}. Cut it."
                )
            self._granted.clear()
            await self._granted.wait()
        return room


async def in_pieces(text: str) -> AsyncIterator[str]:
    """A text that is there already, as a source."""
    yield text


def fits_frame(value: str | Sequence[str], max_bytes: int) -> bool:
    """Whether it fits into an `open` of `max_bytes`, however its characters are escaped.

    Raises InvalidRequest for half a surrogate pair.
    """
    limit_bytes = max_bytes - OPEN_BYTES
    texts = [value] if isinstance(value, str) else value
    return frame_bytes(texts, limit_bytes) <= limit_bytes


def frame_bytes(texts: Sequence[str], limit_bytes: int) -> int:
    """About what `texts` take as JSON; exact only where it matters for `limit_bytes`.

    Raises InvalidRequest for half a surrogate pair, where it looks so closely.
    """
    characters = sum(map(len, texts)) + _QUOTES_BYTES * len(texts)
    if characters > limit_bytes or characters * _WIDEST_ESCAPE_BYTES <= limit_bytes:
        return characters
    return len(bytes(encode_params({"texts": texts})))


def _head(text: str, max_bytes: int) -> str:
    """As many whole characters as fit."""
    if text_bytes(text) <= max_bytes:
        return text
    head = text[:max_bytes].encode("utf-8", "surrogatepass")[:max_bytes]
    return head.decode("utf-8", "ignore")


def text_bytes(text: str) -> int:
    # Half a surrogate pair is refused by the codec, which can say so.
    return len(text.encode("utf-8", "surrogatepass"))
