"""What a session answers to its peer besides streams' own lives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plait.sessions.outbox import MAX_CONTROL_FRAMES
from tests.fakes import info
from tests.sessions.rig import rig
from tests.virtual_time import settle, virtually


@virtually
async def test_the_server_speaks_first_and_lists_models_and_limits() -> None:
    async with rig() as r:
        peer = await r.connect()
        welcome = peer.received[0]
        assert welcome["type"] == "welcome"
        assert welcome["protocol"] == "plait.v1"
        assert welcome["methods"] == {"chat": {"models": ["m"]}}


@virtually
async def test_ping_is_answered_while_streams_run() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(1)
        peer.say({"type": "ping", "n": 7})
        await settle()
        assert {"type": "pong", "n": 7} in peer.received


@pytest.mark.parametrize("frame", ["{", "[]", '{"type":"nope"}', '{"type":"cancel"}', b"short"])
@virtually
async def test_what_names_no_stream_closes_the_socket_4400(frame: str | bytes) -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.say(frame)
        await settle()
        assert peer.closed is not None
        assert peer.closed[0] == 4400


@virtually
async def test_a_reused_id_is_rejected_and_the_live_stream_is_untouched() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(5)
        await settle()
        peer.open(5)
        peer.open(3)
        await settle()
        r.engine.items(1)
        r.engine.finish(1)
        await settle()
        assert [m["error"]["code"] for m in peer.received if m["type"] == "rejected"] == [
            "id_reused",
            "id_reused",
        ]
        assert peer.types(5)[-1] == "done"


@pytest.mark.parametrize("model", ["../../etc/passwd", "evil/repo", "", "x" * 1000])
@virtually
async def test_an_unknown_model_is_rejected_without_an_engine_call(model: str) -> None:
    async with rig() as r:
        peer = await r.connect()
        params: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": "hi"}],
        }
        peer.say({"type": "open", "id": 1, "method": "chat", "params": params})
        await settle()
        assert peer.last(1)["error"]["code"] == "model_not_found"
        assert r.engine.sent == []


@virtually
async def test_a_rejection_counts_under_its_method_where_the_open_could_say_it() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(1, params={"temperature": -1})
        peer.open(2, resume_seconds=1)
        peer.open(3, method="nope")
        peer.open(4, window="wide")
        await settle()
        rejected = {
            method: r.gauge("plait_streams_total", method=method, outcome="rejected")
            for method in ("chat", "other")
        }
        assert rejected == {"chat": 2, "other": 2}


@virtually
async def test_a_method_without_a_model_is_rejected() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.say({"type": "open", "id": 1, "method": "embed", "params": {"texts": ["a"]}})
        await settle()
        assert peer.types(1) == ["rejected"]
        assert peer.last(1)["error"]["code"] == "unsupported_method"


@virtually
async def test_the_queue_is_bounded_visible_and_fills_up_with_a_typed_rejection() -> None:
    async with rig(slots=1) as r:
        peer = await r.connect()
        for id in range(1, 12):
            peer.open(id)
        await asyncio.sleep(1.5)
        assert [peer.last(id)["type"] for id in (1, 2, 9)] == [
            "started",
            "accepted",
            "accepted",
        ]
        assert peer.last(9)["position"] == 7
        assert [peer.last(id)["error"]["code"] for id in (10, 11)] == ["queue_full"] * 2
        r.engine.finish(1)
        await settle()
        peer.open(12)
        await settle()
        assert peer.types(12) == ["accepted"]


@virtually
async def test_streams_wait_visibly_while_the_model_loads() -> None:
    async with rig(ready=False) as r:
        peer = await r.connect()
        peer.open(1)
        await asyncio.sleep(1.5)
        r.scheduler.on_loading("weights", 40)
        await settle()
        assert (peer.last(1)["phase"], peer.last(1)["percent"]) == ("loading", 40)


@virtually
async def test_a_request_that_can_never_fit_is_refused_with_the_numbers() -> None:
    async with rig(budget_bytes=50) as r:
        peer = await r.connect()
        peer.open(1)
        await settle()
        error = peer.last(1)["error"]
        assert error["code"] == "resource_not_available"
        assert error["data"] == {"model": "m", "required_bytes": 100, "available_bytes": 50}


@virtually
async def test_one_connection_cannot_keep_others_from_their_turn() -> None:
    async with rig(slots=1) as r:
        greedy, modest = await r.connect(), await r.connect()
        for id in range(1, 5):
            greedy.open(id)
        await settle()
        modest.open(1)
        await settle()
        r.engine.finish(1)
        await settle()
        assert modest.types(1)[-1] == "started"


@virtually
async def test_every_queued_and_running_stream_hears_of_a_worker_death() -> None:
    async with rig(slots=2) as r:
        peer = await r.connect()
        for id in range(1, 6):
            peer.open(id)
        await settle()
        r.engine.crash()
        await settle()
        assert [peer.last(id)["error"]["code"] for id in range(1, 6)] == ["engine_crashed"] * 5
        r.assert_nothing_held()


@virtually
async def test_a_full_outbox_leaves_in_turns_with_everything_else() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(1, window=256)
        await settle()
        peer.stop_reading()
        r.engine.items(1, 256)
        await settle()
        peer.read_on()
        peer.say({"type": "cancel", "id": 1})
        await settle(200)
        assert peer.types(1)[-1] == "cancelled"
        assert peer.types(1).count("item") < 64


@virtually
async def test_answers_piling_up_while_several_streams_start_close_without_a_fault() -> None:
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with rig(ready=False) as r:
        peer = await r.connect()
        peer.stop_reading()
        peer.open(1)
        peer.open(2)
        for n in range(MAX_CONTROL_FRAMES - 1):
            peer.say({"type": "ping", "n": n})
        await settle(400)
        r.scheduler.on_ready(info())
        await settle()
        r.assert_nothing_held()
    assert not faults
