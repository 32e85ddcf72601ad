"""The send queue of one connection: what goes onto the socket next, and when a stream must wait.

Control frames jump ahead. Items are sent by rank (interactive before batch; audio and
transcriptions, then text, then vectors) and, inside a rank, fair by bytes (start-time fair
queueing: the stream that has had the fewest bytes goes next), each stream within its window. A
stream's items and its `done` are never reordered. `seq` is given here, on leaving. An item that
revises one still waiting takes its place, so a slow reader skips revisions and costs no more.
While the socket lags, texts that wait of a chat leave as one item (see `wire.joining`); not while
credit lacks: the window is how many tokens ahead of its reader an engine may compute.

Bounds: a stream's items by its window and `max_bytes` (when full its job is paused, see
`StreamQueue.full`); control frames by MAX_CONTROL_FRAMES (when full the connection is closed: the
peer keeps asking and does not read). Sans-I/O: `ready` is called when there is something to take.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from plait.engines.base import Item
from plait.wire.codec import encode_binary, encode_item
from plait.wire.joining import join_texts, read_text
from plait.wire.messages import DEFAULT_WINDOW
from plait.wire.window import Credit

MAX_CONTROL_FRAMES = 4096
MAX_JOINED_BYTES = 4096
# Of one turn: what leaves at one go can no longer be purged, and other connections wait for it.
MAX_TURN_FRAMES = 256
MAX_TURN_BYTES = 32 * 1024

AUDIO, TEXT, VECTORS = range(3)


@dataclass(slots=True, eq=False)
class StreamQueue:
    """Items of one stream on their way out, and its credit. Owned by its stream."""

    id: int
    credit: Credit
    rank: int
    max_bytes: int
    joins: bool = False  # its texts, while the socket lags
    take_final: Callable[[], str] | None = None  # set when `done` may follow the last item
    items: deque[Item] = field(default_factory=deque)
    revisable: dict[int, Item] = field(default_factory=dict)  # of `items`, by what they revise
    queued_bytes: int = 0
    media_bytes: int = 0  # payload of the binary items that left
    sent_bytes: int = 0  # virtual time: bytes sent, moved up to the rank's on becoming ready
    scheduled: bool = False
    closed: bool = False

    def put(self, item: Item) -> None:
        """At the end, or in the place of the one that waits and that it revises."""
        self.queued_bytes += len(item.data)
        if not item.revises:
            self.items.append(item)
            return
        revised = self.revisable.get(item.revises)
        self.revisable[item.revises] = item
        if revised is None:
            self.items.append(item)
        else:
            self.queued_bytes -= len(revised.data)
            self.items[self.items.index(revised)] = item

    def take(self) -> Item:
        item = self.items.popleft()
        if item.revises:
            del self.revisable[item.revises]
        self.queued_bytes -= len(item.data)
        return item

    def take_joined(self) -> Item:
        """The next item with those texts behind it that may join it."""
        item = self.take()
        joined = [text] if (text := read_text(item.data)) else []
        size = len(item.data)
        while joined and self.items and size + len(self.items[0].data) <= MAX_JOINED_BYTES:
            text = read_text(self.items[0].data)
            if text is None:
                break
            joined.append(text)
            size += len(self.take().data)
        return item if len(joined) < 2 else Item(item.job, join_texts(joined))

    def clear(self) -> None:
        self.items.clear()
        self.revisable.clear()
        self.queued_bytes = 0

    @property
    def seq(self) -> int:
        """Seq of the last item that left."""
        return self.credit.last_sent

    @property
    def outstanding(self) -> int:
        """Items the reader has not consumed yet, sent or not."""
        return len(self.items) + self.credit.outstanding

    @property
    def bound(self) -> int:
        return self.credit.window or DEFAULT_WINDOW

    @property
    def full(self) -> bool:
        return self.outstanding >= self.bound or self.queued_bytes >= self.max_bytes

    @property
    def half_empty(self) -> bool:
        return self.outstanding <= self.bound // 2 and self.queued_bytes <= self.max_bytes // 2

    @property
    def sendable(self) -> bool:
        if self.closed:
            return False
        if self.items:
            return self.credit.can_send
        return self.take_final is not None

    @property
    def blocked(self) -> bool:
        """Something waits for the reader's acks."""
        return not self.closed and not self.credit.can_send and bool(self.items)


Entry = tuple[int, int, StreamQueue]  # ids break ties, so queues themselves are never compared


class Outbox:
    """Fair, bounded, synchronous. The writer takes; streams and the session put."""

    def __init__(self, ready: Callable[[], None], overflow: Callable[[], None]) -> None:
        self.lagging = False  # the socket took no more, and what waited since has not all left
        self._ready = ready
        self._overflow = overflow
        self._control: deque[str] = deque()
        self._heaps: dict[int, list[Entry]] = {}
        self._virtual: dict[int, int] = {}  # per rank: virtual time of the last frame taken

    def send_control(self, frame: str) -> None:
        if len(self._control) >= MAX_CONTROL_FRAMES:
            self._overflow()
            return
        self._control.append(frame)
        self._ready()

    def send_item(self, queue: StreamQueue, item: Item) -> None:
        assert not queue.closed, queue
        queue.put(item)
        self.wake(queue)

    def wake(self, queue: StreamQueue) -> None:
        """Call after anything that may have made `queue` sendable: an item, credit, the end."""
        if queue.scheduled or not queue.sendable:
            return
        queue.scheduled = True
        queue.sent_bytes = max(queue.sent_bytes, self._virtual.get(queue.rank, 0))
        heapq.heappush(self._heaps.setdefault(queue.rank, []), (queue.sent_bytes, queue.id, queue))
        self._ready()

    def close(self, queue: StreamQueue) -> None:
        """Purge: nothing of this stream leaves any more."""
        queue.closed = True
        queue.clear()

    def take_nowait(self) -> tuple[str | bytes, StreamQueue | None] | None:
        """The next frame and, for an item, whose it is; None when nothing may be sent now."""
        if self._control:
            return self._control.popleft(), None
        while self._heaps:
            rank = min(self._heaps)
            heap = self._heaps[rank]
            while heap:
                queue = heap[0][2]
                if queue.sendable:
                    return self._take_from(queue, heap), queue
                heapq.heappop(heap)
                queue.scheduled = False
            del self._heaps[rank]
        self.lagging = False
        return None

    def take_turn(self) -> tuple[list[str | bytes], set[int]]:
        """The next frames that may leave together, and the ids of the streams they are items of."""
        frames: list[str | bytes] = []
        ids: set[int] = set()
        size = 0
        while len(frames) < MAX_TURN_FRAMES and size < MAX_TURN_BYTES:
            if (taken := self.take_nowait()) is None:
                break
            frame, queue = taken
            frames.append(frame)
            size += len(frame)
            if queue is not None:
                ids.add(queue.id)
        return frames, ids

    @property
    def empty(self) -> bool:
        return not self._control and not self._heaps

    def _take_from(self, queue: StreamQueue, heap: list[Entry]) -> str | bytes:
        """From the first of `heap`, which moves on to its next turn there or leaves."""
        if not queue.items:
            assert queue.take_final is not None
            heapq.heappop(heap)
            queue.scheduled = False
            frame = queue.take_final()
            self.close(queue)
            return frame
        item = queue.take_joined() if queue.joins and self.lagging else queue.take()
        seq = queue.credit.sent()
        self._virtual[queue.rank] = queue.sent_bytes
        queue.sent_bytes += len(item.data) + 64  # 64: an item's envelope, roughly
        if queue.sendable:
            heapq.heapreplace(heap, (queue.sent_bytes, queue.id, queue))
        else:
            heapq.heappop(heap)
            queue.scheduled = False
        if item.kind:
            queue.media_bytes += len(item.data)
            return encode_binary(item.kind, item.flags, queue.id, seq, item.aux, item.data)
        return encode_item(queue.id, seq, item.data)
