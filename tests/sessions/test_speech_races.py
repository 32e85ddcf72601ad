"""The races of PROTOCOL.md §9 once more, where input or what was heard makes them another story.

R11 is in `test_upload`; R8 and R12 in `test_speech`, with the other endings; R15 with the adapters.
"""

from __future__ import annotations

import asyncio

from plait.engines.base import Prepare
from tests.fakes import speech_info
from tests.sessions.rig import rig
from tests.virtual_time import settle, virtually


@virtually
async def test_r1_open_input_end_and_cancel_in_one_segment_reach_no_engine() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1)
        peer.feed(1, "Hello.")
        peer.end(1)
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(1)
        assert peer.types(1) == ["accepted", "cancelled"]
        assert r.engine.sent == []
        r.assert_nothing_held()


@virtually
async def test_r2_a_cancel_beside_done_after_the_input_ended_gives_one_terminal() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        for id in (1, 2):
            peer.speak(id)
            peer.end(id)
        await settle()
        r.engine.finish(1)
        peer.say({"type": "cancel", "id": 1, "heard_ms": 0})
        peer.say({"type": "cancel", "id": 2, "heard_ms": 0})
        r.engine.finish(2)
        await asyncio.sleep(0.2)
        ends = [[t for t in peer.types(id) if t in ("done", "cancelled")] for id in (1, 2)]
        assert [len(end) for end in ends] == [1, 1]
        r.assert_nothing_held()


@virtually
async def test_r3_an_overflow_beside_a_cancel_ends_by_what_was_read_first() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        for id in (1, 2):
            peer.speak(id)
        await settle()
        peer.say({"type": "cancel", "id": 1})
        for id in (1, 2):
            peer.feed(id, "x" * 100_000)
        peer.say({"type": "cancel", "id": 2})
        await asyncio.sleep(0.2)
        assert peer.types(1)[-1] == "cancelled"
        assert peer.last(2)["error"]["code"] == "input_overflow"
        r.assert_nothing_held()


@virtually
async def test_r5_input_of_a_stream_cancelled_while_the_model_loads_goes_nowhere() -> None:
    async with rig(method="synthesize", ready=False) as r:
        peer = await r.connect()
        for id in (1, 2):
            peer.speak(id)
            peer.feed(id, f"Text {id}.")
        await settle()
        peer.say({"type": "cancel", "id": 1})
        await settle()
        r.scheduler.on_ready(speech_info())
        await settle()
        assert [c.job for c in r.engine.sent if isinstance(c, Prepare)] == [2]
        assert (r.engine.fed(1), r.engine.fed(2)) == ("", "Text 2.")


@virtually
async def test_r13_a_synthesis_read_before_the_shutdown_may_still_be_fed() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1)
        await settle()
        r.sessions[0].drain(5)
        peer.feed(1, "The rest.")
        peer.end(1)
        peer.speak(2, "Too late.")
        await settle()
        assert r.engine.fed(1) == "The rest."
        assert peer.last(2)["error"]["code"] == "shutting_down"
        r.engine.finish(1)
        await settle()
        assert peer.last(1)["type"] == "done"


@virtually
async def test_r14_a_cancel_of_a_paused_voice_that_waits_for_text_gives_all_back() -> None:
    async with rig(method="synthesize", slots=1) as r:
        peer = await r.connect()
        peer.speak(1, window=1)
        await settle()
        peer.feed(1, "Hello. And")
        r.engine.mark(1, "Hello. ", 0.0, 0.1)
        r.engine.audio(1, 100)
        await asyncio.sleep(1.5)
        peer.say({"type": "cancel", "id": 1, "heard_ms": 100})
        await settle()
        assert (peer.last(1)["heard"], peer.last(1)["released"]) == ("Hello. ", True)
        r.assert_nothing_held()
