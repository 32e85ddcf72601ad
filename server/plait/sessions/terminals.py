"""The three terminals of a stream, filled in from its books. Does NOT decide which one, or when."""

from __future__ import annotations

from plait.errors import PlaitError
from plait.sessions.accounts import Account
from plait.sessions.outbox import StreamQueue
from plait.sessions.stopwatch import Stopwatch
from plait.wire.messages import (
    Cancelled,
    CancelledBy,
    Done,
    ErrorBody,
    FinishReason,
    StreamFailed,
    Timing,
)


class Terminals:
    """Owned by one stream."""

    def __init__(self, queue: StreamQueue, times: Stopwatch, account: Account) -> None:
        self._queue = queue
        self._times = times
        self._account = account

    def done(self, finish_reason: FinishReason) -> Done:
        queue, account = self._queue, self._account
        return Done(
            queue.id, queue.seq, finish_reason, account.usage, self._timing(), account.truncated
        )

    def cancelled(
        self,
        by: CancelledBy,
        heard_ms: float | None,
        stop_ms: float | None,
        wasted: int | None,
        *,
        released: bool,
    ) -> Cancelled:
        """`heard_ms` is what the cancel said of its listener; `wasted` is in units of work."""
        queue, account = self._queue, self._account
        heard = None if heard_ms is None else account.heard(heard_ms, queue.media_bytes)
        return Cancelled(
            queue.id,
            queue.seq,
            by,
            released,
            None if stop_ms is None else round(stop_ms, 3),
            account.wasted(wasted),
            account.usage,
            self._timing(),
            heard,
        )

    def failed(self, error: PlaitError) -> StreamFailed:
        queue = self._queue
        body = ErrorBody.of(error)
        return StreamFailed(queue.id, queue.seq, body, self._account.usage, self._timing())

    def _timing(self) -> Timing:
        return self._times.timing(items_left=self._queue.seq > 0)
