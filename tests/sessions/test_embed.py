"""An embedding as its peer sees it: rows, texts without one, what was cut, credit and endings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plait.engines.base import Feed, FinishInput, Pause, Prepare, Resume
from plait.sessions.accounts import MAX_TRUNCATED_LISTED
from plait.sessions.stream import StreamPolicy
from plait.sessions.upload import TEXT_OVERHEAD_BYTES, TEXTS_WINDOW_BYTES
from plait.wire.codec import decode_binary
from tests.fakes import EMBED_USAGE, MemorySocket
from tests.sessions.rig import Rig, rig
from tests.virtual_time import settle, virtually

TOO_LONG = {"code": "input_too_long", "class": "client", "message": "…", "retryable": False}


async def embedding(r: Rig, *texts: str, **params: object) -> MemorySocket:
    """A peer whose stream 1, job 1, runs; its texts follow as input when none are given."""
    peer = await r.connect()
    peer.embed(1, list(texts) or None, params=params)
    await settle()
    return peer


def items(peer: MemorySocket, id: int) -> list[dict[str, Any]]:
    return [message for message in peer.story if message["type"] == "item" and message["id"] == id]


async def cut_off(r: Rig, peer: MemorySocket, id: int = 1) -> dict[str, Any]:
    """The terminal of a stream whose worker dies: it has what was counted, and nothing else."""
    await settle()
    r.engine.crash()
    await settle()
    return peer.last(id)


@virtually
async def test_started_says_how_large_the_rows_are() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a")
        assert peer.last(1)["format"] == {"encoding": "f32", "dims": 3}
        assert "max_tokens" not in peer.last(1)


@virtually
async def test_started_of_a_stream_that_asked_for_json_says_so() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a", encoding="json")
        assert peer.last(1)["format"] == {"encoding": "json", "dims": 3}


@virtually
async def test_rows_are_binary_frames_with_the_index_of_their_first() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a", "b", "c")
        r.engine.rows(1, 0, 2)
        r.engine.rows(1, 2, 1, cut=True)
        r.engine.finish(1)
        await settle()
        frames = [decode_binary(frame) for frame in peer.binary]
        assert [(f.kind, f.seq, f.aux, f.flags) for f in frames] == [(3, 1, 0, 0), (3, 2, 2, 4)]
        assert [len(f.payload) for f in frames] == [24, 12]
        assert (peer.last(1)["type"], peer.last(1)["usage"]) == ("done", EMBED_USAGE)


@virtually
async def test_a_text_without_a_vector_has_its_place_among_the_rows() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a", "b", "c")
        r.engine.rows(1, 0)
        r.engine.answer(1, 1, error=TOO_LONG)
        r.engine.rows(1, 2)
        await settle()
        assert [item["seq"] for item in items(peer, 1)] == [1, 2, 3]
        assert items(peer, 1)[1]["data"] == {"index": 1, "error": TOO_LONG}


@virtually
async def test_a_running_account_counts_texts_and_those_cut_or_failed() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a", "b", "c", "d")
        r.engine.rows(1, 0, 2, cut=True)
        r.engine.answer(1, 2, error=TOO_LONG)
        r.engine.rows(1, 3)
        ended = await cut_off(r, peer)
        assert ended["usage"] == {"texts": 4, "tokens": 0, "truncated": 2, "failed": 1}


@virtually
async def test_the_account_of_a_json_stream_tells_vectors_from_errors() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a", "b", "c", encoding="json")
        r.engine.answer(1, 0, embedding=[0.5, 0.25, 1])
        r.engine.answer(1, 1, cut=True, embedding=[0, 0, 1])
        r.engine.answer(1, 2, error=TOO_LONG)
        ended = await cut_off(r, peer)
        assert ended["usage"] == {"texts": 3, "tokens": 0, "truncated": 1, "failed": 1}


@virtually
async def test_done_lists_what_was_cut_in_either_kind_of_item() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, encoding="json")
        r.engine.answer(1, 0, cut=True, embedding=[1, 0, 0])
        r.engine.answer(1, 1, embedding=[1, 0, 0])
        r.engine.rows(1, 2, 3, cut=True)
        r.engine.finish(1)
        await settle()
        assert peer.last(1)["truncated"] == [0, 2, 3, 4]


@virtually
async def test_done_of_a_stream_of_which_nothing_was_cut_lists_nothing() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a")
        r.engine.rows(1, 0)
        r.engine.finish(1)
        await settle()
        assert "truncated" not in peer.last(1)


@virtually
async def test_only_the_first_thousand_that_were_cut_are_listed_and_all_are_counted() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        for first in range(0, 1500, 30):
            r.engine.rows(1, first, 30, cut=True)
        r.engine.finished_usage = {}
        r.engine.finish(1)
        await settle()
        assert peer.last(1)["truncated"] == list(range(MAX_TRUNCATED_LISTED))


@virtually
async def test_a_cancel_tells_what_was_done_and_what_was_wasted_in_texts() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        r.engine.rows(1, 0, 2)
        r.engine.release_after = None
        await settle()
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(0.01)
        r.engine.release(1, wasted=32)
        await settle()
        assert peer.last(1)["wasted"] == {"texts": 32}
        assert peer.last(1)["usage"] == EMBED_USAGE
        assert r.gauge("plait_texts_total", model="m") == 2
        assert r.gauge("plait_wasted_texts_total", model="m") == 32
        assert r.metrics.registry.get_sample_value("plait_tokens_total", {"model": "m"}) is None


# --- texts that follow -------------------------------------------------------------------------


@virtually
async def test_texts_keep_their_borders_and_the_empty_ones_are_texts() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        peer.feed_texts(1, "one", "")
        peer.feed_texts(1)
        peer.feed_texts(1, "", "two")
        peer.end(1)
        await settle()
        assert r.engine.fed_texts(1) == ["one", "", "", "two"]
        assert r.engine.sent[-1] == FinishInput(1)


@virtually
async def test_texts_given_at_the_open_go_with_it_and_there_is_no_credit() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r, "a", "")
        prepare = r.engine.sent[0]
        assert isinstance(prepare, Prepare)
        assert prepare.params == {"texts": ["a", ""]}
        assert "window_bytes" not in peer.of(1)[0]


@virtually
async def test_no_texts_at_all_are_not_the_same_as_texts_to_come() -> None:
    async with rig(method="embed") as r:
        peer = await r.connect()
        peer.embed(1, [])
        await settle()
        prepare = r.engine.sent[0]
        assert isinstance(prepare, Prepare)
        assert prepare.params == {"texts": []}
        assert "window_bytes" not in peer.of(1)[0]


@virtually
async def test_credit_counts_the_bytes_of_texts_and_sixteen_for_each() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        assert peer.of(1)[0]["window_bytes"] == TEXTS_WINDOW_BYTES
        peer.feed_texts(1, "Grüße", "")
        await settle()
        size = len("Grüße".encode()) + 2 * TEXT_OVERHEAD_BYTES
        r.engine.consume(1, size)
        await settle()
        assert peer.last(1)["bytes"] == size


@virtually
async def test_a_text_as_large_as_a_frame_fits_and_the_next_one_overflows() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        peer.feed_texts(1, "x" * (TEXTS_WINDOW_BYTES - TEXT_OVERHEAD_BYTES - 64))
        await settle()
        assert peer.last(1)["type"] == "started"
        peer.feed_texts(1, *[""] * 5)
        await settle()
        error = peer.last(1)["error"]
        assert (error["code"], error["data"]["received_bytes"]) == ("input_overflow", 80)


@virtually
async def test_a_flood_of_tiny_texts_is_a_few_feeds() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        for number in range(2000):
            peer.feed_texts(1, str(number))
        await asyncio.sleep(0.05)
        assert r.engine.fed_texts(1) == [str(number) for number in range(2000)]
        assert sum(isinstance(c, Feed) for c in r.engine.sent) <= 3


@pytest.mark.parametrize("message", [{"text": "a"}, {"text": "a", "texts": ["a"]}, {}])
@virtually
async def test_input_of_another_kind_is_the_streams_error(message: dict[str, Any]) -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        peer.say({"type": "input", "id": 1} | message)
        await settle()
        assert (peer.last(1)["type"], peer.last(1)["error"]["code"]) == ("error", "invalid_request")


# --- flow control ------------------------------------------------------------------------------


@virtually
async def test_a_reader_who_takes_no_rows_pauses_the_job_at_the_window() -> None:
    async with rig(method="embed") as r:
        peer = await r.connect()
        peer.embed(1, window=4)
        await settle()
        for first in range(0, 6 * 10, 10):
            r.engine.rows(1, first, 10)
        await settle()
        assert len(items(peer, 1)) == 4
        assert r.engine.sent[-1:] == [Pause(1)]
        peer.say({"type": "ack", "id": 1, "seq": 4})
        await settle()
        assert len(items(peer, 1)) == 6
        assert r.engine.sent[-1:] == [Resume(1)]


@virtually
async def test_rows_that_wait_are_bounded_by_their_bytes() -> None:
    async with rig(method="embed", streams=StreamPolicy(max_outbox_bytes=1000)) as r:
        peer = await embedding(r)
        peer.stop_reading()
        for first in range(0, 50, 10):
            r.engine.rows(1, first, 10)  # 120 bytes each
        await settle()
        assert Pause(1) not in r.engine.sent
        for first in range(50, 100, 10):
            r.engine.rows(1, first, 10)
        await settle()
        assert r.engine.sent[-1:] == [Pause(1)]
        peer.read_on()
        await settle()
        assert len(items(peer, 1)) == 10
        assert r.engine.sent[-1:] == [Resume(1)]


@virtually
async def test_a_hang_up_gives_everything_back() -> None:
    async with rig(method="embed") as r:
        peer = await embedding(r)
        peer.embed(2, ["a"])
        peer.feed_texts(1, "a", "b")
        await settle()
        r.engine.rows(1, 0)
        peer.hang_up()
        await settle()
        r.assert_nothing_held()
