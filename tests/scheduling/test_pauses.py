"""Random rests of jobs, for readers and for input: no slot is lost and nobody is forgotten."""

from __future__ import annotations

import asyncio

import msgspec
from hypothesis import given, settings, strategies as st

from plait.engines.base import Feed, Item, Prepared, Released, Usage
from plait.errors import PlaitError
from plait.metrics import Metrics
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy
from plait.scheduling.ticket import Ticket, TicketState
from plait.wire.messages import FinishReason, Format, Phase
from tests.fakes import PlayedEngine, speech_info
from tests.virtual_time import run_virtually, settle

SLOTS, STREAMS = 2, 5
KEEPS_BYTES, NEEDS_BYTES = 10, 100


class Listener:
    """A stream that only remembers its end."""

    def __init__(self) -> None:
        self.released = False

    def on_phase(self, phase: Phase, position: int, percent: int | None, eta: int | None) -> None:
        pass

    def on_started(self, model: str, prepared: Prepared, format: Format | None) -> None:
        pass

    def on_consumed(self, size_bytes: int) -> None:
        pass

    def on_item(self, item: Item) -> None:
        pass

    def on_finished(self, finish_reason: FinishReason, usage: Usage) -> None:
        pass

    def on_failed(self, error: PlaitError, usage: Usage) -> None:
        raise AssertionError(error)

    def on_refused(self, error: PlaitError) -> None:
        raise AssertionError(error)

    def on_lost(self, error: PlaitError) -> None:
        raise AssertionError(error)

    def on_released(self, released: Released) -> None:
        self.released = True


class World:
    def __init__(self) -> None:
        clock = asyncio.get_running_loop().time
        self.scheduler = Scheduler("m", Metrics(), SchedulerPolicy(), clock, "synthesize")
        self.engine = PlayedEngine(self.scheduler, clock, reserve_bytes=NEEDS_BYTES)
        self.scheduler.engine = self.engine
        # Memory for all that compute, and for one more beside what the others keep.
        budget_bytes = SLOTS * NEEDS_BYTES + (STREAMS - SLOTS) * KEEPS_BYTES
        self.scheduler.on_ready(
            msgspec.structs.replace(speech_info(SLOTS), kv_budget_bytes=budget_bytes)
        )
        self.tickets: list[Ticket] = []
        for index in range(STREAMS):
            ticket = self.scheduler.submit("synthesize", {}, f"o{index % 2}", False, Listener())
            self.tickets.append(ticket)

    def act(self, name: str, ticket: Ticket) -> None:
        """What a stream, its reader or its job may do now; anything else is skipped."""
        computes = self.engine.running.get(ticket.job) is False
        match name:
            case "pause" if computes or ticket.state is TicketState.RESUMING:
                self.scheduler.pause(ticket)
            case "resume" if ticket.reader_rests:
                self.scheduler.resume(ticket)
            case "feed":
                self.scheduler.feed(ticket, Feed(ticket.job, None, ["x"]))
            case "starve" if computes:
                self.engine.starve(ticket.job, keeps_bytes=KEEPS_BYTES)
            case "starve_late" if computes and ticket.inputs:
                self.engine.starve(ticket.job, crossed=1, keeps_bytes=KEEPS_BYTES)

    def check(self) -> None:
        states = [ticket.state for ticket in self.tickets]
        assert self.engine.computing <= SLOTS
        assert sum(ticket.holds_slot for ticket in self.tickets) <= SLOTS
        for ticket in self.tickets:
            if ticket.state in (TicketState.QUEUED, TicketState.RESUMING):
                assert not ticket.rests
            if ticket.state is TicketState.RESUMING and ticket.lacks_bytes == 0:
                # A slot is all it wants: then all are taken.
                assert sum(t.holds_slot for t in self.tickets) == SLOTS, states


actions = st.tuples(
    st.sampled_from(["pause", "resume", "feed", "starve", "starve_late"]),
    st.integers(0, STREAMS - 1),
    st.sampled_from([0.0, 0.0, 0.5, 1.5, 2.5]),
)


async def live(script: list[tuple[str, int, float]]) -> None:
    world = World()
    await settle()
    for name, which, seconds in script:
        world.act(name, world.tickets[which])
        await settle()
        world.check()
        await asyncio.sleep(seconds)
    for ticket in world.tickets:
        world.act("resume", ticket)
        world.act("feed", ticket)
    for _ in world.tickets:
        await settle()
        job = next(job for job, paused in world.engine.running.items() if not paused)
        world.engine.finish(job)
    assert all(ticket.listener.released for ticket in world.tickets)  # type: ignore[attr-defined]
    assert world.scheduler.idle


@settings(max_examples=100, deadline=None)
@given(st.lists(actions, max_size=40))
def test_whoever_rested_goes_on_in_the_end_and_no_slot_is_lost(
    script: list[tuple[str, int, float]],
) -> None:
    run_virtually(lambda: live(script))
