"""Every way a stream can end, and that each gives exactly one terminal and everything back."""

from __future__ import annotations

import asyncio

from plait.engines.base import Fault, Refused
from plait.errors import OutOfMemory
from plait.scheduling.scheduler import SchedulerPolicy
from tests.fakes import MemorySocket
from tests.sessions.rig import Rig, rig
from tests.virtual_time import settle, virtually

TERMINALS = {"done", "cancelled", "error"}


async def running_stream(rig: Rig, id: int = 1, **fields: object) -> MemorySocket:
    peer = await rig.connect()
    peer.open(id, **fields)
    await settle()
    assert peer.types(id)[-1] == "started"
    return peer


@virtually
async def test_a_stream_that_completes_sends_its_items_then_done_and_frees_its_slot() -> None:
    async with rig() as r:
        peer = await running_stream(r)
        r.engine.items(1, 2)
        r.engine.finish(1)
        await settle()
        assert peer.types(1) == ["accepted", "started", "item", "item", "done"]
        assert peer.last(1)["seq"] == 2
        r.assert_nothing_held()


@virtually
async def test_a_cancel_is_confirmed_by_the_engine_and_says_how_long_it_took() -> None:
    async with rig() as r:
        r.engine.release_after = 0.03
        peer = await running_stream(r)
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(0.05)
        last = peer.last(1)
        assert (last["type"], last["by"], last["released"]) == ("cancelled", "client", True)
        assert 29 < last["stop_ms"] < 31
        r.assert_nothing_held()


@virtually
async def test_no_item_follows_a_cancel_that_was_read() -> None:
    async with rig() as r:
        r.engine.release_after = 0.03
        peer = await running_stream(r)
        peer.say({"type": "cancel", "id": 1})
        await settle()
        r.engine.items(1, 3)
        await asyncio.sleep(0.05)
        assert peer.types(1) == ["accepted", "started", "cancelled"]


@virtually
async def test_an_item_purged_before_it_left_has_no_time() -> None:
    async with rig() as r:
        peer = await running_stream(r)
        r.engine.items(1, 1)
        r.engine.fail(1)
        await settle()
        last = peer.last(1)
        assert (last["type"], last["seq"]) == ("error", 0)
        assert last["timing"]["first_item_ms"] is None


@virtually
async def test_an_unconfirmed_cancel_says_so_after_100_ms_and_keeps_the_slot_taken() -> None:
    async with rig(slots=1) as r:
        r.engine.release_after = 0.5
        peer = await running_stream(r)
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(0.2)
        last = peer.last(1)
        assert (last["released"], last["stop_ms"]) == (False, None)
        assert r.gauge("plait_slots_used", model="m") == 1
        await asyncio.sleep(0.4)
        r.assert_nothing_held()
        assert r.gauge("plait_late_releases_total", model="m") == 1


@virtually
async def test_a_job_that_is_never_released_costs_the_worker_its_life_after_10_s() -> None:
    async with rig() as r:
        r.engine.release_after = None
        peer = await running_stream(r)
        peer.open(2)
        await settle()
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(9)
        assert not r.engine.killed
        await asyncio.sleep(2)
        assert len(r.engine.killed) == 1
        assert peer.last(2)["error"]["code"] == "engine_crashed"
        assert peer.last(2)["error"]["retryable"] is True
        r.assert_nothing_held()


@virtually
async def test_a_worker_death_confirms_a_cancel_and_is_never_its_error() -> None:
    async with rig() as r:
        r.engine.release_after = None
        peer = await running_stream(r)
        peer.say({"type": "cancel", "id": 1})
        await settle()
        r.engine.crash()
        await settle()
        last = peer.last(1)
        assert (last["type"], last["released"]) == ("cancelled", True)
        r.assert_nothing_held()


@virtually
async def test_two_cancels_give_one_terminal_and_the_first_decides_by() -> None:
    async with rig() as r:
        r.engine.release_after = 0.03
        peer = await running_stream(r, deadline_ms=1000)
        peer.say({"type": "cancel", "id": 1})
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(2)
        assert [m["by"] for m in peer.of(1) if m["type"] in TERMINALS] == ["client"]


@virtually
async def test_a_deadline_counts_from_the_open_and_includes_the_queue() -> None:
    async with rig(slots=1) as r:
        peer = await running_stream(r)
        peer.open(2, deadline_ms=500)
        await asyncio.sleep(0.6)
        last = peer.last(2)
        assert (last["type"], last["by"], last["stop_ms"]) == ("cancelled", "deadline", 0.0)
        assert "started" not in peer.types(2)


@virtually
async def test_losing_the_socket_tells_the_engine_in_the_same_tick() -> None:
    async with rig() as r:
        peer = await running_stream(r)
        peer.hang_up()
        await settle()
        assert r.gauge("plait_cancelled_total", by="disconnect") == 1
        r.assert_nothing_held()


@virtually
async def test_a_cancel_read_before_the_socket_was_lost_keeps_by_client() -> None:
    async with rig() as r:
        r.engine.release_after = 0.03
        peer = await running_stream(r)
        peer.say({"type": "cancel", "id": 1})
        peer.hang_up()
        await asyncio.sleep(0.1)
        assert r.gauge("plait_cancelled_total", by="client") == 1
        r.assert_nothing_held()


@virtually
async def test_cancel_wins_over_a_completion_whose_done_has_not_left_yet() -> None:
    async with rig() as r:
        peer = await running_stream(r, window=1)
        r.engine.items(1, 2)
        r.engine.finish(1)
        await settle()
        peer.say({"type": "cancel", "id": 1})
        await settle()
        last = peer.last(1)
        assert (last["type"], last["released"], last["stop_ms"]) == ("cancelled", True, 0.0)
        assert last["seq"] == 1


@virtually
async def test_cancel_wins_over_a_failure_that_arrives_after_it() -> None:
    async with rig() as r:
        r.engine.release_after = None
        peer = await running_stream(r)
        peer.say({"type": "cancel", "id": 1})
        await settle()
        r.engine.fail(1)
        await settle()
        assert peer.last(1)["type"] == "cancelled"


@virtually
async def test_a_failed_generation_is_that_streams_error_alone() -> None:
    async with rig() as r:
        peer = await running_stream(r)
        peer.open(2)
        await settle()
        r.engine.fail(1)
        r.engine.items(2)
        r.engine.finish(2)
        await settle()
        assert peer.last(1)["error"]["code"] == "generation_failed"
        assert peer.last(1)["usage"]["prompt_tokens"] == 3
        assert peer.last(2)["type"] == "done"


@virtually
async def test_a_cancel_of_a_finished_or_unknown_id_is_ignored() -> None:
    async with rig() as r:
        peer = await running_stream(r)
        r.engine.finish(1)
        await settle()
        for id in (1, 1, 99):
            peer.say({"type": "cancel", "id": id})
        peer.open(2)
        await settle()
        assert peer.types(1) == ["accepted", "started", "done"]
        assert peer.types(2)[-1] == "started"


@virtually
async def test_open_and_cancel_read_in_one_tick_reach_no_engine() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(1)
        peer.say({"type": "cancel", "id": 1})
        await settle()
        assert peer.types(1) == ["accepted", "cancelled"]
        assert peer.last(1)["released"] is True
        assert r.engine.sent == []


@virtually
async def test_shutdown_ends_pending_streams_at_once_and_lets_running_ones_finish() -> None:
    async with rig(slots=1) as r:
        peer = await running_stream(r)
        peer.open(2)
        await settle()
        r.scheduler.drain()
        r.sessions[0].drain(5)
        await settle()
        assert peer.last(2)["by"] == "shutdown"
        peer.open(3)
        await settle()
        assert peer.last(3)["error"]["code"] == "shutting_down"
        r.engine.finish(1)
        await settle()
        assert peer.last(1)["type"] == "done"
        assert peer.closed is not None
        assert peer.closed[0] == 1001


@virtually
async def test_what_still_runs_when_the_grace_is_over_is_cancelled_by_shutdown() -> None:
    async with rig() as r:
        peer = await running_stream(r)
        r.sessions[0].drain(5)
        r.sessions[0].stop()
        await settle()
        assert peer.last(1)["by"] == "shutdown"
        assert peer.closed is not None
        r.assert_nothing_held()


@virtually
async def test_a_queue_timeout_is_a_typed_error() -> None:
    policy = SchedulerPolicy(queue_timeout_seconds=2)
    async with rig(slots=1, scheduling=policy) as r:
        peer = await running_stream(r)
        peer.open(2)
        await asyncio.sleep(2.1)
        assert peer.last(2)["error"]["code"] == "queue_timeout"
        assert peer.last(2)["error"]["class"] == "capacity"


@virtually
async def test_a_start_refused_after_the_cancel_is_the_release() -> None:
    async with rig() as r:
        r.engine.release_after = None
        peer = await running_stream(r)
        peer.say({"type": "cancel", "id": 1})
        await settle()
        r.scheduler.on_events([Refused(1, Fault.of(OutOfMemory("no room")))])
        await settle()
        last = peer.last(1)
        assert (last["type"], last["released"], last["wasted"]) == (
            "cancelled",
            True,
            {"tokens": 0},
        )
        r.assert_nothing_held()
