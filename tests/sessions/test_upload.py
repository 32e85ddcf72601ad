"""Input of a stream: where it goes, when it may come, and what it may cost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plait.engines.base import Feed, FinishInput, Prepare, Start
from plait.sessions.upload import FEED_INTERVAL_SECONDS, WINDOW_BYTES
from tests.fakes import MemorySocket, speech_info
from tests.sessions.rig import Rig, rig
from tests.virtual_time import settle, virtually


async def speaking(r: Rig) -> MemorySocket:
    """A peer whose stream 1, job 1, takes input and runs."""
    peer = await r.connect()
    peer.speak(1)
    await settle()
    return peer


def acks(peer: MemorySocket, id: int) -> list[tuple[int, int]]:
    found = [m for m in peer.of(id) if m["type"] == "input_ack"]
    return [(m["bytes"], m["window_bytes"]) for m in found]


@virtually
async def test_only_a_stream_that_takes_input_is_given_upload_credit() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1)
        peer.speak(2, "Hello.")
        await settle()
        assert peer.of(1)[0]["window_bytes"] == WINDOW_BYTES
        assert "window_bytes" not in peer.of(2)[0]


@virtually
async def test_repeats_of_accepted_name_the_credit_too() -> None:
    async with rig(method="synthesize", ready=False) as r:
        peer = await speaking(r)
        r.scheduler.on_loading("weights", 40)
        await asyncio.sleep(1.1)
        assert [m["window_bytes"] for m in peer.of(1)] == [WINDOW_BYTES] * 2


@virtually
async def test_input_reaches_the_job_in_order_and_end_after_it() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        for text in ("One ", "two ", "three."):
            peer.feed(1, text)
        peer.end(1)
        await settle()
        assert r.engine.fed(1) == "One two three."
        assert r.engine.sent[-1] == FinishInput(1)


@virtually
async def test_a_flood_of_tiny_inputs_is_a_few_feeds() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        for letter in "abcdefghij" * 300:
            peer.feed(1, letter)
        await asyncio.sleep(2 * FEED_INTERVAL_SECONDS)
        assert r.engine.fed(1) == "abcdefghij" * 300
        assert sum(isinstance(c, Feed) for c in r.engine.sent) <= 3


@virtually
async def test_a_piece_after_a_rest_is_passed_on_at_once() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        for text in ("One", " two"):
            peer.feed(1, text)
            await settle()
            assert r.engine.sent[-1] == Feed(1, None, [text])
            await asyncio.sleep(FEED_INTERVAL_SECONDS)


@virtually
async def test_an_empty_input_is_nothing_to_the_engine() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        peer.feed(1, "")
        await settle()
        assert r.engine.sent == [r.engine.sent[0], Start(1)]


@virtually
async def test_input_before_the_worker_is_ready_follows_its_prepare() -> None:
    async with rig(method="synthesize", ready=False) as r:
        peer = await speaking(r)
        peer.feed(1, "Early ")
        await asyncio.sleep(1)
        peer.feed(1, "words.")
        peer.end(1)
        await settle()
        assert r.engine.sent == []
        r.scheduler.on_ready(speech_info())
        await settle()
        kinds = [type(command) for command in r.engine.sent]
        assert kinds == [Prepare, Feed, Feed, FinishInput, Start]
        assert r.engine.fed(1) == "Early words."


@virtually
async def test_early_input_outlives_a_worker_that_died_before_it_knew_the_job() -> None:
    async with rig(method="synthesize", ready=False) as r:
        peer = await speaking(r)
        peer.feed(1, "Early.")
        await settle()
        r.engine.crash()
        r.scheduler.on_ready(speech_info())
        await settle()
        assert r.engine.fed(1) == "Early."
        assert "error" not in peer.types(1)


@virtually
async def test_input_of_a_queued_stream_goes_to_the_worker_before_its_start() -> None:
    async with rig(method="synthesize", slots=1) as r:
        peer = await speaking(r)
        peer.speak(2)
        peer.feed(2, "Later.")
        await settle()
        assert r.engine.fed(2) == "Later."
        assert Start(2) not in r.engine.sent


@virtually
async def test_credit_comes_back_as_the_engine_consumes_not_as_input_arrives() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        peer.feed(1, "Grüße.")
        await settle()
        assert acks(peer, 1) == []
        r.engine.consume(1, 8)
        await settle()
        assert acks(peer, 1) == [(8, WINDOW_BYTES)]


@virtually
async def test_credit_counts_utf8_bytes_and_overflow_fails_that_stream_alone() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        peer.speak(2)
        peer.feed(1, "é" * (WINDOW_BYTES // 2))
        peer.feed(1, "x")
        peer.feed(2, "Fine.")
        await settle()
        error = peer.last(1)["error"]
        assert (error["code"], error["data"]) == (
            "input_overflow",
            {"received_bytes": 1, "credit_bytes": 0},
        )
        assert peer.last(2)["type"] == "started"
        assert r.engine.fed(2) == "Fine."


@pytest.mark.parametrize("stop", ["cancel", "end"])
@virtually
async def test_input_after_the_stop_is_ignored_or_that_streams_error(stop: str) -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        r.engine.release_after = 0.05
        peer.say({"type": stop, "id": 1})
        peer.feed(1, "Late.")
        await asyncio.sleep(0.1)
        assert r.engine.fed(1) == ""
        expected = {"cancel": "cancelled", "end": "error"}[stop]
        assert peer.last(1)["type"] == expected
        peer.feed(1, "Later.")
        await settle()
        assert peer.last(1)["type"] == expected
        r.assert_nothing_held()


@pytest.mark.parametrize(
    "wrong",
    [{"texts": ["a"]}, {"text": "a", "texts": ["a"]}, {}, {"text": 5}],
)
@virtually
async def test_input_of_another_kind_is_that_streams_error(wrong: dict[str, Any]) -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        peer.say({"type": "input", "id": 1} | wrong)
        await settle()
        assert peer.last(1)["error"]["code"] == "invalid_request"
        r.assert_nothing_held()


@virtually
async def test_input_for_a_stream_with_its_text_is_its_error_and_end_is_ignored() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        for id in (1, 2):
            peer.speak(id, "Hello.")
        peer.end(1)
        peer.feed(2, "More.")
        await settle()
        assert peer.last(1)["type"] == "started"
        assert peer.last(2)["error"]["code"] == "invalid_request"
        assert not any(isinstance(c, Feed | FinishInput) for c in r.engine.sent)


@virtually
async def test_what_a_worker_claims_beyond_its_feed_gives_nobody_credit() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        peer.feed(1, "abc")
        await settle()
        r.engine.consume(1, 1000)
        await settle()
        assert acks(peer, 1) == [(3, WINDOW_BYTES)]


@virtually
async def test_r11_an_end_beside_a_cancel_gives_one_terminal_with_input_under_way() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        peer.feed(1, "a")
        peer.feed(1, "b")
        peer.end(1)
        peer.say({"type": "cancel", "id": 1})
        peer.end(1)
        await asyncio.sleep(1)
        assert peer.types(1) == ["accepted", "started", "cancelled"]
        r.assert_nothing_held()
