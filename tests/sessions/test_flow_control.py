"""Windows, pauses and slow readers: a reader slows its own inference and nothing else."""

from __future__ import annotations

import asyncio

from plait.engines.base import Pause, Resume
from plait.sessions.stream import StreamPolicy
from tests.fakes import MemorySocket
from tests.sessions.rig import Rig, rig
from tests.virtual_time import settle, virtually


async def open_stream(rig: Rig, **fields: object) -> MemorySocket:
    peer = await rig.connect()
    peer.open(1, **fields)
    await settle()
    return peer


def items_of(peer: MemorySocket, id: int) -> int:
    return peer.types(id).count("item")


@virtually
async def test_no_more_than_a_window_of_items_leaves_without_acks() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=4)
        r.engine.items(1, 6)
        await settle()
        assert items_of(peer, 1) == 4
        peer.say({"type": "ack", "id": 1, "seq": 1})
        await settle()
        assert items_of(peer, 1) == 5


@virtually
async def test_the_engine_pauses_at_the_window_and_resumes_at_half() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=4)
        r.engine.items(1, 4)
        await settle()
        assert isinstance(r.engine.sent[-1], Pause)
        peer.say({"type": "ack", "id": 1, "seq": 1})
        await settle()
        assert isinstance(r.engine.sent[-1], Pause)
        peer.say({"type": "ack", "id": 1, "seq": 2})
        await settle()
        assert isinstance(r.engine.sent[-1], Resume)


@virtually
async def test_a_stream_is_paused_when_too_many_bytes_wait() -> None:
    async with rig(streams=StreamPolicy(max_outbox_bytes=64)) as r:
        peer = await open_stream(r)
        peer.stop_reading()
        r.engine.items(1, 6)
        assert isinstance(r.engine.sent[-1], Pause)


@virtually
async def test_a_stream_paused_for_a_second_yields_its_slot_but_keeps_its_reservation() -> None:
    async with rig(slots=1) as r:
        peer = await open_stream(r, window=1)
        peer.open(2)
        r.engine.items(1, 2)
        await asyncio.sleep(0.9)
        assert "started" not in peer.types(2)
        await asyncio.sleep(0.2)
        assert peer.types(2)[-1] == "started"
        assert r.gauge("plait_kv_reserved_bytes", model="m") == 200
        assert r.engine.computing == 1


@virtually
async def test_a_yielded_stream_gets_its_slot_back_before_new_work() -> None:
    async with rig(slots=1) as r:
        peer = await open_stream(r, window=1)
        peer.open(2)
        peer.open(3)
        r.engine.items(1, 1)
        await asyncio.sleep(1.1)
        peer.say({"type": "ack", "id": 1, "seq": 1})
        await settle()
        r.engine.finish(2)
        await settle()
        assert isinstance(r.engine.sent[-1], Resume)
        assert "started" not in peer.types(3)


@virtually
async def test_cancel_of_a_paused_stream_frees_slot_and_reservation() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=1)
        r.engine.items(1, 1)
        await asyncio.sleep(1.5)
        peer.say({"type": "cancel", "id": 1})
        await settle()
        assert peer.last(1)["released"] is True
        assert peer.last(1)["timing"]["paused_ms"] >= 1500
        r.assert_nothing_held()


@virtually
async def test_a_reader_that_never_acks_is_cancelled_as_slow_after_30_s() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=1)
        r.engine.items(1, 2)
        await asyncio.sleep(29)
        assert peer.last(1)["type"] == "item"
        await asyncio.sleep(2)
        assert (peer.last(1)["type"], peer.last(1)["by"]) == ("cancelled", "slow")


@virtually
async def test_a_stream_paused_by_bytes_resumes_when_they_left_without_waiting_for_acks() -> None:
    async with rig(streams=StreamPolicy(max_outbox_bytes=64)) as r:
        await open_stream(r, window=256)
        r.engine.items(1, 8)
        assert isinstance(r.engine.sent[-1], Pause)
        await settle()
        assert isinstance(r.engine.sent[-1], Resume)


@virtually
async def test_a_reader_that_acks_too_little_to_resume_and_then_stops_is_slow() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=8)
        r.engine.items(1, 8)
        await settle()
        peer.say({"type": "ack", "id": 1, "seq": 1})
        await asyncio.sleep(31)
        assert (peer.last(1)["type"], peer.last(1)["by"]) == ("cancelled", "slow")
        r.assert_nothing_held()


@virtually
async def test_ack_progress_restarts_the_slow_readers_clock() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=1)
        r.engine.items(1, 3)
        await asyncio.sleep(20)
        peer.say({"type": "ack", "id": 1, "seq": 1})
        await asyncio.sleep(20)
        assert peer.last(1)["type"] == "item"


@virtually
async def test_a_slow_reader_is_cancelled_even_when_the_engine_has_finished() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=1)
        r.engine.items(1, 2)
        r.engine.finish(1)
        await asyncio.sleep(31)
        assert peer.last(1)["by"] == "slow"


@virtually
async def test_window_zero_needs_no_acks_and_knows_no_slow_reader() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=0)
        r.engine.items(1, 300)
        await asyncio.sleep(40)
        assert items_of(peer, 1) == 300
        r.engine.finish(1)
        await settle()
        assert peer.last(1)["type"] == "done"


@virtually
async def test_an_ack_beyond_what_was_sent_is_that_streams_error() -> None:
    async with rig() as r:
        peer = await open_stream(r)
        peer.say({"type": "ack", "id": 1, "seq": 5})
        await settle()
        error = peer.last(1)["error"]
        assert (error["code"], error["param"]) == ("invalid_request", "seq")
        r.assert_nothing_held()


@virtually
async def test_done_needs_no_credit_and_comes_after_the_last_item() -> None:
    async with rig() as r:
        peer = await open_stream(r, window=2)
        r.engine.items(1, 2)
        r.engine.finish(1)
        await settle()
        assert peer.types(1)[-3:] == ["item", "item", "done"]


@virtually
async def test_a_peer_that_stopped_reading_does_not_slow_another_connection() -> None:
    async with rig() as r:
        stuck = await open_stream(r)
        stuck.stop_reading()
        other = await r.connect()
        other.open(1)
        await settle()
        r.engine.items(1, 100)
        r.engine.items(2, 64)
        await settle(200)
        assert items_of(other, 1) == 64


@virtually
async def test_nothing_is_handed_over_while_the_socket_takes_nothing_and_so_all_can_be_purged() -> (
    None
):
    async with rig() as r:
        peer = await open_stream(r)
        peer.stop_reading()
        r.engine.items(1, 5)
        await settle()
        peer.say({"type": "cancel", "id": 1})
        await settle()
        peer.read_on()
        await settle()
        assert (peer.types(1)[-2:], peer.last(1)["seq"]) == (["started", "cancelled"], 0)


@virtually
async def test_texts_that_waited_for_the_socket_come_as_one_item() -> None:
    async with rig() as r:
        peer = await open_stream(r)
        peer.stop_reading()
        r.engine.items(1, 3)
        await settle()
        peer.read_on()
        await settle()
        assert (peer.last(1)["seq"], peer.last(1)["data"]) == (1, {"content": "t0t1t2"})
