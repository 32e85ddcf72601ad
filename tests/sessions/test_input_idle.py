"""A stream that waits for its input holds no slot for long, and gets one back when input comes."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from plait.engines.base import Feed, FinishInput, Pause, Resume, Start
from plait.sessions.stream import StreamPolicy
from tests.fakes import MemorySocket, speech_info
from tests.sessions.rig import Rig, rig
from tests.virtual_time import settle, virtually


async def starving(r: Rig, *ids: int, **fields: Any) -> MemorySocket:
    """A peer with these streams, started and without any input."""
    peer = await r.connect()
    for id in ids:
        peer.speak(id, **fields)
    await settle()
    for id in ids:
        r.engine.starve(id)
    return peer


def slots_used(r: Rig) -> float:
    return r.gauge("plait_slots_used", model="m")


@virtually
async def test_idle_streams_leave_their_slots_to_one_with_a_text() -> None:
    async with rig(method="synthesize") as r:
        peer = await starving(r, 1, 2)
        peer.speak(3, "Now.")
        await asyncio.sleep(1.9)
        assert (peer.last(3)["type"], slots_used(r)) == ("accepted", 2)
        await asyncio.sleep(0.2)
        assert (peer.last(3)["type"], slots_used(r)) == ("started", 1)
        assert {c.job for c in r.engine.sent if isinstance(c, Pause)} == {1, 2}


@pytest.mark.parametrize("what", ["input", "end"])
@virtually
async def test_input_or_its_end_gets_a_slot_back_ahead_of_new_work(what: str) -> None:
    async with rig(method="synthesize", slots=1) as r:
        peer = await starving(r, 1)
        peer.speak(2, "Now.")
        await asyncio.sleep(2.1)
        peer.speak(3, "Later.")
        await settle()
        peer.feed(1, "Well.") if what == "input" else peer.end(1)
        await settle()
        assert not any(isinstance(c, Resume) for c in r.engine.sent)
        r.engine.finish(2)
        await settle()
        assert r.engine.sent[-1] == Resume(1)
        assert (peer.last(3)["type"], slots_used(r)) == ("accepted", 1)


@virtually
async def test_a_slot_that_is_free_is_given_back_in_the_tick_of_the_input() -> None:
    async with rig(method="synthesize") as r:
        peer = await starving(r, 1)
        await asyncio.sleep(100)
        assert slots_used(r) == 0
        peer.feed(1, "Well.")
        await settle()
        assert r.engine.sent[-2:] == [Feed(1, None, ["Well."]), Resume(1)]
        assert slots_used(r) == 1


@virtually
async def test_input_now_and_then_keeps_the_slot() -> None:
    async with rig(method="synthesize") as r:
        peer = await starving(r, 1)
        for _ in range(5):
            await asyncio.sleep(1.9)
            peer.feed(1, "x")
            await settle()
            r.engine.starve(1)
        assert not any(isinstance(c, Pause) for c in r.engine.sent)


@virtually
async def test_a_stream_at_work_on_its_input_is_never_idle() -> None:
    async with rig(method="synthesize") as r:
        peer = await starving(r, 1)
        peer.feed(1, "A long one.")
        await asyncio.sleep(60)
        assert not any(isinstance(c, Pause) for c in r.engine.sent)


@pytest.mark.parametrize("what", ["input", "end"])
@virtually
async def test_hunger_told_before_the_input_arrived_is_void(what: str) -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1)
        await settle()
        peer.feed(1, "Well.") if what == "input" else peer.end(1)
        await settle()
        r.engine.starve(1, crossed=1)
        await asyncio.sleep(5)
        assert not any(isinstance(c, Pause) for c in r.engine.sent)


@virtually
async def test_input_from_before_the_start_counts() -> None:
    async with rig(method="synthesize", ready=False) as r:
        peer = await r.connect()
        peer.speak(1)
        peer.feed(1, "Well")
        await settle()
        r.scheduler.on_ready(speech_info())
        await settle()
        r.engine.starve(1)
        await asyncio.sleep(2.1)
        assert r.engine.sent[-1] == Pause(1)


async def resting_for_both(r: Rig) -> MemorySocket:
    """Stream 1: its reader has read nothing and its job has nothing to say, for 5 s."""
    peer = await r.connect()
    peer.speak(1, window=1)
    await settle()
    r.engine.audio(1, 100)
    r.engine.starve(1)
    await asyncio.sleep(5)
    assert slots_used(r) == 0
    return peer


@pytest.mark.parametrize("first", ["ack", "input"])
@virtually
async def test_it_goes_on_only_when_the_reader_reads_and_there_is_input(first: str) -> None:
    async with rig(method="synthesize") as r:
        peer = await resting_for_both(r)
        says = {
            "ack": lambda: peer.say({"type": "ack", "id": 1, "seq": 1}),
            "input": lambda: peer.feed(1, "More."),
        }
        says.pop(first)()
        await asyncio.sleep(5)
        assert (slots_used(r), Resume(1) in r.engine.sent) == (0, False)
        says.popitem()[1]()
        await settle()
        assert (slots_used(r), Resume(1) in r.engine.sent) == (1, True)


@virtually
async def test_a_reader_back_within_a_second_leaves_the_idle_job_its_two() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1, window=1)
        await settle()
        r.engine.audio(1, 100)
        r.engine.starve(1)
        await asyncio.sleep(0.5)
        peer.say({"type": "ack", "id": 1, "seq": 1})
        await asyncio.sleep(1.9)
        assert (r.engine.sent[-1], slots_used(r)) == (Resume(1), 1)
        await asyncio.sleep(0.2)
        assert (r.engine.sent[-1], slots_used(r)) == (Pause(1), 0)


@virtually
async def test_waiting_for_input_is_no_slow_reading_and_no_pause_of_the_reader() -> None:
    async with rig(method="synthesize", streams=StreamPolicy(slow_seconds=3)) as r:
        peer = await starving(r, 1)
        await asyncio.sleep(1000)
        peer.end(1)
        await settle()
        r.engine.finish(1)
        await settle()
        assert (peer.last(1)["type"], peer.last(1)["timing"]["paused_ms"]) == ("done", 0)
        r.assert_nothing_held()


@pytest.mark.parametrize("wanted_back", [False, True])
@pytest.mark.parametrize("by", ["client", "deadline", "shutdown", "disconnect"])
@virtually
async def test_what_ends_an_idle_stream_gives_everything_back(by: str, wanted_back: bool) -> None:
    async with rig(method="synthesize", slots=1) as r:
        peer = await starving(r, 1, **({"deadline_ms": 4000} if by == "deadline" else {}))
        other = await r.connect()
        other.speak(1, "Long.")
        await asyncio.sleep(3)
        if wanted_back:
            peer.feed(1, "Well.")
            await settle()
        match by:
            case "client":
                peer.say({"type": "cancel", "id": 1})
            case "shutdown":
                r.sessions[0].stop()
            case "disconnect":
                peer.hang_up()
        await asyncio.sleep(2)
        assert r.gauge("plait_cancelled_total", by=by) == 1
        assert slots_used(r) == 1
        r.engine.finish(2)
        await settle()
        r.assert_nothing_held()


@virtually
async def test_a_dead_worker_fails_an_idle_stream() -> None:
    async with rig(method="synthesize") as r:
        peer = await starving(r, 1)
        await asyncio.sleep(3)
        r.engine.crash()
        await settle()
        assert peer.last(1)["error"]["code"] == "engine_crashed"
        r.assert_nothing_held()


@virtually
async def test_memory_the_job_does_not_keep_is_given_back_and_wanted_again() -> None:
    async with rig(method="synthesize") as r:
        r.scheduler.on_ready(msgspec.structs.replace(speech_info(), kv_budget_bytes=110))
        r.engine.reserve_bytes = 100
        peer = await r.connect()
        peer.speak(1)
        peer.speak(2, "Now.")
        await settle()
        r.engine.starve(1, keeps_bytes=10)
        await asyncio.sleep(2.1)
        assert r.gauge("plait_kv_reserved_bytes", model="m") == 110
        peer.feed(1, "Well.")
        await settle()
        assert r.engine.sent[-2:] == [Start(2), Feed(1, None, ["Well."])]
        r.engine.finish(2)
        await settle()
        assert r.engine.sent[-1] == Resume(1)
        assert r.gauge("plait_kv_reserved_bytes", model="m") == 100


@virtually
async def test_hours_without_a_slot_make_nobody_expect_to_wait_for_hours() -> None:
    async with rig(method="synthesize", slots=1) as r:
        peer = await starving(r, 1)
        await asyncio.sleep(10_000)
        peer.end(1)
        await settle()
        assert isinstance(r.engine.sent[-2], FinishInput)
        r.engine.finish(1)
        peer.speak(2, "x")
        peer.speak(3, "y")
        await asyncio.sleep(2)
        assert peer.last(3)["eta_ms"] <= 2000
