"""The checker on lists of frames: what plait.v1 rules out is a fault, and nothing else is."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from plait.conformance.checker import Checker

Message = dict[str, Any]

LIMITS = {
    "max_streams": 4,
    "max_queued": 4,
    "max_text_bytes": 4096,
    "max_binary_bytes": 4096,
    "window": 64,
    "opens_per_second": 10.5,
    "ping_seconds": 10,
}
WELCOME: Message = {
    "type": "welcome",
    "protocol": "plait.v1",
    "session": "s-1",
    "server": "small/1",
    "limits": LIMITS,
    "methods": {"chat": {"models": ["m"]}},
    "capabilities": [],
}
ACCEPTED = {"type": "accepted", "id": 1, "phase": "preparing", "position": 0}
STARTED = {"type": "started", "id": 1, "model": "m", "max_tokens": 5}
TIMING = {"queued_ms": 1, "first_item_ms": 2, "total_ms": 3, "paused_ms": 0}
UNSENT = TIMING | {"first_item_ms": None}
ERROR = {"code": "id_reused", "class": "client", "message": "No.", "retryable": False}
ERROR |= {"data": {"highest_id": 1}}
REJECTED = {"type": "rejected", "id": 1, "error": ERROR}


def item(seq: int) -> Message:
    return {"type": "item", "id": 1, "seq": seq, "data": {"content": "a"}}


def done(seq: int) -> Message:
    end = {"type": "done", "id": 1, "seq": seq, "finish_reason": "stop", "usage": {}}
    return end | {"timing": TIMING if seq else UNSENT}


def cancelled(seq: int = 0, **fields: Any) -> Message:
    end = {"type": "cancelled", "id": 1, "seq": seq, "by": "client", "released": True}
    end |= {"stop_ms": 1.5, "wasted": {"tokens": 0}, "usage": {}}
    return end | {"timing": TIMING if seq else UNSENT} | fields


def opened(window: int = 64, method: str = "chat", **params: Any) -> Checker:
    checker = Checker()
    checker.received(json.dumps(WELCOME))
    opening = {"type": "open", "id": 1, "method": method, "params": params, "window": window}
    checker.sent(opening)
    return checker


def faults_of(*frames: Message, window: int = 64) -> list[str]:
    checker = opened(window)
    for frame in frames:
        checker.received(json.dumps(frame))
    return [expected for _, expected, _ in checker.faults]


GOOD: dict[str, list[Message]] = {
    "a chat": [ACCEPTED, ACCEPTED, STARTED, item(1), item(2), done(2)],
    "a chat without items": [ACCEPTED, STARTED, done(0)],
    "a cancel while pending": [ACCEPTED, cancelled()],
    "a cancel late released": [
        ACCEPTED,
        STARTED,
        cancelled(released=False, stop_ms=None, wasted=None),
    ],
    "wasted untold by a process that died": [ACCEPTED, STARTED, cancelled(wasted=None)],
    "a refusal": [REJECTED],
    "unknown types and fields": [ACCEPTED | {"x": 1}, {"type": "news"}, cancelled(x=[])],
}
BAD: dict[str, list[Message]] = {
    "two terminals": [ACCEPTED, STARTED, done(0), done(0)],
    "an item after the terminal": [ACCEPTED, STARTED, done(0), item(1)],
    "both accepted and rejected": [ACCEPTED, REJECTED],
    "rejected, then accepted": [REJECTED, ACCEPTED],
    "rejected twice": [REJECTED, REJECTED],
    "a terminal alone": [cancelled()],
    "started twice": [ACCEPTED, STARTED, STARTED],
    "an item before started": [ACCEPTED, item(1)],
    "accepted after started": [ACCEPTED, STARTED, ACCEPTED],
    "seq from 0": [ACCEPTED, STARTED, item(0)],
    "seq from 2": [ACCEPTED, STARTED, item(2)],
    "seq repeated": [ACCEPTED, STARTED, item(1), item(1)],
    "a terminal of another seq": [ACCEPTED, STARTED, item(1), done(2)],
    "first_item_ms without an item": [ACCEPTED, STARTED, done(0) | {"timing": TIMING}],
    "timing without total_ms": [ACCEPTED, STARTED, done(0) | {"timing": {"queued_ms": 1}}],
    "another finish_reason": [ACCEPTED, STARTED, done(0) | {"finish_reason": "eos"}],
    "another by": [ACCEPTED, cancelled(by="me")],
    "stop_ms of what was not released": [ACCEPTED, STARTED, cancelled(released=False)],
    "released without stop_ms": [ACCEPTED, STARTED, cancelled(stop_ms=None)],
    "pending and not released": [
        ACCEPTED,
        cancelled(released=False, stop_ms=None, wasted=None),
    ],
    "wasted of another unit": [ACCEPTED, STARTED, cancelled(wasted={"texts": 0})],
    "an unknown code": [REJECTED | {"error": ERROR | {"code": "nope"}}],
    "another class": [REJECTED | {"error": ERROR | {"class": "internal"}}],
    "retryable the wrong way": [REJECTED | {"error": ERROR | {"retryable": True}}],
    "no data where it is due": [REJECTED | {"error": ERROR | {"data": {}}}],
    "another stream's id": [ACCEPTED | {"id": 9}],
    "welcome twice": [WELCOME],
    "a pong for no ping": [{"type": "pong", "n": 1}],
    "a phase of its own": [ACCEPTED | {"phase": "thinking"}],
}


@pytest.mark.parametrize("what", GOOD)
def test_what_the_protocol_allows_is_no_fault(what: str) -> None:
    assert faults_of(*GOOD[what]) == []


@pytest.mark.parametrize("what", BAD)
def test_what_the_protocol_rules_out_is_a_fault(what: str) -> None:
    assert faults_of(*BAD[what]) != []


def test_items_beyond_the_window_are_a_fault() -> None:
    items = [ACCEPTED, STARTED, item(1), item(2)]

    assert faults_of(*items, window=2) == []
    assert faults_of(*items, window=1) != []
    assert faults_of(*items, window=0) == []


def test_credit_is_extended_by_acks_and_never_taken_back() -> None:
    checker = opened(window=2)
    checker.sent({"type": "ack", "id": 1, "seq": 0, "window": 4})
    checker.sent({"type": "ack", "id": 1, "seq": 0, "window": 1})

    for message in (ACCEPTED, STARTED, *map(item, range(1, 5))):
        checker.received(json.dumps(message))
    assert checker.faults == []
    checker.received(json.dumps(item(5)))
    assert len(checker.faults) == 1


def test_an_item_after_the_pong_that_follows_a_cancel_is_a_fault() -> None:
    checker = opened()
    for message in (ACCEPTED, STARTED, item(1)):
        checker.received(json.dumps(message))
    checker.sent({"type": "cancel", "id": 1})
    checker.sent({"type": "ping", "n": 3})

    checker.received(json.dumps(item(2)))
    checker.received('{"type": "pong", "n": 3}')
    assert checker.faults == []
    checker.received(json.dumps(item(3)))
    assert [section for section, _, _ in checker.faults] == ["§2 G4"]


def audio(seq: int, aux: int, samples: int, *, kind: int = 1, flags: int = 0) -> bytes:
    return struct.pack("<BBHIII", 1, kind, flags, 1, seq, aux) + bytes(2 * samples)


@pytest.mark.parametrize(
    ("frames", "broken"),
    [
        ([audio(1, 0, 100), audio(2, 100, 50)], False),
        ([audio(1, 0, 100), audio(2, 90, 50)], True),
        ([audio(1, 0, 8192)], False),
        ([audio(1, 0, 8193)], True),
        ([audio(1, 0, 10, flags=8)], True),
        ([audio(1, 0, 10, kind=3)], True),
        ([audio(1, 0, 10, kind=77)], False),
        ([b"\x01"], True),
    ],
)
def test_audio_frames_are_dense_small_and_of_the_right_kind(
    frames: list[bytes], broken: bool
) -> None:
    checker = opened(method="synthesize")
    form = {"encoding": "pcm_s16le", "sample_rate": 24000, "channels": 1}
    checker.received(json.dumps(ACCEPTED))
    checker.received(json.dumps({"type": "started", "id": 1, "model": "m", "format": form}))

    for frame in frames:
        checker.received(frame)

    assert bool(checker.faults) == broken, checker.faults


def test_segments_come_in_order_and_their_revisions_rise() -> None:
    def segment(index: int, revision: int, final: bool) -> Message:
        shown = {"index": index, "revision": revision, "text": "a", "is_final": final}
        return {"segment": shown}

    good = [segment(0, 1, False), segment(0, 3, True), segment(1, 1, True)]
    skipped = [segment(0, 1, False), segment(1, 1, True)]
    repeated = [segment(0, 2, False), segment(0, 2, True)]

    assert [bool(_transcribed(items)) for items in (good, skipped, repeated)] == [False, True, True]


def _transcribed(items: list[Message]) -> list[tuple[str, str, str]]:
    checker = opened(method="transcribe")
    for message in (ACCEPTED, {"type": "started", "id": 1, "model": "m"}):
        checker.received(json.dumps(message))
    for seq, data in enumerate(items, 1):
        checker.received(json.dumps({"type": "item", "id": 1, "seq": seq, "data": data}))
    return checker.faults
