"""Embeddings: a stream's items as one answer per text, in the order of the texts.

Vectors are views into the frames they came in: nothing is copied, and nothing is kept of what was
taken. This module does NOT know sockets, flow control (see `stream`) nor how texts go up.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from plait.client.consuming import MethodStream
from plait.client.stream import Item, Stream
from plait.client.texts_upload import TextsUpload
from plait.errors import Internal, PlaitError
from plait.wire.frames import BinaryFlags, BinaryFrame
from plait.wire.messages import Cancelled, ErrorBody, Format

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Embedding:
    """The answer to the text number `index`: its vector, or the reason why it has none.

    `vector` is a read-only sequence of float32 (`memoryview` of format "f", for `array`, `list` or
    NumPy), a view into the frame it came in; it is None exactly when there is an `error`.
    `truncated`: the text was too long, and this is the vector of its beginning.
    """

    index: int
    vector: memoryview[float] | None
    truncated: bool = False
    error: PlaitError | None = None


class EmbedStream(MethodStream):
    """Single-use asynchronous iterator over `Embedding`s, one per text and in order.

        async with client.embed(lines) as stream:
            async for answer in stream:
                keep(answer.index, answer.vector)

    Leaving the `async with` block cancels, however it is left, and closes the source of the texts.
    It raises what `Stream` raises, and what the source raised; what is wrong with one text is the
    `error` of its answer, and ends nothing.
    """

    def __init__(self, stream: Stream, total: int | None) -> None:
        """`total`: how many texts there are, where that is known from the start."""
        super().__init__(stream)
        self.answered = 0
        self._total = total
        self._rows: deque[Embedding] = deque()  # of one frame

    @property
    def total(self) -> int | None:
        """How many texts there are; None while their source has not come to its end."""
        upload = self.stream.upload
        if self._total is None and isinstance(upload, TextsUpload) and upload.complete:
            return upload.texts
        return self._total

    @property
    def format(self) -> Format | None:
        """Encoding and dimensions, once it has started."""
        return None if self.started is None else self.started.format

    async def __anext__(self) -> Embedding:
        while not self._rows:
            item = await self._next_item()
            if item.frame is None:
                self._rows.append(_answer(item.data))
            else:
                self._rows.extend(self._cut(item.frame))
        answer = self._rows.popleft()
        if answer.index != self.answered:
            raise _broken(f"text {self.answered} was due and {answer.index} answered")
        self.answered += 1
        return answer

    async def collect(self) -> list[Embedding]:
        """Every text's answer. Raises like iteration: half a batch never looks like a whole one.

        Cancels when its own task is cancelled.
        """
        async with self:
            return [answer async for answer in self]

    async def vectors(self) -> list[memoryview[float]]:
        """Every text's vector. Raises like `collect`, and the error of the first that has none."""
        vectors: list[memoryview[float]] = []
        async with self:
            async for answer in self:
                if answer.error is not None:
                    raise answer.error
                assert answer.vector is not None
                vectors.append(answer.vector)
        return vectors

    async def cancel(self) -> Cancelled | None:
        """Stop, and drop what was not taken yet; see `Stream.cancel`."""
        self._rows.clear()
        return await self.stream.cancel()

    async def aclose(self) -> None:
        self._rows.clear()
        await self.stream.aclose()

    async def _next_item(self) -> Item:
        try:
            return await anext(self.stream)
        except StopAsyncIteration:
            if self.total not in (None, self.answered):
                raise _broken(f"of {self.total} texts {self.answered} were answered") from None
            raise

    def _cut(self, frame: BinaryFrame) -> Iterable[Embedding]:
        format = self.format
        dims = None if format is None else format.dims
        if not dims or len(frame.payload) % (dims * _FLOAT_BYTES):
            raise _broken(f"{len(frame.payload)} bytes are no rows of {dims} numbers")
        floats = _as_floats(frame.payload)
        truncated = bool(frame.flags & BinaryFlags.TRUNCATED)
        return (
            Embedding(frame.aux + row, floats[row * dims : (row + 1) * dims], truncated)
            for row in range(len(floats) // dims)
        )


def _broken(what: str) -> Internal:
    return Internal(f"The server broke its promise: {what}. Its version may be another.")


def _answer(data: dict[str, Any]) -> Embedding:
    """Of a JSON item."""
    if "error" in data:
        body = msgspec.convert(data["error"], ErrorBody)
        return Embedding(data["index"], None, error=body.to_error())
    vector = array("f", data["embedding"]).tobytes()
    return Embedding(data["index"], memoryview(vector).cast("f"), bool(data.get("truncated")))


def _as_floats(payload: memoryview) -> memoryview[float]:
    if sys.byteorder == "little":
        return payload.cast("f")
    floats = array("f", bytes(payload))
    floats.byteswap()
    return memoryview(floats.tobytes()).cast("f")


async def one_by_one(texts: Iterable[str]) -> AsyncIterator[str]:
    """Texts that are there, or are made without waiting, as a source."""
    for text in texts:
        yield text
