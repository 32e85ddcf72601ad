"""Texts to embed on their way up: many small ones in one message, within the credit.

Two tasks, both inside `run`: one asks the source, at most MAX_PIECE_BYTES ahead of the other, which
sends what is there. So texts that come at once go up together, and one that comes alone does not
wait for company. Does NOT know sockets, nor what comes back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from plait.client.upload import MAX_PIECE_BYTES, OPEN_BYTES, Send, Upload, frame_bytes, text_bytes
from plait.errors import InvalidRequest
from plait.wire.messages import Input

if TYPE_CHECKING:
    from plait.client.upload import Piece

TEXT_OVERHEAD_BYTES = 16  # what the server counts for each text besides its UTF-8 bytes


class TextsUpload(Upload):
    """Of one stream. `texts` were taken from the source so far; `complete`: there are no more."""

    def __init__(self, id: int, send: Send, max_frame_bytes: int) -> None:
        """`max_frame_bytes`: of a text frame."""
        super().__init__(id, send, max_frame_bytes)
        self.texts = 0
        self.complete = False
        self._max_frame_bytes = max_frame_bytes
        self._waiting: deque[tuple[str, int]] = deque()  # texts and what they cost of the credit
        self._waiting_bytes = 0  # below MAX_PIECE_BYTES, but for the last text of `_waiting`
        self._came = asyncio.Event()
        self._went = asyncio.Event()

    async def _send_pieces(self, pieces: AsyncIterator[Piece]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._take(pieces))
                tasks.create_task(self._send_batches())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # the consumer's own, as it was

    async def _take(self, pieces: AsyncIterator[Piece]) -> None:
        async for piece in pieces:
            for text in _texts_of(piece):
                checked = self._checked(text)
                while self._waiting_bytes >= MAX_PIECE_BYTES:
                    self._went.clear()
                    await self._went.wait()
                self._waiting.append(checked)
                self._waiting_bytes += checked[1]
                self.texts += 1
                self._came.set()
        self.complete = True
        self._came.set()

    async def _send_batches(self) -> None:
        while True:
            while not self._waiting:
                if self.complete:
                    return
                self._came.clear()
                await self._came.wait()
            room = min(await self._room(self._waiting[0][1]), MAX_PIECE_BYTES)
            batch = self._take_batch(room)
            self._went.set()
            await self._send(Input(self._id, texts=batch))

    def _take_batch(self, room_bytes: int) -> list[str]:
        """As many texts as fit, and at least one, for which there is credit."""
        batch: list[str] = []
        size_bytes = 0
        while self._waiting and (not batch or size_bytes + self._waiting[0][1] <= room_bytes):
            text, cost_bytes = self._waiting.popleft()
            batch.append(text)
            size_bytes += cost_bytes
        self._waiting_bytes -= size_bytes
        self.sent_bytes += size_bytes
        return batch

    def _checked(self, text: object) -> tuple[str, int]:
        """It, and its bytes of credit. Raises InvalidRequest for what can never be sent."""
        where = f"texts[{self.texts}]"
        if not isinstance(text, str):
            raise InvalidRequest(
                f"{where}: the source gave {type(text).__name__}, not a string.", param=where
            )
        limit_bytes = self._max_frame_bytes - OPEN_BYTES
        if frame_bytes([text], limit_bytes) > limit_bytes:
            raise InvalidRequest(
                f"{where}: {text_bytes(text)} bytes do not fit into a message of"
                f" {self._max_frame_bytes}. Cut it.",
                param=where,
            )
        return text, text_bytes(text) + TEXT_OVERHEAD_BYTES


def _texts_of(piece: object) -> Iterable[object]:
    return piece if isinstance(piece, Iterable) and not isinstance(piece, str) else (piece,)
