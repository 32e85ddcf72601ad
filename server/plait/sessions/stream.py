"""One stream from its open to its single terminal: the one path of every ending.

A stream has no task: it is moved by the session's reader (acks, input, cancel), by its ticket
(phases, items, *released*) and by its own timers, all on the event loop. Whatever ends it goes
through `cancel`, `fail` or the taking of `done`, and all of these through `_end`, once. Order
matters: the stream is fenced and its queue purged in the tick of the cause, the engine is told,
and only after its confirmation (or `confirm_seconds`) the terminal goes out and the stream is
forgotten.

It does not know the socket, why a slot was or was not granted, nor what an item says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from plait.engines.base import Item, Prepared, Released, Usage
from plait.errors import InvalidRequest, PlaitError
from plait.scheduling.scheduler import Scheduler
from plait.scheduling.ticket import Ticket
from plait.sessions.accounts import account_for
from plait.sessions.outbox import StreamQueue
from plait.sessions.owner import StreamOwner
from plait.sessions.policy import StreamPolicy as StreamPolicy
from plait.sessions.reader import Reader
from plait.sessions.stopwatch import Stopwatch
from plait.sessions.terminals import Terminals
from plait.sessions.timers import Timers
from plait.sessions.upload import Upload, window_bytes_for
from plait.sessions.waiting import Waiting
from plait.wire.codec import encode_server
from plait.wire.events import AudioReceived, InputReceived, OpenReceived
from plait.wire.input import InputPort, port_for
from plait.wire.messages import (
    Accepted,
    Cancelled,
    CancelledBy,
    FinishReason,
    Format,
    InputAck,
    Phase,
    ServerMessage,
    Started,
)
from plait.wire.stream import StreamInput, StreamMachine


class Stream:
    """`opened` is when its open was read; all times are of `clock`."""

    def __init__(
        self,
        request: OpenReceived,
        queue: StreamQueue,
        owner: StreamOwner,
        scheduler: Scheduler,
        policy: StreamPolicy,
        clock: Callable[[], float],
        opened: float,
    ) -> None:
        self.id = request.id
        self.method = request.method
        self.queue = queue
        self.machine = StreamMachine()
        self._request = request
        self._owner = owner
        self._scheduler = scheduler
        self._policy = policy
        self._clock = clock
        self._timers = Timers()
        self._times = Stopwatch(opened, clock)
        self._account = account_for(request.method, request.params)
        self._terminals = Terminals(queue, self._times, self._account)
        self._waiting = Waiting(policy.accepted_interval_seconds, self._send, self._timers, clock)
        self._reader = Reader(
            queue,
            self._times,
            self._timers,
            policy.slow_seconds,
            pause=lambda: scheduler.pause(self._ticket),
            resume=lambda: scheduler.resume(self._ticket),
            slow=lambda: self.cancel("slow"),
        )
        self._upload: Upload | None = None  # None: it takes no input
        self._finish_reason: FinishReason | None = None
        self._released: Released | None = None
        self._cancel: tuple[CancelledBy, float] | None = None  # the first cancel's cause and time
        self._heard_ms: float | None = None  # what that cancel said of its listener
        self._ended = False  # the terminal was queued or taken

    _ticket: Ticket  # from `open` on

    @property
    def live(self) -> bool:
        """Neither ended nor being ended: items may still leave."""
        return not self.machine.ended

    @property
    def started(self) -> bool:
        return self._times.started

    # --- the session calls in ------------------------------------------------------------------

    def open(self, connection: str) -> None:
        """Ask for a slot. Raises the typed reason for a `rejected`."""
        request = self._request
        params: dict[str, Any] = msgspec.to_builtins(request.params)  # defaults left out
        port = port_for(request.params)
        window_bytes = 0 if port is InputPort.NONE else window_bytes_for(request.params)
        batch, buffer_bytes = request.priority == "batch", self._policy.max_outbox_bytes
        ticket = self._ticket = self._scheduler.submit(
            self.method, params, connection, batch, self, buffer_bytes + window_bytes
        )
        if window_bytes:
            self._upload = Upload(
                ticket.job,
                window_bytes,
                lambda command: self._scheduler.feed(ticket, command),
                self._timers,
                self._clock,
                one_text=port is InputPort.TEXT,
            )
        self.on_phase(*self._scheduler.phase(ticket))
        if request.deadline_ms is not None:
            left = self._times.opened + request.deadline_ms / 1000 - self._clock()
            self._timers.arm("deadline", left, lambda: self.cancel("deadline"))
        del self._request  # it may hold a megabyte of texts, and is not asked again

    def receive_ack(self, seq: int, window: int | None) -> None:
        """An ack beyond what was sent is this stream's error."""
        if not self.live:
            return
        try:
            progress = self.queue.credit.receive_ack(seq, window)
        except InvalidRequest as error:
            self.fail(error)
            return
        if progress:
            self._owner.outbox.wake(self.queue)
            self._reader.progressed()

    def receive_input(self, event: InputReceived | AudioReceived) -> None:
        """Input beyond its credit is this stream's error."""
        if not self.live:
            return
        assert self._upload is not None, "the connection lets input through only where it is taken"
        try:
            if isinstance(event, AudioReceived):
                self._upload.receive_audio(event.payload)
            else:
                texts = [event.text or ""] if event.texts is None else event.texts
                self._upload.receive_texts(texts)
        except PlaitError as error:
            self.fail(error)

    def finish_input(self) -> None:
        if self.live:
            assert self._upload is not None
            self._upload.finish()

    def items_left(self) -> None:
        """The writer handed items of ours to the socket."""
        if self.live:
            self._reader.drained()

    def cancel(
        self, by: CancelledBy, stamp: float | None = None, heard_ms: float | None = None
    ) -> None:
        """End it, whatever it is doing. Idempotent; the first cause counts."""
        if not self.live:
            return
        stamp = self._clock() if stamp is None else stamp
        self.machine.process(StreamInput.CANCEL)
        self._cancel = (by, stamp)
        self._heard_ms = heard_ms
        self._owner.outbox.close(self.queue)
        self._timers.disarm_all()
        if self._released is not None or self._scheduler.cancel(self._ticket, stamp):
            self._end_cancelled(stop_ms=0.0, wasted=0)
            return
        self._timers.arm("confirm", self._policy.confirm_seconds, self._end_unconfirmed)

    def fail(self, error: PlaitError) -> None:
        """The peer or the engine broke this stream: its error is the terminal."""
        if self.live:
            self._scheduler.cancel(self._ticket, self._clock())
            self._end_failed(error)

    # --- the ticket calls in (StreamListener) --------------------------------------------------

    def on_phase(
        self, phase: Phase, position: int, percent: int | None, eta_ms: int | None
    ) -> None:
        if self.live:
            window_bytes = None if self._upload is None else self._upload.window_bytes
            self._waiting.tell(Accepted(self.id, phase, position, percent, eta_ms, window_bytes))

    def on_started(self, model: str, prepared: Prepared, format: Format | None) -> None:
        self.machine.process(StreamInput.STARTED)
        self._timers.disarm("accepted")
        self._times.start()
        format = self._account.begin(prepared, format)
        self._owner.on_stream_started(self)
        max_tokens = prepared.max_tokens if self.method == "chat" else None
        self._send(Started(self.id, model, max_tokens, format))

    def on_consumed(self, size_bytes: int) -> None:
        if self.live and self._upload is not None:
            total = self._upload.consume(size_bytes)
            self._account.consume(self._upload.consumed_bytes)
            if total is not None:
                self._send(InputAck(self.id, total, self._upload.window_bytes))

    def on_item(self, item: Item) -> None:
        if not self.live or not self._account.take(item):
            return
        if not self._times.had_item:
            self._owner.on_first_item(self, self._times.first_item())
        self._owner.outbox.send_item(self.queue, item)
        self._reader.item_queued()

    def on_finished(self, finish_reason: FinishReason, usage: Usage) -> None:
        self._account.settle(usage)
        if not self.live:
            return
        self._finish_reason = finish_reason
        self._times.resume()
        self.queue.take_final = self._take_done
        self._owner.outbox.wake(self.queue)
        self._reader.watch()

    def on_failed(self, error: PlaitError, usage: Usage) -> None:
        self._account.settle(usage)
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
        self._owner.on_stream_released(self.id, self._times, released)
        if self._cancel is not None and not self._ended:
            self._account.settle(released.usage)
            stop_ms = max(0.0, (released.at - self._cancel[1]) * 1000)
            self._end_cancelled(stop_ms, released.wasted)

    def on_lost(self, error: PlaitError) -> None:
        if self._cancel is not None and not self._ended:
            # The worker's death is the confirmation; what it wasted died with it.
            self._end_cancelled((self._clock() - self._cancel[1]) * 1000, None)
        elif self.live and self._finish_reason is None:
            self._end_failed(error)

    # --- the terminals -------------------------------------------------------------------------

    def _send(self, message: ServerMessage) -> None:
        self._owner.outbox.send_control(encode_server(message))

    def _take_done(self) -> str:
        """The writer takes `done`: from here on completion has won."""
        assert self._finish_reason is not None
        done = self._terminals.done(self._finish_reason)
        self.machine.process(StreamInput.DONE)
        self._end("completed", None)
        return encode_server(done)

    def _end_unconfirmed(self) -> None:
        self._end_cancelled(None, None, released=False)

    def _end_cancelled(
        self, stop_ms: float | None, wasted: int | None, *, released: bool = True
    ) -> None:
        assert self._cancel is not None
        by, heard_ms = self._cancel[0], self._heard_ms
        terminal = self._terminals.cancelled(by, heard_ms, stop_ms, wasted, released=released)
        self._end("cancelled", terminal)
        self._send(terminal)

    def _end_failed(self, error: PlaitError) -> None:
        self.machine.process(StreamInput.ERROR)
        self._owner.outbox.close(self.queue)
        terminal = self._terminals.failed(error)
        self._end("errored", None)
        self._send(terminal)

    def _end(self, outcome: str, cancelled: Cancelled | None) -> None:
        assert not self._ended, self
        self._ended = True
        self._timers.disarm_all()
        self._owner.on_stream_ended(self, outcome, cancelled)
