"""The races of PROTOCOL.md §9 that `test_endings` does not already tell as its own story.

There: R1 open and cancel in one tick, R2 cancel and done, R3 cancel and error, R6 two cancels, R7
cancel then socket loss, R12 worker death and cancel, R13 shutdown and open. R10 is in
`test_session`, R14 in `test_flow_control`, R15 (rows of a batch) with the adapters.
"""

from __future__ import annotations

import asyncio

from plait.engines.base import Cancel, Start
from tests.sessions.rig import rig
from tests.virtual_time import settle, virtually


@virtually
async def test_r4_a_cancel_while_queued_never_starts_and_gives_the_place_back() -> None:
    async with rig(slots=1) as r:
        peer = await r.connect()
        for id in (1, 2, 3):
            peer.open(id)
        await settle()
        peer.say({"type": "cancel", "id": 2})
        await asyncio.sleep(1.1)
        assert peer.types(2) == ["accepted", "cancelled"]
        assert (peer.last(2)["released"], peer.last(2)["stop_ms"]) == (True, 0.0)
        assert peer.last(3)["position"] == 0
        assert Start(2) not in r.engine.sent


@virtually
async def test_r5_a_cancel_while_the_model_loads_ends_at_once_and_the_load_goes_on() -> None:
    async with rig(ready=False) as r:
        peer = await r.connect()
        peer.open(1)
        await settle()
        peer.say({"type": "cancel", "id": 1})
        await settle()
        assert peer.types(1) == ["accepted", "cancelled"]
        assert r.engine.sent == []
        r.assert_nothing_held()


@virtually
async def test_r5_a_cancel_while_the_worker_prepares_is_final_whatever_the_worker_answers() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(1)
        for _ in range(30):
            await asyncio.sleep(0)
            if r.engine.sent:
                break
        peer.say({"type": "cancel", "id": 1})
        await settle()
        assert "cancelled" in peer.types(1)
        assert any(isinstance(command, Cancel) for command in r.engine.sent)
        r.assert_nothing_held()


@virtually
async def test_r8_a_socket_lost_between_accepted_and_started_holds_nothing() -> None:
    async with rig(slots=1) as r:
        busy, gone = await r.connect(), await r.connect()
        busy.open(1)
        await settle()
        gone.open(1)
        await settle()
        assert gone.types(1) == ["accepted"]
        gone.hang_up()
        await settle()
        assert r.gauge("plait_streams_queued", method="chat") == 0
        assert Start(2) not in r.engine.sent


@virtually
async def test_r9_an_ack_after_the_terminal_is_ignored() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(1)
        await settle()
        r.engine.items(1)
        r.engine.finish(1)
        await settle()
        for seq in (1, 99):
            peer.say({"type": "ack", "id": 1, "seq": seq})
        peer.say({"type": "ping", "n": 1})
        await settle()
        assert peer.types(1)[-1] == "done"
        assert peer.received[-1] == {"type": "pong", "n": 1}


@virtually
async def test_r11_an_end_beside_a_cancel_gives_one_terminal() -> None:
    async with rig() as r:
        peer = await r.connect()
        peer.open(1)
        await settle()
        for type in ("end", "cancel", "end"):
            peer.say({"type": type, "id": 1})
        await settle()
        assert peer.types(1) == ["accepted", "started", "cancelled"]
