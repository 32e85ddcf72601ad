"""Chat: the content of a stream's items as deltas, the last of which says how it ended well.

This module does NOT know sockets nor flow control (see `stream`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plait.client.consuming import MethodStream
from plait.client.stream import Stream
from plait.wire.messages import Done


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model has written to its end. `arguments`: JSON text of an object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer. The last one has `done`, `usage` and `finish_reason`, no content.

    `tool_calls`: entries as they come, a call's beginning and pieces of its arguments among them
    (PROTOCOL.md §3); who does not show those reads `calls`, the ones that are complete.
    """

    content: str = ""
    tool_calls: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None
    done: bool = False
    finish_reason: str | None = None
    usage: dict[str, int] | None = None

    @property
    def calls(self) -> list[ToolCall]:
        whole = [entry for entry in self.tool_calls or [] if entry.get("complete")]
        return [
            ToolCall(entry["id"], entry["function"]["name"], entry["function"]["arguments"])
            for entry in whole
        ]


class ChatStream(MethodStream):
    """Single-use asynchronous iterator over `Delta`s.

        async with client.chat(messages=[{"role": "user", "content": "Hi"}]) as stream:
            async for delta in stream:
                print(delta.content, end="")

    Leaving the `async with` block cancels, however it is left. Without the block, a `break` leaves
    the chat running until the window is full: call `await stream.cancel()`. Iteration ends only
    after a delta with `done`; it raises what `Stream` raises.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._finished = False

    async def __anext__(self) -> Delta:
        if self._finished:
            raise StopAsyncIteration
        try:
            item = await anext(self.stream)
        except StopAsyncIteration:
            self._finished = True
            return self._last()
        data = item.data or {}
        return Delta(
            content=data.get("content", ""),
            tool_calls=data.get("tool_calls"),
            logprobs=data.get("logprobs"),
        )

    async def text(self) -> str:
        """The whole answer. Raises like iteration: half an answer never looks like a whole one.

        Cancels when its own task is cancelled.
        """
        async with self:
            return "".join([delta.content async for delta in self])

    def _last(self) -> Delta:
        done = self.stream.terminal
        assert isinstance(done, Done)
        return Delta(done=True, finish_reason=done.finish_reason, usage=done.usage)
