"""The scheduler of one model: applies admission's decisions to the engine, owns the leases.

Whether the model is in memory is not decided here: its `residence` hears of every coming and going
and is asked before a stream is taken; a stream whose model is out waits in phase `loading`.

Everything here is synchronous and runs on the event loop: streams call in, the engine's events
call in, and every change asks the pump for one decision at the end of the tick. It never looks at
items, never touches a socket, and frees a lease exactly once: on *released* or on the worker's
death.

Bounds: at most `max_queued` streams pending (the next raises QueueFull), of which at most
`MAX_PREPARING` are being tokenized by the worker at a time. Input is bounded by its stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from plait.engines.base import (
    Cancel,
    EngineInfo,
    Feed,
    FinishInput,
    JobEvent,
    Prepare,
    Prepared,
    Released,
    Resume,
    Start,
    Stats,
)
from plait.errors import ModelLoadFailed, PlaitError
from plait.metrics import Metrics
from plait.scheduling.activity import Activity
from plait.scheduling.job_events import JobEvents
from plait.scheduling.leases import Leases
from plait.scheduling.ledger import Ledger
from plait.scheduling.line import Line
from plait.scheduling.load_state import LoadState
from plait.scheduling.model_metrics import ModelMetrics
from plait.scheduling.pauses import Pauses
from plait.scheduling.policy import SchedulerPolicy as SchedulerPolicy
from plait.scheduling.pump import Pump
from plait.scheduling.roles import (
    AlwaysResident,
    EngineHandle as EngineHandle,
    Residence,
    StreamListener,
)
from plait.scheduling.stops import Stops
from plait.scheduling.tenancy import Tenancy
from plait.scheduling.ticket import Ticket, TicketState
from plait.wire.messages import Phase


class Scheduler:
    """Slots, queue and memory of one model. `engine`, and `residence` where somebody decides over
    its memory, are set once, before the first event."""

    engine: EngineHandle
    residence: Residence = AlwaysResident()

    def __init__(
        self,
        model: str,
        metrics: Metrics,
        policy: SchedulerPolicy,
        clock: Callable[[], float] = time.monotonic,
        method: str = "chat",
        ledger: Ledger | None = None,
    ) -> None:
        self.model = model
        self._policy = policy
        self.activity = Activity(model)
        self._metrics = ModelMetrics(metrics, model, method)
        self._clock = clock
        self._tickets: dict[int, Ticket] = {}  # by job, in order of arrival, until released
        self._line = Line(policy.queue_timeout_seconds, policy.max_queued)
        self._load = LoadState(self._line, clock)
        self._leases = Leases(model, ledger or Ledger())
        self._stops = Stops(policy, self._metrics, lambda reason: self.engine.kill(reason))
        self._pauses = Pauses(
            *(policy, self._line, self._leases),
            lambda command: self.engine.send(command),
            lambda: self._pump.touch(),
            clock,
        )
        self._pump = Pump(self, self._line, self._leases, self._pauses, clock)
        self._job_events = JobEvents(self._tickets, self, self._metrics, self._pauses)
        self.tenancy = Tenancy(self._tickets, self._line, self._leases, self._pump)
        self._last_job = 0

    def __repr__(self) -> str:
        return f"<Scheduler {self.model}: {self.tenancy}>"

    # --- streams call in -----------------------------------------------------------------------

    def submit(
        self,
        method: str,
        params: dict[str, Any],
        owner: str,
        batch: bool,
        listener: StreamListener,
        buffer_bytes: int = 0,
    ) -> Ticket:
        """A place in the queue for a new stream, which may buffer so much while it runs.

        Raises ShuttingDown, QueueFull, ResourceNotAvailable, or the reason for which the model
        cannot be loaded.
        """
        self._line.check_open()
        self.residence.check()
        self._load.check()
        room = self._line.max_queued + self._leases.free_slots
        self._line.make_room(self.model, owner, room, self._pump.eta_ms(0), self.refuse)
        job = self._last_job = self._last_job + 1
        prepare = Prepare(job, method, params, owner)
        ticket = Ticket(job, owner, batch, listener, prepare, self._clock(), buffer_bytes)
        self._tickets[job] = ticket
        self._line.join(ticket)
        self._pump.touch()
        self.residence.changed()
        return ticket

    def phase(self, ticket: Ticket) -> tuple[Phase, int, int | None, int | None]:
        """What to tell a stream that was just submitted: (phase, position, percent, eta_ms)."""
        return self._load.phase()

    def cancel(self, ticket: Ticket, stamp: float) -> bool:
        """Stop it. True when it held nothing and is gone; else its `on_released` will follow."""
        if ticket.state in (TicketState.ENDED, TicketState.CANCELLING):
            return ticket.state is TicketState.ENDED
        if ticket.prepared is not None or ticket.state is TicketState.PREPARING:
            self.engine.send(Cancel(ticket.job, stamp))
        if ticket.pending:
            self._forget(ticket)
            return True
        self._line.leave(ticket)
        self._stops.begin(ticket, stamp)
        return False

    def feed(self, ticket: Ticket, command: Feed | FinishInput) -> None:
        """More input, or its end. It waits here only while the worker does not know the job."""
        if ticket.state in (TicketState.CANCELLING, TicketState.ENDED):
            return
        if ticket.state is TicketState.LOADING:
            ticket.early_input.append(command)
        else:
            self.engine.send(command)
        self._pauses.feed(ticket)

    def pause(self, ticket: Ticket) -> None:
        """Stop computing for a reader that does not read."""
        self._pauses.pause(ticket)

    def resume(self, ticket: Ticket) -> None:
        """It reads: compute again, ahead of new work if the slot had been yielded."""
        self._pauses.resume(ticket)

    def drain(self) -> None:
        """Take no new work. What runs may end by itself; the sessions decide when to cancel."""
        self._line.draining = True

    @property
    def idle(self) -> bool:
        return not self._tickets

    # --- the machine calls in (see also `tenancy`) -----------------------------------------------

    def refuse_loading(self, error: PlaitError, submitted_before: float) -> None:
        """End the streams that waited for a worker since then or longer."""
        for ticket in list(self._line.loading.values()):
            if ticket.submitted <= submitted_before:
                self._forget(ticket)
                ticket.listener.on_refused(error)

    def leave(self) -> None:
        """Its worker is about to be unloaded, or gone for good."""
        self._load.unloaded()
        self._close_pump()

    # --- the engine calls in (EngineListener) --------------------------------------------------

    def on_loading(self, phase: str, percent: int | None) -> None:
        self._load.progress(percent)

    def on_ready(self, info: EngineInfo) -> None:
        self._load.ready(info)
        self._pump.open = True
        self._leases.set_capacity(info)
        self._metrics.ready(info)
        self.activity.ready(info)
        self._pump.touch()

    def on_events(self, events: list[JobEvent]) -> None:
        self._job_events.receive(events)

    def on_worker_lost(self, error: PlaitError) -> None:
        """Everything the worker held is free. Loading streams wait for its successor."""
        self._load.lost(error)
        self._metrics.lost()
        for ticket in list(self._tickets.values()):
            if ticket.state is TicketState.LOADING and not isinstance(error, ModelLoadFailed):
                continue
            self._stops.confirm(ticket, self._clock(), 0)
            self._forget(ticket)
            ticket.listener.on_lost(error)
        self._close_pump()

    def _close_pump(self) -> None:
        self._pump.open = False
        self._leases.set_capacity(None)
        self._metrics.unloaded()
        self.activity.gone()

    def observe_stats(self, stats: Stats) -> None:
        """Bring the metrics up to date with the engine's own account (on each scrape)."""
        self._metrics.stats(stats)

    # --- its events, by what they mean (JobTurn) --------------------------------------------------

    def enqueue(self, ticket: Ticket, prepared: Prepared) -> None:
        assert ticket.state is TicketState.PREPARING, ticket
        ticket.prepared = prepared
        try:
            self._leases.check_can_ever_fit(ticket)
        except PlaitError as error:
            self.refuse(ticket, error)
            return
        # Its wait for a load was another one, with bounds of its own.
        since = max(ticket.submitted, self._load.ready_at)
        self._line.enqueue(ticket, TicketState.QUEUED, since)
        self._pump.touch()

    def end_refused(self, ticket: Ticket, error: PlaitError) -> None:
        self._stops.confirm(ticket, self._clock(), 0)
        self._forget(ticket)
        ticket.listener.on_refused(error)

    def release(self, ticket: Ticket, released: Released) -> None:
        self._stops.confirm(ticket, released.at, released.wasted)
        self._forget(ticket)
        self._pump.observe_hold(ticket.slot_seconds)
        ticket.listener.on_released(released)

    # --- the pump calls in (Turn) ---------------------------------------------------------------

    def send_prepare(self, ticket: Ticket) -> None:
        assert ticket.prepare is not None, ticket
        for command in (ticket.prepare, *ticket.early_input):
            self.engine.send(command)
        ticket.prepare = None
        ticket.early_input.clear()

    def refuse(self, ticket: Ticket, error: PlaitError) -> None:
        self.engine.send(Cancel(ticket.job, self._clock()))
        self._forget(ticket)
        ticket.listener.on_refused(error)

    def grant(self, ticket: Ticket) -> None:
        now = self._clock()
        self._line.grant(ticket)
        self._leases.take(ticket, now)
        self.activity.follow(self._leases.slots_used)
        if ticket.state is TicketState.RESUMING:
            ticket.state = TicketState.RUNNING
            self.engine.send(Resume(ticket.job))
            return
        ticket.state = TicketState.RUNNING
        self._metrics.queue_wait(now - ticket.submitted)
        self.engine.send(Start(ticket.job))
        assert ticket.prepared is not None
        assert self._load.info is not None
        ticket.listener.on_started(self.model, ticket.prepared, self._load.info.format)

    def settled(self) -> None:
        self._metrics.leases(self._leases)
        self.activity.follow(self._leases.slots_used)
        if self.tenancy.needs_changed():
            self.residence.changed()

    def _forget(self, ticket: Ticket) -> None:
        """Give back what it holds, exactly once: nobody finds the ticket again afterwards."""
        ticket.stop_timer()
        self._leases.give_back(ticket, self._clock())
        self._line.leave(ticket)
        self._tickets.pop(ticket.job, None)
        ticket.state = TicketState.ENDED
        self._pump.touch()
        self.residence.changed()
