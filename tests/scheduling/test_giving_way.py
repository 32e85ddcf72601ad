"""A scheduler whose slots are all taken by one owner, and what others get, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from plait.engines.base import Item, Pause, Prepare, Prepared, Released, Resume, Start, Usage
from plait.errors import PlaitError, QueueFull
from plait.metrics import Metrics
from plait.scheduling.fairness import PATIENCE_SECONDS, TURN_SECONDS
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy
from plait.scheduling.ticket import Ticket, TicketState
from plait.wire.messages import FinishReason, Format, Phase
from tests.fakes import PlayedEngine, info
from tests.virtual_time import settle, virtually

SLOTS = 2
SOON_SECONDS = 0.1


@dataclass
class Listener:
    """A stream that remembers what it was told."""

    positions: list[int] = field(default_factory=list)
    refused: PlaitError | None = None
    released: bool = False

    def on_phase(self, phase: Phase, position: int, percent: int | None, eta: int | None) -> None:
        if phase == "queued":
            self.positions.append(position)

    def on_started(self, model: str, prepared: Prepared, format: Format | None) -> None: ...

    def on_consumed(self, size_bytes: int) -> None: ...

    def on_item(self, item: Item) -> None: ...

    def on_finished(self, finish_reason: FinishReason, usage: Usage) -> None: ...

    def on_failed(self, error: PlaitError, usage: Usage) -> None:
        raise AssertionError(error)

    def on_refused(self, error: PlaitError) -> None:
        self.refused = error

    def on_lost(self, error: PlaitError) -> None:
        raise AssertionError(error)

    def on_released(self, released: Released) -> None:
        self.released = True


class World:
    def __init__(
        self,
        policy: SchedulerPolicy | None = None,
        budget_bytes: int = 10_000,
        kv_kind: Literal["freed", "reusable"] = "freed",
    ) -> None:
        clock = asyncio.get_running_loop().time
        self.scheduler = Scheduler("m", Metrics(), policy or SchedulerPolicy(), clock)
        self.engine = PlayedEngine(self.scheduler, clock)
        self.scheduler.engine = self.engine
        self.scheduler.on_ready(replace(info(SLOTS, budget_bytes), kv_kind=kv_kind))
        self.heard: dict[int, Listener] = {}

    def open(self, owner: str, *, batch: bool = False) -> Ticket:
        listener = Listener()
        ticket = self.scheduler.submit("chat", {}, owner, batch, listener)
        self.heard[ticket.job] = listener
        return ticket

    def flood(self, owner: str = "hog", count: int = 4) -> list[Ticket]:
        return [self.open(owner) for _ in range(count)]

    def sent(self, kind: type[Pause | Resume | Start]) -> list[int]:
        return [command.job for command in self.engine.sent if isinstance(command, kind)]


@virtually
async def test_a_stream_of_a_flood_gives_way_to_another_owner_and_goes_on_afterwards() -> None:
    world = World()
    hogs = world.flood()
    await asyncio.sleep(TURN_SECONDS)
    visitor = world.open("visitor")
    await asyncio.sleep(PATIENCE_SECONDS + SOON_SECONDS)
    assert world.sent(Pause) == [hogs[1].job]
    assert visitor.state is TicketState.RUNNING

    world.engine.finish(visitor.job)
    await settle()

    assert world.sent(Resume) == [hogs[1].job]
    assert [hog.state.value for hog in hogs] == ["running", "running", "queued", "queued"]


@virtually
async def test_who_gave_way_is_still_active_in_the_figures_and_not_queued() -> None:
    world = World()
    world.flood(count=SLOTS + 1)
    await asyncio.sleep(TURN_SECONDS)
    world.open("visitor")
    await asyncio.sleep(PATIENCE_SECONDS + SOON_SECONDS)

    figures = world.scheduler.tenancy.figures()

    assert (figures.slots_used, figures.active, figures.queued) == (SLOTS, SLOTS + 1, 1)


@virtually
async def test_a_stream_that_gave_way_can_be_cancelled_and_holds_nothing_then() -> None:
    world = World()
    hogs = world.flood(count=SLOTS)
    await asyncio.sleep(TURN_SECONDS)
    visitor = world.open("visitor")
    await asyncio.sleep(PATIENCE_SECONDS + SOON_SECONDS)

    world.scheduler.cancel(hogs[1], 0.0)
    world.engine.finish(visitor.job)
    world.engine.finish(hogs[0].job)
    await settle()

    assert all(listener.released for listener in world.heard.values())
    assert world.scheduler.idle
    assert repr(world.scheduler).startswith("<Scheduler m: 0 slots used, 0 bytes reserved")


@virtually
async def test_nobody_gives_way_where_memory_is_what_is_missing() -> None:
    world = World(budget_bytes=SLOTS * 100)
    world.flood(count=SLOTS)
    await asyncio.sleep(TURN_SECONDS)
    world.open("visitor")
    await asyncio.sleep(10 * TURN_SECONDS)

    assert world.sent(Pause) == []


@virtually
async def test_memory_that_belongs_to_the_slot_goes_with_it_and_comes_back_with_it() -> None:
    world = World(budget_bytes=SLOTS * 100, kv_kind="reusable")
    hogs = world.flood(count=SLOTS)
    await asyncio.sleep(TURN_SECONDS)
    visitor = world.open("visitor")
    await asyncio.sleep(PATIENCE_SECONDS + SOON_SECONDS)
    assert (visitor.state, hogs[1].reserved_bytes) == (TicketState.RUNNING, 0)

    world.engine.finish(visitor.job)
    await settle()

    assert (hogs[1].state, hogs[1].reserved_bytes) == (TicketState.RUNNING, 100)


@virtually
async def test_batch_gives_way_to_interactive_of_its_own_owner() -> None:
    world = World()
    jobs = [world.open("app", batch=True) for _ in range(SLOTS)]
    await asyncio.sleep(TURN_SECONDS)
    chat = world.open("app")
    await asyncio.sleep(PATIENCE_SECONDS + SOON_SECONDS)

    assert world.sent(Pause) == [jobs[1].job]
    assert chat.state is TicketState.RUNNING


@virtually
async def test_a_full_line_makes_room_for_who_has_less_in_it() -> None:
    world = World(SchedulerPolicy(max_queued=3))
    hogs = world.flood(count=SLOTS + 3)
    await settle()
    visitor = world.open("visitor")
    await settle()

    refused = world.heard[hogs[-1].job].refused
    assert isinstance(refused, QueueFull)
    assert visitor.state is TicketState.QUEUED
    assert world.heard[visitor.job].positions[-1] == 0


@virtually
async def test_what_one_owner_asks_for_at_once_is_not_all_prepared_before_anothers() -> None:
    world = World()
    world.flood(count=30)
    visitor = world.open("visitor")
    await settle()

    prepared = [one.job for one in world.engine.sent if isinstance(one, Prepare)]
    assert prepared.index(visitor.job) == 1


@virtually
async def test_streams_of_one_owner_are_told_their_place_and_start_in_order() -> None:
    world = World()
    tickets = world.flood(count=SLOTS + 3)
    for ticket in tickets:
        await settle()
        world.engine.finish(ticket.job)
    await settle()

    assert world.sent(Start) == [ticket.job for ticket in tickets]
    assert [world.heard[ticket.job].positions[0] for ticket in tickets[SLOTS:]] == [0, 1, 2]
