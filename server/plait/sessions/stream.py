"""One stream from its open to its single terminal: the one path of every ending.

A stream has no task: it is moved by the session's reader (acks, cancel), by its ticket (phases,
items, *released*) and by its own timers, all on the event loop. Whatever ends it goes through
`cancel`, `fail` or the taking of `done`, and all of these through `_end`, once. Order matters:
the stream is fenced and its queue purged in the tick of the cause, the engine is told, and only
after its confirmation (or `confirm_seconds`) the terminal goes out and the stream is forgotten.

It does not know the socket, nor why a slot was or was not granted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from plait.engines.base import Item, Released, Usage
from plait.errors import PlaitError
from plait.scheduling.scheduler import Scheduler
from plait.scheduling.ticket import Ticket
from plait.sessions.outbox import Outbox, StreamQueue
from plait.sessions.stopwatch import Stopwatch
from plait.wire.codec import encode_server
from plait.wire.messages import (
    Accepted,
    Cancelled,
    CancelledBy,
    Done,
    ErrorBody,
    FinishReason,
    Phase,
    ServerMessage,
    Started,
    StreamFailed,
    Timing,
)
from plait.wire.stream import StreamInput, StreamMachine

EMPTY_USAGE: dict[str, Usage] = {
    "chat": {"prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0},
    "transcribe": {"audio_ms": 0},
    "synthesize": {"characters": 0, "audio_ms": 0},
    "embed": {"texts": 0, "tokens": 0},
}
UNIT = {
    "chat": "tokens",
    "transcribe": "audio_ms",
    "synthesize": "audio_ms",
    "embed": "texts",
}


@dataclass(frozen=True, slots=True)
class StreamPolicy:
    confirm_seconds: float = 0.1  # how long a terminal waits for the engine's release
    slow_seconds: float = 30.0  # without ack progress while blocked
    accepted_interval_seconds: float = 1.0
    max_outbox_bytes: int = 256 * 1024


class StreamOwner(Protocol):
    """The session, as a stream sees it."""

    outbox: Outbox

    def on_stream_ended(self, stream: Stream, outcome: str, cancelled: Cancelled | None) -> None:
        """The terminal (the third argument, where it is a `cancelled`) was queued or taken:
        forget the id."""

    def on_stream_started(self, stream: Stream) -> None: ...


class Stream:
    """Listener of its ticket (`StreamListener`). See the module docstring."""

    def __init__(
        self,
        id: int,
        method: str,
        queue: StreamQueue,
        owner: StreamOwner,
        scheduler: Scheduler,
        policy: StreamPolicy,
        clock: Callable[[], float],
        opened: float,
    ) -> None:
        self.id = id
        self.method = method
        self.queue = queue
        self.machine = StreamMachine()
        self.ticket: Ticket | None = None
        self._owner = owner
        self._scheduler = scheduler
        self._policy = policy
        self._clock = clock
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._times = Stopwatch(opened, clock)
        self._usage = dict(EMPTY_USAGE[method])
        self._finish_reason: FinishReason | None = None
        self._released: Released | None = None
        self._cancel: tuple[CancelledBy, float] | None = None  # the first cancel's cause and time
        self._ended = False  # the terminal was queued or taken
        self._accepted: Accepted | None = None  # the newest, sent or waiting for its interval
        self._accepted_at = 0.0

    @property
    def live(self) -> bool:
        """Neither ended nor being ended: items may still leave."""
        return not self.machine.state.ended

    @property
    def started(self) -> bool:
        return self._times.started

    # --- the session calls in ------------------------------------------------------------------

    def open(self, params: dict[str, object], connection: str, batch: bool) -> None:
        """Ask for a slot. Raises the typed reason for a `rejected`."""
        self.ticket = self._scheduler.submit(self.method, params, connection, batch, self)
        self.on_phase(*self._scheduler.phase(self.ticket))

    def set_deadline(self, deadline_ms: int) -> None:
        left = self._times.opened + deadline_ms / 1000 - self._clock()
        self._arm("deadline", max(0.0, left), lambda: self.cancel("deadline"))

    def receive_ack(self, seq: int, window: int | None) -> None:
        """Raises InvalidRequest(seq) for an ack beyond what was sent."""
        if self.live and self.queue.credit.receive_ack(seq, window):
            self._disarm("slow")
            self._after_credit()

    def item_left(self) -> None:
        """The writer's send() of one of our items returned."""
        if self.live:
            # A pause for too many bytes ends as they leave: the reader may owe no ack yet.
            self._after_credit()

    def cancel(self, by: CancelledBy, stamp: float | None = None) -> None:
        """End it, whatever it is doing. Idempotent; the first cause counts."""
        if not self.live:
            return
        stamp = self._clock() if stamp is None else stamp
        self.machine.process(StreamInput.CANCEL)
        self._cancel = (by, stamp)
        self._owner.outbox.close(self.queue)
        self._disarm("slow", "deadline", "accepted")
        assert self.ticket is not None
        if self._released is not None or self._scheduler.cancel(self.ticket, stamp):
            self._end_cancelled(stop_ms=0.0, wasted=0)
            return
        self._arm("confirm", self._policy.confirm_seconds, self._end_unconfirmed)

    def fail(self, error: PlaitError) -> None:
        """The peer or the engine broke this stream: its error is the terminal."""
        if not self.live:
            return
        assert self.ticket is not None
        self._scheduler.cancel(self.ticket, self._clock())
        self._end_failed(error)

    # --- the ticket calls in (StreamListener) --------------------------------------------------

    def on_phase(
        self, phase: Phase, position: int, percent: int | None, eta_ms: int | None
    ) -> None:
        """Tell the client, at most once per interval; what changed meanwhile is told after it."""
        accepted = Accepted(self.id, phase, position, percent, eta_ms)
        if self._accepted is None:
            self._send_accepted(accepted)
        elif self.live and accepted != self._accepted:
            self._accepted = accepted
            if "accepted" not in self._timers:
                wait = self._accepted_at + self._policy.accepted_interval_seconds - self._clock()
                self._arm("accepted", max(0.0, wait), self._repeat_accepted)

    def on_started(self, model: str, prompt_tokens: int, max_tokens: int) -> None:
        self.machine.process(StreamInput.STARTED)
        self._disarm("accepted")
        self._times.start()
        if self.method == "chat":
            self._usage["prompt_tokens"] = prompt_tokens
        self._owner.on_stream_started(self)
        self._send(Started(self.id, model, max_tokens))

    def on_item(self, item: Item) -> None:
        if not self.live:
            return
        self._times.item()
        self._count(item)
        self._owner.outbox.send_item(self.queue, item)
        if self.queue.full and not self._times.paused:
            self._times.pause()
            assert self.ticket is not None
            self._scheduler.pause(self.ticket)
        self._watch_reader()

    def on_finished(self, finish_reason: FinishReason, usage: Usage) -> None:
        self._usage = dict(usage)
        if not self.live:
            return
        self._finish_reason = finish_reason
        self._times.resume()
        self.queue.take_final = self._take_done
        self._owner.outbox.wake(self.queue)
        self._watch_reader()

    def on_failed(self, error: PlaitError, usage: Usage) -> None:
        self._usage = dict(usage)
        if self.live:
            self._end_failed(error)

    def on_refused(self, error: PlaitError) -> None:
        if self._cancel is not None and not self._ended:
            # Its start and its cancel crossed: refused means that it holds nothing.
            self._end_cancelled((self._clock() - self._cancel[1]) * 1000, 0)
        elif self.live:
            self._end_failed(error)

    def on_released(self, released: Released) -> None:
        self._released = released
        if self._cancel is not None and not self._ended:
            self._usage = dict(released.usage)
            stop_ms = max(0.0, (released.at - self._cancel[1]) * 1000)
            self._end_cancelled(stop_ms, released.wasted)

    def on_lost(self, error: PlaitError) -> None:
        if self._cancel is not None and not self._ended:
            # The worker's death is the confirmation; what it wasted died with it.
            self._end_cancelled((self._clock() - self._cancel[1]) * 1000, None)
        elif self.live and self._finish_reason is None:
            self._end_failed(error)

    # --- inside --------------------------------------------------------------------------------

    def _send_accepted(self, accepted: Accepted) -> None:
        self._accepted = accepted
        self._accepted_at = self._clock()
        self._send(accepted)

    def _repeat_accepted(self) -> None:
        assert self._accepted is not None
        self._send_accepted(self._accepted)

    def _count(self, item: Item) -> None:
        if self.method == "chat":
            self._usage["completion_tokens"] += item.units

    def _after_credit(self) -> None:
        self._owner.outbox.wake(self.queue)
        if self._times.paused and self.queue.half_empty and self.live:
            self._times.resume()
            assert self.ticket is not None
            self._scheduler.resume(self.ticket)
        self._watch_reader()

    def _watch_reader(self) -> None:
        """A reader that owes acks has `slow_seconds` to make progress (never with window 0).

        It owes them too when it has credit left, but nothing comes: paused, all sent, only its
        acks can end the pause, and until then the stream's memory is nobody else's.
        """
        waits = self.queue.blocked or (self._times.paused and not self.queue.items)
        if self.queue.credit.window == 0 or not waits:
            self._disarm("slow")
        elif "slow" not in self._timers:
            self._arm("slow", self._policy.slow_seconds, lambda: self.cancel("slow"))

    def _arm(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(seconds, self._fire, name, action)

    def _fire(self, name: str, action: Callable[[], None]) -> None:
        del self._timers[name]
        action()

    def _disarm(self, *names: str) -> None:
        for name in names:
            if timer := self._timers.pop(name, None):
                timer.cancel()

    def _send(self, message: ServerMessage) -> None:
        self._owner.outbox.send_control(encode_server(message))

    # --- the terminals -------------------------------------------------------------------------

    def _take_done(self) -> str:
        """The writer takes `done`: from here on completion has won."""
        assert self._finish_reason is not None
        timing = self._timing()
        self.machine.process(StreamInput.DONE)
        self._end("completed", None)
        done = Done(self.id, self.queue.seq, self._finish_reason, self._usage, timing)
        return encode_server(done)

    def _end_unconfirmed(self) -> None:
        self._end_cancelled(None, None, released=False)

    def _end_cancelled(
        self, stop_ms: float | None, wasted: int | None, *, released: bool = True
    ) -> None:
        assert self._cancel is not None
        terminal = Cancelled(
            self.id,
            self.queue.seq,
            self._cancel[0],
            released,
            None if stop_ms is None else round(stop_ms, 3),
            None if wasted is None else {UNIT[self.method]: wasted},
            self._usage,
            self._timing(),
        )
        self._end("cancelled", terminal)
        self._send(terminal)

    def _end_failed(self, error: PlaitError) -> None:
        self.machine.process(StreamInput.ERROR)
        self._owner.outbox.close(self.queue)
        body = ErrorBody.of(error)
        terminal = StreamFailed(self.id, self.queue.seq, body, self._usage, self._timing())
        self._end("errored", None)
        self._send(terminal)

    def _end(self, outcome: str, cancelled: Cancelled | None) -> None:
        assert not self._ended, self
        self._ended = True
        self._disarm(*list(self._timers))
        self._owner.on_stream_ended(self, outcome, cancelled)

    def _timing(self) -> Timing:
        return self._times.timing(items_left=self.queue.seq > 0)
