"""A transcription's life in the gateway: audio in, revisions out, what it costs, how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plait.engines.base import Feed, FinishInput, Item, Pause, Prepare, Resume, Start
from plait.sessions.stream import StreamPolicy
from plait.sessions.upload import FEED_INTERVAL_SECONDS
from tests.fakes import LISTENING_USAGE, MemorySocket, listening_info
from tests.sessions.rig import Rig, rig
from tests.virtual_time import settle, virtually

SECOND = 32_000  # bytes of 16 kHz mono PCM16
WINDOW = 10 * SECOND


async def listening(r: Rig, **fields: Any) -> MemorySocket:
    """A peer whose stream 1, job 1, is transcribed."""
    peer = await r.connect()
    peer.transcribe(1, **fields)
    await settle()
    return peer


def shown(peer: MemorySocket, id: int = 1) -> list[tuple[int, int, str]]:
    return [(s["index"], s["revision"], s["text"]) for s in peer.segments(id)]


def acks(peer: MemorySocket) -> list[tuple[int, int]]:
    found = [m for m in peer.of(1) if m["type"] == "input_ack"]
    return [(m["bytes"], m["window_bytes"]) for m in found]


# --- its open ------------------------------------------------------------------------------------


@virtually
async def test_welcome_says_which_languages_may_be_asked_for() -> None:
    async with rig(method="transcribe") as r:
        peer = await r.connect()
        assert peer.received[0]["methods"] == {
            "transcribe": {"models": ["m"], "languages": ["en", "de"]}
        }


@pytest.mark.parametrize(
    ("params", "window_bytes"),
    [
        ({}, 320_000),
        ({"sample_rate": 8000}, 160_000),
        ({"sample_rate": 48_000, "channels": 2}, 1_920_000),
        ({"sample_rate": 44_100, "encoding": "pcm_f32le"}, 1_764_000),
    ],
)
@virtually
async def test_the_upload_window_is_ten_seconds_of_the_declared_format(
    params: dict[str, Any], window_bytes: int
) -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, params=params)
        assert peer.of(1)[0]["window_bytes"] == window_bytes
        peer.hear(1, bytes(100))
        await settle()
        r.engine.consume(1, 100)
        await settle()
        assert acks(peer) == [(100, window_bytes)]


@virtually
async def test_a_language_comes_to_the_engine_by_the_models_name_or_not_at_all() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, params={"language": "DE_at", "words": True})
        peer.transcribe(2)
        await settle()
        prepares = [c.params for c in r.engine.sent if isinstance(c, Prepare)]
        assert prepares == [
            {"sample_rate": 16_000, "language": "de", "words": True},
            {"sample_rate": 16_000},
        ]


@virtually
async def test_an_unknown_language_is_refused_by_its_field_and_no_engine_is_called() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, params={"language": "tlh"})
        error = peer.last(1)["error"]
        assert (error["code"], error["param"]) == ("invalid_request", "language")
        assert "en, de" in error["message"]
        assert r.engine.sent == []


# --- audio in ------------------------------------------------------------------------------------


@virtually
async def test_audio_cut_anywhere_arrives_whole_and_the_end_after_it() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        audio = bytes(range(256)) * 20
        for begin, end in ((0, 1), (1, 4), (4, 4), (4, 1605), (1605, 5120)):
            peer.hear(1, audio[begin:end], flags=65_535)
        peer.end(1)
        await settle()
        assert r.engine.fed_audio(1) == audio
        assert r.engine.sent[-1] == FinishInput(1)
        assert sum(isinstance(c, Feed) for c in r.engine.sent) == 2


@virtually
async def test_a_flood_of_tiny_frames_is_a_few_feeds() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        for i in range(4000):
            peer.hear(1, bytes([i % 256]))
        await asyncio.sleep(2 * FEED_INTERVAL_SECONDS)
        assert len(r.engine.fed_audio(1)) == 4000
        assert sum(isinstance(c, Feed) for c in r.engine.sent) <= 3


@virtually
async def test_audio_before_the_worker_is_ready_or_a_slot_is_free_follows_its_prepare() -> None:
    async with rig(method="transcribe", slots=1, ready=False) as r:
        peer = await listening(r)
        peer.transcribe(2)
        for id in (1, 2):
            peer.hear(id, bytes([id]) * SECOND)
        await settle()
        r.scheduler.on_ready(listening_info(1))
        await settle()
        assert [r.engine.fed_audio(job) for job in (1, 2)] == [b"\1" * SECOND, b"\2" * SECOND]
        assert Start(2) not in r.engine.sent


@virtually
async def test_credit_comes_back_by_quarters_of_the_window_as_the_engine_listens() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        for _ in range(9):
            peer.hear(1, bytes(SECOND))
        await settle()
        for _ in range(9):
            r.engine.consume(1, SECOND)
        await settle()
        assert acks(peer) == [(n * SECOND, WINDOW) for n in (3, 6, 9)]


@virtually
async def test_audio_beyond_the_window_is_a_typed_error_of_that_stream_alone() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        peer.transcribe(2)
        await settle()
        for _ in range(10):
            peer.hear(1, bytes(SECOND))
        await settle()
        r.engine.consume(1, SECOND)  # not yet confirmed to the client: no credit
        peer.hear(1, b"\0")
        peer.hear(2, bytes(SECOND))
        await settle()
        failed = peer.last(1)
        assert failed["error"]["code"] == "input_overflow"
        assert failed["error"]["data"] == {"received_bytes": 1, "credit_bytes": 0}
        assert failed["usage"] == {"audio_ms": 1000}
        assert len(r.engine.fed_audio(2)) == SECOND
        r.engine.finish(2)
        await settle()
        assert peer.last(2)["type"] == "done"


@virtually
async def test_text_is_no_audio_and_audio_after_the_end_is_an_error() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        peer.transcribe(2)
        peer.feed(1, "Hello.")
        peer.end(2)
        peer.hear(2, b"\0\0")
        await settle()
        assert [peer.last(id)["error"]["param"] for id in (1, 2)] == ["text", "type"]
        r.assert_nothing_held()


# --- revisions out -------------------------------------------------------------------------------


@virtually
async def test_a_slow_reader_skips_revisions_and_gets_every_final() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, window=1)
        for index in range(3):
            for revision in range(1, 40):
                r.engine.segment(1, index, revision, "half")
            r.engine.segment(1, index, 40, "whole", final=True)
        for seq in range(1, 6):
            await settle()
            peer.say({"type": "ack", "id": 1, "seq": seq})
        r.engine.finish(1)
        await settle()
        assert shown(peer) == [(index, 40, "whole") for index in range(3)]
        assert peer.last(1)["type"] == "error"  # of the last ack: there were three items


@virtually
async def test_revisions_of_one_segment_take_one_place_of_the_window_and_pause_nobody() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, window=4)
        peer.stop_reading()
        for revision in range(1, 1000):
            r.engine.segment(1, 0, revision, "x" * 1000)
        await settle()
        assert Pause(1) not in r.engine.sent
        peer.read_on()
        await settle()
        assert [revision for _, revision, _ in shown(peer)][-1] == 999
        assert len(shown(peer)) <= 2


@virtually
async def test_segments_that_nobody_reads_pause_the_engine_and_reading_resumes_it() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, window=4)
        for index in range(4):
            r.engine.segment(1, index, 1, "whole", final=True)
        await settle()
        assert r.engine.running == {1: True}
        peer.say({"type": "ack", "id": 1, "seq": 4})
        await settle()
        assert r.engine.sent[-2:] == [Pause(1), Resume(1)]


@virtually
async def test_events_and_segments_keep_their_order() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        r.engine._emit(Item(1, b'{"event":"speech_started","at":0.0}', 0))
        r.engine.segment(1, 0, 1, "half")
        r.engine._emit(Item(1, b'{"event":"speech_stopped","at":1.0}', 0))
        await settle()
        data = [m["data"] for m in peer.of(1) if m["type"] == "item"]
        assert [next(iter(d)) for d in data] == ["event", "segment", "event"]


# --- what it costs -------------------------------------------------------------------------------


@virtually
async def test_a_cancel_tells_the_engines_account_and_what_was_wasted() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        r.engine.release_after = None
        peer.say({"type": "cancel", "id": 1})
        await settle()
        r.engine.release(1, wasted=40)
        await settle()
        ended = peer.last(1)
        assert (ended["released"], ended["wasted"]) == (True, {"audio_ms": 40})
        assert ended["usage"] == LISTENING_USAGE


@virtually
async def test_before_the_engine_settles_it_the_audio_it_took_is_the_cost() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, params={"sample_rate": 48_000, "channels": 2})
        r.engine.release_after = None
        peer.hear(1, bytes(192_000))
        await settle()
        r.engine.consume(1, 96_000)
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(0.2)
        ended = peer.last(1)
        assert (ended["released"], ended["usage"]) == (False, {"audio_ms": 500})
        r.engine.release(1)


@virtually
async def test_a_worker_that_dies_is_a_typed_error_with_the_audio_it_took() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        peer.hear(1, bytes(SECOND))
        await settle()
        r.engine.consume(1, SECOND)
        r.engine.crash()
        await settle()
        failed = peer.last(1)
        assert failed["error"]["code"] == "engine_crashed"
        assert failed["usage"] == {"audio_ms": 1000}
        r.assert_nothing_held()


@virtually
async def test_silence_to_the_end_is_done_without_an_item() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        r.engine.finished_usage = {"audio_ms": 3000}
        peer.hear(1, bytes(3 * SECOND))
        peer.end(1)
        await settle()
        r.engine.finish(1)
        await settle()
        done = peer.last(1)
        assert (done["seq"], done["usage"]) == (0, {"audio_ms": 3000})
        assert done["timing"]["first_item_ms"] is None


# --- silence, and how it ends --------------------------------------------------------------------


@virtually
async def test_a_minute_without_frames_keeps_the_stream_and_leaves_its_slot_to_others() -> None:
    async with rig(method="transcribe", slots=1) as r:
        peer = await listening(r)
        peer.hear(1, bytes(SECOND))
        await settle()
        r.engine.starve(1)
        peer.transcribe(2)
        await asyncio.sleep(60)
        assert peer.types(2)[-1] == "started"
        r.engine.finish(2)
        peer.hear(1, b"\1" * SECOND)
        await settle()
        assert r.engine.sent[-2:] == [Feed(1, b"\1" * SECOND), Resume(1)]
        assert peer.types(1) == ["accepted", "started"]


@virtually
async def test_a_microphone_in_a_silent_room_keeps_its_slot() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        for _ in range(600):
            peer.hear(1, bytes(3200))
            await asyncio.sleep(0.1)
            r.engine.consume(1, 3200)
            r.engine.starve(1)
        assert Pause(1) not in r.engine.sent
        assert peer.types(1)[-1] == "input_ack"


@virtually
async def test_an_end_while_it_yields_its_slot_gets_it_back_to_flush() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        r.engine.starve(1)
        await asyncio.sleep(5)
        peer.end(1)
        await settle()
        assert r.engine.sent[-2:] == [FinishInput(1), Resume(1)]
        r.engine.segment(1, 0, 1, "last", final=True)
        r.engine.finish(1)
        await settle()
        assert [m["type"] for m in peer.of(1)[-2:]] == ["item", "done"]


@virtually
async def test_a_deadline_ends_it_while_it_waits_for_audio() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r, deadline_ms=30_000)
        r.engine.starve(1)
        await asyncio.sleep(31)
        assert (peer.last(1)["by"], peer.last(1)["released"]) == ("deadline", True)
        r.assert_nothing_held()


@virtually
async def test_shutting_down_lets_it_run_on_and_ends_what_waits() -> None:
    async with rig(method="transcribe", slots=1) as r:
        peer = await listening(r)
        peer.transcribe(2)
        await settle()
        r.sessions[0].drain(5)
        peer.hear(1, bytes(SECOND))
        peer.end(1)
        await settle()
        assert (peer.last(2)["by"], r.engine.sent[-1]) == ("shutdown", FinishInput(1))
        r.engine.segment(1, 0, 1, "all", final=True)
        r.engine.finish(1)
        await settle()
        assert peer.last(1)["type"] == "done"
        assert peer.closed == (1001, "server is shutting down")


@virtually
async def test_the_end_of_the_grace_cancels_a_microphone_that_never_ends() -> None:
    async with rig(method="transcribe") as r:
        peer = await listening(r)
        r.sessions[0].drain(5)
        peer.hear(1, bytes(SECOND))
        await settle()
        r.sessions[0].stop()
        await settle()
        assert (peer.last(1)["by"], peer.last(1)["released"]) == ("shutdown", True)
        r.assert_nothing_held()


@virtually
async def test_a_reader_who_stops_taking_segments_is_told_so_in_the_end() -> None:
    async with rig(method="transcribe", streams=StreamPolicy(slow_seconds=5)) as r:
        peer = await listening(r, window=2)
        for index in range(3):
            r.engine.segment(1, index, 1, "whole", final=True)
        await asyncio.sleep(6)
        assert (peer.last(1)["by"], peer.last(1)["seq"]) == ("slow", 2)
        r.assert_nothing_held()
