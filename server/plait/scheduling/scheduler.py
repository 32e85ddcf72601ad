"""The scheduler of one model: applies admission's decisions to the engine, owns the leases.

Everything here is synchronous and runs on the event loop: streams call in, the engine's events
call in, and every change asks for one `_pump` at the end of the tick (`call_soon`), so an open and
its cancel read in the same tick reach no engine at all. It never looks at items, never touches a
socket, and frees a lease exactly once: on *released* or on the worker's death.

Bounds: at most `max_queued` streams pending (the next raises QueueFull), of which at most
`MAX_PREPARING` are being tokenized by the worker at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from plait.engines.base import (
    Cancel,
    Command,
    EngineInfo,
    Event,
    Failed,
    Finished,
    Gauges,
    Item,
    LoadFailed,
    Loading,
    Pause,
    Pong,
    Prepare,
    Prepared,
    Ready,
    Refused,
    Released,
    Resume,
    Start,
    Stats,
)
from plait.errors import ModelLoadFailed, PlaitError, QueueFull, ShuttingDown
from plait.metrics import Metrics
from plait.scheduling.admission import Capacity
from plait.scheduling.leases import Leases
from plait.scheduling.line import Line
from plait.scheduling.model_metrics import ModelMetrics
from plait.scheduling.ticket import StreamListener, Ticket, TicketState
from plait.wire.messages import Phase


@dataclass(frozen=True, slots=True)
class SchedulerPolicy:
    max_queued: int = 64
    queue_timeout_seconds: float = 60.0
    yield_after_seconds: float = 1.0  # a paused stream gives its slot to others after this
    release_bound_seconds: float = 0.1  # later releases count as late
    kill_after_seconds: float = 10.0  # an unconfirmed cancel ends the worker


class EngineHandle(Protocol):
    """What the scheduler needs of `engines.process.EngineProcess`."""

    def send(self, command: Command) -> None: ...

    def kill(self, reason: str) -> None: ...


class Scheduler:
    """Slots, queue and memory of one model. `engine` is set once, before the first event."""

    engine: EngineHandle

    def __init__(
        self,
        model: str,
        metrics: Metrics,
        policy: SchedulerPolicy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._policy = policy
        self._metrics = ModelMetrics(metrics, model)
        self._clock = clock
        self._info: EngineInfo | None = None  # None while no worker is ready
        self._load_error: PlaitError | None = None
        self._load_progress: tuple[str, int | None] = ("loading", None)
        self._tickets: dict[int, Ticket] = {}  # by job, in order of arrival, until released
        self._line = Line(policy.queue_timeout_seconds)
        self._leases = Leases()
        self._last_job = 0
        self._draining = False
        self._pump_due = False
        self._timeout_timer: asyncio.TimerHandle | None = None
        self._hold_seconds = 0.0  # moving average of how long a slot is held, for eta

    def __repr__(self) -> str:
        return (
            f"<Scheduler {self.model}: {self._leases.slots_used} slots used, "
            f"{self._leases.budget.reserved_bytes} bytes reserved, {self._line}, "
            f"{len(self._tickets)} tickets>"
        )

    # --- streams call in -----------------------------------------------------------------------

    def submit(
        self, method: str, params: dict[str, Any], owner: str, batch: bool, listener: StreamListener
    ) -> Ticket:
        """A place in the queue for a new stream.

        Raises ShuttingDown, QueueFull, or the reason for which the model cannot be loaded.
        """
        if self._draining:
            raise ShuttingDown("the server is shutting down: reconnect in a moment")
        if self._load_error is not None:
            raise self._load_error
        waiting = len(self._line)
        # What fits into free slots does not wait, so it does not count against the queue.
        if waiting - self._leases.free_slots >= self._policy.max_queued:
            raise QueueFull(
                f"{waiting} streams wait for {self.model} and the queue holds "
                f"{self._policy.max_queued}: try again later",
                data={"queued": waiting, "max_queued": self._policy.max_queued},
                retry_after_ms=self._eta_ms(0) or 1000,
            )
        self._last_job += 1
        job = self._last_job
        prepare = Prepare(job, method, params, owner)
        ticket = Ticket(job, owner, batch, listener, prepare, self._clock())
        self._tickets[job] = ticket
        self._line.join(ticket)
        self._touch()
        return ticket

    def phase(self, ticket: Ticket) -> tuple[Phase, int, int | None, int | None]:
        """What to tell a stream that was just submitted: (phase, position, percent, eta_ms)."""
        position = max(0, len(self._line) - 1)
        if self._info is None:
            return "loading", position, self._load_progress[1], None
        return "preparing", position, None, None

    def cancel(self, ticket: Ticket, stamp: float) -> bool:
        """Stop it. True when it held nothing and is gone; else its `on_released` will follow."""
        if ticket.state in (TicketState.ENDED, TicketState.CANCELLING):
            return ticket.state is TicketState.ENDED
        if ticket.prepared or ticket.state is TicketState.PREPARING:
            self.engine.send(Cancel(ticket.job, stamp))
        if ticket.pending:
            self._forget(ticket)
            return True
        self._line.leave(ticket)
        ticket.state = TicketState.CANCELLING
        ticket.cancel_stamp = stamp
        ticket.stop_timer()
        ticket.timer = asyncio.get_running_loop().call_later(
            self._policy.kill_after_seconds, self._kill_for, ticket
        )
        return False

    def pause(self, ticket: Ticket) -> None:
        """Stop computing for a reader that does not read. The reservation stays."""
        if ticket.state is TicketState.RUNNING:
            self.engine.send(Pause(ticket.job))
            ticket.state = TicketState.PAUSED
            ticket.timer = asyncio.get_running_loop().call_later(
                self._policy.yield_after_seconds, self._yield_slot, ticket
            )
        elif ticket.state is TicketState.RESUMING:
            self._line.leave(ticket)
            ticket.state = TicketState.YIELDED
            self._touch()

    def resume(self, ticket: Ticket) -> None:
        """Compute again; ahead of new work if the slot had been yielded."""
        if ticket.state is TicketState.PAUSED:
            ticket.stop_timer()
            ticket.state = TicketState.RUNNING
            self.engine.send(Resume(ticket.job))
        elif ticket.state is TicketState.YIELDED:
            self._line.enqueue(ticket, TicketState.RESUMING, self._clock())
            self._touch()

    def drain(self) -> None:
        """Take no new work. What runs may end by itself; the sessions decide when to cancel."""
        self._draining = True

    @property
    def idle(self) -> bool:
        return not self._tickets

    # --- the engine calls in (EngineListener) --------------------------------------------------

    def on_loading(self, phase: str, percent: int | None) -> None:
        self._load_progress = (phase, percent)
        for position, ticket in enumerate(self._line.loading.values()):
            ticket.listener.on_phase("loading", position, percent, None)

    def on_ready(self, info: EngineInfo) -> None:
        self._info = info
        self._load_error = None
        self._leases.set_capacity(info)
        self._metrics.ready(info)
        self._touch()

    def on_events(self, events: list[Event]) -> None:
        for event in events:
            self._receive(event)

    def on_worker_lost(self, error: PlaitError) -> None:
        """Everything the worker held is free. Loading streams wait for its successor."""
        self._info = None
        self._metrics.lost()
        failed_to_load = isinstance(error, ModelLoadFailed)
        if failed_to_load:
            self._load_error = error
        for ticket in list(self._tickets.values()):
            if ticket.state is TicketState.LOADING and not failed_to_load:
                continue
            if ticket.cancel_stamp is not None:
                self._observe_release(ticket, self._clock(), 0)
            self._forget(ticket)
            ticket.listener.on_lost(error)
        self._leases.set_capacity(None)

    def observe_stats(self, stats: Stats) -> None:
        """Bring the metrics up to date with the engine's own account (on each scrape)."""
        self._metrics.stats(stats)

    def _receive(self, event: Event) -> None:
        match event:
            case Loading() | Ready() | LoadFailed() | Pong() | Gauges():
                raise AssertionError("the engine handle keeps what is no job's to itself")
            case _:
                # Unknown: a pending job whose cancel crossed the worker's answer.
                ticket = self._tickets.get(event.job)
                if ticket is not None:
                    self._receive_for(ticket, event)

    def _receive_for(
        self, ticket: Ticket, event: Prepared | Refused | Item | Finished | Failed | Released
    ) -> None:
        match event:
            case Item():
                self._metrics.units(event.units)
                ticket.listener.on_item(event)
            case Prepared():
                self._enqueue(ticket, event)
            case Refused():
                if ticket.cancel_stamp is not None:
                    self._observe_release(ticket, self._clock(), 0)
                self._forget(ticket)
                ticket.listener.on_refused(event.fault.to_error())
            case Finished():
                ticket.listener.on_finished(event.finish_reason, event.usage)
            case Failed():
                ticket.listener.on_failed(event.fault.to_error(), event.usage)
            case Released():
                self._release(ticket, event)
            case _:
                assert_never(event)

    # --- leases --------------------------------------------------------------------------------

    def _enqueue(self, ticket: Ticket, prepared: Prepared) -> None:
        assert ticket.state is TicketState.PREPARING, ticket
        ticket.prepared = True
        ticket.prompt_tokens = prepared.prompt_tokens
        ticket.max_tokens = prepared.max_tokens
        ticket.reserve_bytes = prepared.reserve_bytes
        try:
            self._leases.budget.check_can_ever_fit(self.model, prepared.reserve_bytes)
        except PlaitError as error:
            self.engine.send(Cancel(ticket.job, self._clock()))
            self._forget(ticket)
            ticket.listener.on_refused(error)
            return
        self._line.enqueue(ticket, TicketState.QUEUED, ticket.submitted)
        self._touch()

    def _grant(self, ticket: Ticket) -> None:
        self._line.grant(ticket)
        self._leases.take_slot(ticket)
        if ticket.state is TicketState.RESUMING:
            ticket.state = TicketState.RUNNING
            self.engine.send(Resume(ticket.job))
            return
        ticket.state = TicketState.RUNNING
        ticket.started_at = self._clock()
        self._leases.reserve(ticket)
        self._metrics.queue_wait(ticket.started_at - ticket.submitted)
        self.engine.send(Start(ticket.job))
        ticket.listener.on_started(self.model, ticket.prompt_tokens, ticket.max_tokens)

    def _yield_slot(self, ticket: Ticket) -> None:
        assert ticket.state is TicketState.PAUSED, ticket
        ticket.timer = None
        ticket.state = TicketState.YIELDED
        self._leases.free_slot(ticket)
        self._touch()

    def _release(self, ticket: Ticket, released: Released) -> None:
        if ticket.cancel_stamp is not None:
            self._observe_release(ticket, released.at, released.wasted)
        held = self._clock() - ticket.started_at
        self._hold_seconds += 0.2 * (held - self._hold_seconds)
        self._forget(ticket)
        ticket.listener.on_released(released)

    def _observe_release(self, ticket: Ticket, at: float, wasted: int) -> None:
        assert ticket.cancel_stamp is not None
        took = max(0.0, at - ticket.cancel_stamp)
        late = took > self._policy.release_bound_seconds
        self._metrics.cancel_released(took, wasted, late=late)

    def _forget(self, ticket: Ticket) -> None:
        """Give back what it holds, exactly once: nobody finds the ticket again afterwards."""
        ticket.stop_timer()
        self._leases.give_back(ticket)
        self._line.leave(ticket)
        self._tickets.pop(ticket.job, None)
        ticket.state = TicketState.ENDED
        self._touch()

    def _kill_for(self, ticket: Ticket) -> None:
        ticket.timer = None
        self.engine.kill(
            f"job {ticket.job} was not released {self._policy.kill_after_seconds:.0f} s after "
            "its cancel"
        )

    # --- admission -----------------------------------------------------------------------------

    def _touch(self) -> None:
        """Something changed: decide again at the end of this tick."""
        if not self._pump_due:
            self._pump_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_due = False
        if self._info is not None:
            for ticket in self._line.take_to_prepare():
                self.engine.send(ticket.prepare)
            self._admit()
        self._metrics.leases(self._leases)

    def _admit(self) -> None:
        now = self._clock()
        capacity = Capacity(self._leases.free_slots, self._leases.budget.available_bytes)
        decision = self._line.decide(capacity, now)
        for job, error in decision.refuse:
            ticket = self._line.queued[job]
            self.engine.send(Cancel(job, now))
            self._forget(ticket)
            ticket.listener.on_refused(error)
        for job in decision.start:
            self._grant(self._line.queued[job])
        for position, job in enumerate(decision.waiting):
            ticket = self._line.queued[job]
            if ticket.state is TicketState.QUEUED:
                ticket.listener.on_phase("queued", position, None, self._eta_ms(position))
        self._arm_timeout()

    def _arm_timeout(self) -> None:
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
            self._timeout_timer = None
        when = self._line.next_timeout
        if when is not None:
            delay = max(0.0, when - self._clock())
            self._timeout_timer = asyncio.get_running_loop().call_later(delay, self._touch)

    def _eta_ms(self, position: int) -> int | None:
        if self._info is None or self._hold_seconds == 0:
            return None
        return round(1000 * self._hold_seconds * (position + 1) / self._info.slots)
