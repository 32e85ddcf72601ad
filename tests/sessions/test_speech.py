"""A synthesis as its peer sees it: format, audio, marks, what was heard, and every ending."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plait.engines.base import Pause, Resume
from plait.sessions.stream import StreamPolicy
from plait.wire.codec import decode_binary
from tests.fakes import SPEECH_USAGE, MemorySocket
from tests.sessions.rig import Rig, rig
from tests.virtual_time import settle, virtually

WORDS = "One two three four. "  # 100 ms a word below


async def speaking(r: Rig, **params: object) -> MemorySocket:
    peer = await r.connect()
    peer.speak(1, "x", params=params)
    await settle()
    return peer


def speak_words(r: Rig, *, frames: int = 4) -> None:
    """The mark of WORDS and `frames` of its four frames of 100 ms."""
    r.engine.mark(1, WORDS, 0.0, 0.4)
    for i in range(frames):
        r.engine.audio(1, 100, at=100 * i, flags=i == 3)


@virtually
async def test_welcome_lists_the_voices_and_languages() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        assert peer.received[0]["methods"] == {
            "synthesize": {
                "models": ["m"],
                "voices": ["af_heart", "bf_emma"],
                "languages": ["en-us", "en-gb"],
            }
        }


@virtually
async def test_started_names_the_format_and_no_max_tokens() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        assert peer.last(1) == {
            "type": "started",
            "id": 1,
            "model": "m",
            "format": {"encoding": "pcm_s16le", "sample_rate": 24000, "channels": 1},
        }


@virtually
async def test_audio_is_binary_frames_and_marks_stay_here_unless_asked_for() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        speak_words(r)
        r.engine.finish(1)
        await settle()
        frames = [decode_binary(frame) for frame in peer.binary]
        assert [(f.kind, f.id, f.seq, f.aux, f.flags) for f in frames] == [
            (1, 1, i + 1, 2400 * i, int(i == 3)) for i in range(4)
        ]
        assert peer.types(1) == ["accepted", "started", "done"]
        assert peer.last(1)["seq"] == 4


@virtually
async def test_marks_that_were_asked_for_share_the_seqs_of_the_audio() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r, marks=True)
        speak_words(r, frames=2)
        await settle()
        item = peer.last(1)
        assert (item["seq"], item["data"]["mark"]["text"]) == (1, WORDS)
        assert [decode_binary(frame).seq for frame in peer.binary] == [2, 3]


@pytest.mark.parametrize(
    ("heard_ms", "heard"),
    [
        (0, ""),
        (99, ""),
        (100, "One"),
        (299.9, "One two"),
        (300, "One two three"),
        (100_000, "One two three"),  # beyond what was sent
    ],
)
@virtually
async def test_heard_is_the_text_up_to_that_moment_to_the_word(heard_ms: float, heard: str) -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        speak_words(r, frames=3)
        await settle()
        peer.say({"type": "cancel", "id": 1, "heard_ms": heard_ms})
        await settle()
        assert (peer.last(1)["type"], peer.last(1)["heard"]) == ("cancelled", heard)


@virtually
async def test_before_the_first_audio_nothing_was_heard_whatever_the_client_says() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        for id in (1, 2):
            peer.speak(id)
            peer.feed(id, "One two three")
        await settle()
        r.engine.mark(2, WORDS, 0.0, 0.4)
        await settle()
        for id in (1, 2):
            peer.say({"type": "cancel", "id": id, "heard_ms": 5000})
        await settle()
        assert [peer.last(id)["heard"] for id in (1, 2)] == ["", ""]


@virtually
async def test_heard_while_text_still_comes_is_of_what_was_spoken() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1)
        peer.feed(1, f"{WORDS}And so")
        await settle()
        speak_words(r)
        peer.feed(1, " on and on")
        peer.say({"type": "cancel", "id": 1, "heard_ms": 1e12})
        peer.feed(1, " without end.")
        peer.end(1)
        await settle()
        assert (peer.last(1)["type"], peer.last(1)["heard"]) == ("cancelled", WORDS)
        r.assert_nothing_held()


@virtually
async def test_a_cancel_after_done_is_ignored_also_by_who_has_not_heard_all() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        speak_words(r)
        r.engine.finish(1)
        await settle()
        peer.say({"type": "cancel", "id": 1, "heard_ms": 100})
        peer.speak(2, "y")
        await settle()
        assert (peer.types(1)[-1], peer.types(2)[-1]) == ("done", "started")
        r.engine.finish(2)


@virtually
async def test_of_two_cancels_the_first_says_what_was_heard() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        speak_words(r)
        await settle()
        peer.say({"type": "cancel", "id": 1, "heard_ms": 100})
        peer.say({"type": "cancel", "id": 1, "heard_ms": 400})
        await settle()
        assert peer.last(1)["heard"] == "One"


@virtually
async def test_heard_counts_what_left_also_when_the_engine_has_finished() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1, "x", window=2)
        await settle()
        speak_words(r)
        r.engine.finish(1)
        await settle()
        peer.say({"type": "cancel", "id": 1, "heard_ms": 400})
        await settle()
        ended = peer.last(1)
        assert (ended["heard"], ended["stop_ms"], ended["seq"]) == ("One two", 0.0, 2)
        assert ended["usage"] == SPEECH_USAGE


@virtually
async def test_heard_is_there_when_the_release_is_not_confirmed_and_absent_when_not_asked() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        peer.speak(2, "y")
        r.engine.release_after = None
        speak_words(r)
        await settle()
        peer.say({"type": "cancel", "id": 1, "heard_ms": 250})
        peer.say({"type": "cancel", "id": 2})
        await asyncio.sleep(0.2)
        assert (peer.last(1)["released"], peer.last(1)["heard"]) == (False, "One two")
        assert "heard" not in peer.last(2)
        r.engine.crash()


@virtually
async def test_a_cancel_while_pending_has_heard_nothing() -> None:
    async with rig(method="synthesize", ready=False) as r:
        peer = await speaking(r)
        peer.say({"type": "cancel", "id": 1, "heard_ms": 5000})
        await settle()
        assert peer.last(1)["heard"] == ""


@virtually
async def test_a_running_account_is_kept_and_wasted_is_audio() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        speak_words(r, frames=3)
        r.engine.release_after = None
        await settle()
        peer.say({"type": "cancel", "id": 1})
        await asyncio.sleep(0.01)
        r.engine.release(1, wasted=120)
        await settle()
        assert peer.last(1)["wasted"] == {"audio_ms": 120}
        assert peer.last(1)["usage"] == SPEECH_USAGE
        assert r.gauge("plait_audio_seconds_total", model="m") == pytest.approx(0.3)
        assert r.gauge("plait_wasted_audio_seconds_total", model="m") == pytest.approx(0.12)
        assert r.metrics.registry.get_sample_value("plait_tokens_total", {"model": "m"}) is None


@virtually
async def test_the_first_item_is_timed_by_method() -> None:
    async with rig(method="synthesize") as r:
        await speaking(r)
        await asyncio.sleep(0.25)
        speak_words(r)
        name, method = "plait_first_item_seconds", "synthesize"
        assert r.gauge(f"{name}_count", method=method) == 1
        assert r.gauge(f"{name}_sum", method=method) == pytest.approx(0.25)


@virtually
async def test_a_peers_mistake_ends_with_what_was_counted_so_far() -> None:
    async with rig(method="synthesize") as r:
        peer = await speaking(r)
        speak_words(r, frames=3)
        peer.say({"type": "ack", "id": 1, "seq": 99})
        await settle()
        assert peer.last(1)["type"] == "error"
        assert peer.last(1)["usage"] == {"characters": len(WORDS), "audio_ms": 300}


@virtually
async def test_a_slow_listener_pauses_the_voice_at_the_window_and_frees_its_slot() -> None:
    async with rig(method="synthesize", slots=1) as r:
        peer = await r.connect()
        peer.speak(1, "x", window=2)
        peer.speak(2, "y")
        await settle()
        speak_words(r, frames=2)
        assert Pause(1) in r.engine.sent
        await asyncio.sleep(1.1)
        assert peer.last(2)["type"] == "started"
        peer.say({"type": "ack", "id": 1, "seq": 2})
        await settle()
        r.engine.finish(2)
        await settle()
        assert r.engine.sent[-1] == Resume(1)


@virtually
async def test_a_mark_that_stays_here_takes_no_credit() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        peer.speak(1, "x", window=1)
        await settle()
        r.engine.mark(1, WORDS, 0.0, 0.4)
        assert not any(isinstance(command, Pause) for command in r.engine.sent)
        r.engine.audio(1, 100)
        assert isinstance(r.engine.sent[-1], Pause)


@pytest.mark.parametrize("by", ["deadline", "slow", "shutdown", "disconnect"])
@virtually
async def test_whatever_stops_a_synthesis_gives_everything_back(by: str) -> None:
    async with rig(method="synthesize", streams=StreamPolicy(slow_seconds=5)) as r:
        peer = await r.connect()
        fields: dict[str, Any] = {"deadline_ms": 4000} if by == "deadline" else {}
        peer.speak(1, window=1, **fields)
        await settle()
        peer.feed(1, "One")
        r.engine.audio(1, 100)
        r.engine.audio(1, 100, at=100)
        await settle()
        if by == "shutdown":
            r.sessions[0].drain(1)
            r.sessions[0].stop()
        if by == "disconnect":
            peer.hang_up()
        await asyncio.sleep(6)
        assert r.gauge("plait_cancelled_total", by=by) == 1
        r.assert_nothing_held()


@virtually
async def test_a_dead_worker_fails_a_synthesis_unless_its_cancel_was_read() -> None:
    async with rig(method="synthesize") as r:
        peer = await r.connect()
        for id in (1, 2):
            peer.speak(id)
        await settle()
        r.engine.release_after = None
        peer.say({"type": "cancel", "id": 1, "heard_ms": 0})
        await settle()
        r.engine.crash()
        await settle()
        assert (peer.last(1)["type"], peer.last(1)["released"]) == ("cancelled", True)
        assert peer.last(2)["error"]["code"] == "engine_crashed"
