"""What every kind of stream has in common for its consumer: a block that ends it, and its facts.

Does NOT know items nor the wire (see `stream`).
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from plait.client.stream import Stream
    from plait.wire.messages import Accepted, Cancelled, Started, Terminal
    from plait.wire.stream import StreamState


class Consumable:
    """An asynchronous iterator that is its own block: leaving the block closes it."""

    async def aclose(self) -> None:
        """Cancel if not ended, and wait for the terminal. Never raises a stream's failure."""
        raise AssertionError("every stream closes in its own way")

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class MethodStream(Consumable):
    """A stream in the words of its method; `stream` is the one on the wire."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    @property
    def id(self) -> int:
        return self.stream.id

    @property
    def state(self) -> StreamState:
        return self.stream.state

    @property
    def queue(self) -> Accepted | None:
        """Phase and position while pending."""
        return self.stream.queue

    @property
    def started(self) -> Started | None:
        """The model and what was agreed on, once a slot is held."""
        return self.stream.started

    @property
    def terminal(self) -> Terminal | None:
        return self.stream.terminal

    async def cancel(self) -> Cancelled | None:
        """Stop; see `Stream.cancel`."""
        return await self.stream.cancel()

    async def aclose(self) -> None:
        await self.stream.aclose()
