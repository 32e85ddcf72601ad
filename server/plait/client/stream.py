"""One stream of any method, as its consumer sees it: items in order, then exactly one ending.

`receive_*` are the reader task's and never wait; everything `async` is the consumer's. Items are
acknowledged when the consumer takes them, a quarter of the window at a time or a second apart, so
a consumer that stops taking pauses its engine, and the window bounds what is held here. The
server's promises are checked on the way in: a seq out of order or a message no state allows is an
`IllegalServer`.
This module does NOT know sockets, nor what an item of a method means (see `chat`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgspec

from plait.client.consuming import Consumable
from plait.client.errors import ConnectionLost, StreamCancelled
from plait.client.upload import Upload
from plait.errors import PlaitError
from plait.wire.frames import BinaryFrame
from plait.wire.messages import (
    MAX_WINDOW,
    Accepted,
    Ack,
    Cancel,
    Cancelled,
    ClientMessage,
    InputAck,
    ItemMessage,
    Rejected,
    Started,
    StreamFailed,
    Terminal,
)
from plait.wire.stream import IllegalTransition, StreamInput, StreamMachine, StreamState

# With window 0 the server sends without credit. So much is held for a consumer, then the stream
# is cancelled: whoever asks for no flow control has to keep up.
MAX_UNACKED_ITEMS = 16 * MAX_WINDOW
# By quarters alone, who takes an item every few seconds would look like a reader who has stopped.
MAX_ACK_DELAY_SECONDS = 1.0


class IllegalServer(Exception):
    """The server broke the protocol; the connection cannot be trusted any more."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item: `data` (JSON) of a text frame, or the binary `frame`. `at`: monotonic seconds."""

    seq: int
    at: float
    data: Any = None
    frame: BinaryFrame | None = None


class Stream(Consumable):
    """Single-use asynchronous iterator over `Item`s, for one consumer task.

    Iteration ends only after `done`, with every item taken. It raises the server's error for
    `rejected` and `error`, StreamCancelled for `cancelled` and ConnectionLost for a lost socket,
    and what the source of its input raised.
    Use it as `async with stream:`; leaving the block cancels what has not ended. A bare `break`
    out of `async for` does not cancel by itself: nothing tells the stream that its consumer left.
    """

    def __init__(
        self,
        id: int,
        method: str,
        window: int,
        send: Callable[[ClientMessage], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.id = id
        self.method = method
        self.opened_at = clock()
        self.accepted: Accepted | None = None
        self.accepted_at: float | None = None
        self.started: Started | None = None
        self.started_at: float | None = None
        self.terminal: Terminal | None = None
        self.ended_at: float | None = None
        self.last_seq = 0
        self.upload: Upload | None = None  # where its input comes after it was opened
        self._send = send
        self._clock = clock
        self._window = window
        self._acked = 0
        self._acked_at = 0.0  # or the first item's arrival
        self._machine = StreamMachine()
        self._items: deque[Item] = deque()  # at most window (or MAX_UNACKED_ITEMS) items
        self._failure: PlaitError | None = None
        self._cancelling = False
        self._arrived = asyncio.Event()
        self._started = asyncio.Event()
        self._ended = asyncio.Event()
        self._when_ended: list[Callable[[], object]] = []

    @property
    def state(self) -> StreamState:
        return self._machine.state

    @property
    def queue(self) -> Accepted | None:
        """Phase and position while pending, None before the server's answer and afterwards."""
        return self.accepted if self.state is StreamState.PENDING else None

    # --- the consumer's side ---------------------------------------------------------------------

    async def __anext__(self) -> Item:
        while not self._items:
            if self._ended.is_set():
                self.raise_failure()
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        item = self._items.popleft()
        self._acknowledge(item.seq)
        return item

    async def collect(self) -> list[Item]:
        """All items still to come. Raises like iteration."""
        return [item async for item in self]

    async def wait_started(self) -> Started:
        """Until a slot is held. Raises the stream's failure if it ends before."""
        await self._started.wait()
        if self.started is None:
            self.raise_failure()
        assert self.started is not None
        return self.started

    async def wait_ended(self) -> Terminal:
        """Until the terminal, whichever it is. Consumes nothing: mind the window.

        Raises the server's error when the open was rejected, and ConnectionLost.
        """
        await self._ended.wait()
        if self.terminal is None:
            self.raise_failure()
        assert self.terminal is not None
        return self.terminal

    def cancel_nowait(self, heard_ms: float | None = None) -> None:
        """Ask the server to stop, and drop what was not taken yet. No-op when ended or repeated."""
        if self._cancelling or self.state.ended:
            return
        self._cancelling = True
        self._items.clear()
        self._send(Cancel(self.id, heard_ms))

    async def cancel(self, heard_ms: float | None = None) -> Cancelled | None:
        """Stop; returns the server's proof, or None if the stream had ended otherwise before.

        Raises ConnectionLost when the socket is lost before the answer.
        """
        self.cancel_nowait(heard_ms)
        await self._ended.wait()
        if isinstance(self._failure, ConnectionLost):
            raise self._failure
        return self.terminal if isinstance(self.terminal, Cancelled) else None

    async def aclose(self) -> None:
        self.cancel_nowait()
        await self._ended.wait()

    def when_ended(self, action: Callable[[], object]) -> None:
        """Run `action` once, as soon as the stream has any ending."""
        self._when_ended.append(action)

    def raise_failure(self) -> None:
        """What ended it, if not `done`; where its source made us cancel, what the source raised."""
        if isinstance(self._failure, StreamCancelled) and self.upload and self.upload.error:
            raise self.upload.error from None
        if self._failure is not None:
            raise self._failure

    def _acknowledge(self, seq: int) -> None:
        now = self._clock()
        due = (
            seq - self._acked >= max(1, self._window // 4)
            or now - self._acked_at >= MAX_ACK_DELAY_SECONDS
        )
        if self._window and due and not self.state.ended and not self._cancelling:
            self._acked, self._acked_at = seq, now
            self._send(Ack(self.id, seq))

    # --- the reader task's side ------------------------------------------------------------------

    def receive_accepted(self, message: Accepted) -> None:
        self._process(StreamInput.ACCEPTED)
        self.accepted = message
        self.accepted_at = self.accepted_at or self._clock()
        if self.upload is not None and message.window_bytes is not None:
            self.upload.grant(message.window_bytes, message.window_bytes)

    def receive_input_ack(self, message: InputAck) -> None:
        if self.upload is not None:
            if message.bytes > self.upload.sent_bytes:
                raise IllegalServer(f"stream {self.id}: input was confirmed that was never sent")
            self.upload.grant(message.bytes + message.window_bytes, message.window_bytes)

    def receive_started(self, message: Started) -> None:
        self._process(StreamInput.STARTED)
        self.started = message
        self.started_at = self._clock()
        self._started.set()

    def receive_item(self, item: ItemMessage | BinaryFrame) -> None:
        self._process(StreamInput.ITEM)
        self._expect_seq(item.seq, self.last_seq + 1)
        self.last_seq = item.seq
        if self._cancelling:
            return  # it crossed our cancel on the wire
        now = self._clock()
        if item.seq == 1:
            self._acked_at = now
        if isinstance(item, ItemMessage):
            self._items.append(Item(item.seq, now, data=msgspec.json.decode(item.data)))
        else:
            self._items.append(Item(item.seq, now, frame=item))
        self._check_bound()
        self._arrived.set()

    def receive_terminal(self, message: Terminal) -> None:
        self._expect_seq(message.seq, self.last_seq)
        if isinstance(message, Cancelled):
            self._process(StreamInput.CANCEL)
            self._failure = StreamCancelled(message)
        elif isinstance(message, StreamFailed):
            self._process(StreamInput.ERROR)
            self._failure = message.error.to_error()
        else:
            self._process(StreamInput.DONE)
            if self._cancelling:  # they crossed, and what we dropped may be part of the answer
                self._failure = StreamCancelled(None)
        self.terminal = message
        self._end()

    def receive_rejected(self, message: Rejected) -> None:
        if self.accepted is not None:
            raise IllegalServer(f"stream {self.id} was rejected after it was accepted")
        self.receive_failure(message.error.to_error())

    def receive_failure(self, error: PlaitError) -> None:
        """The stream ends without a terminal: rejected, or the socket is lost."""
        self._machine.process(StreamInput.ERROR)
        self._failure = error
        self._end()

    def _end(self) -> None:
        self.ended_at = self._clock()
        for event in (self._ended, self._arrived, self._started):
            event.set()
        for action in self._when_ended:
            action()

    def _process(self, input: StreamInput) -> None:
        try:
            self._machine.process(input)
        except IllegalTransition as error:
            raise IllegalServer(f"stream {self.id}: {error}") from error

    def _expect_seq(self, seq: int, expected: int) -> None:
        if seq != expected:
            raise IllegalServer(f"stream {self.id}: seq {seq} came where {expected} was due")

    def _check_bound(self) -> None:
        if self._window and len(self._items) > MAX_WINDOW:
            raise IllegalServer(f"stream {self.id}: more items than the window allows")
        if len(self._items) > MAX_UNACKED_ITEMS:
            self.cancel_nowait()
