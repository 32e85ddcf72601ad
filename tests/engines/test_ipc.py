from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given, strategies as st

from plait.engines import ipc
from plait.engines.base import (
    Cancel,
    Consumed,
    EngineInfo,
    Event,
    Failed,
    Fault,
    Feed,
    Finished,
    FinishInput,
    Gauges,
    Item,
    LoadFailed,
    Loading,
    LoadSpec,
    Pause,
    Ping,
    Pong,
    Prepare,
    Prepared,
    Ready,
    Refused,
    Released,
    Resume,
    Shutdown,
    Start,
    Starved,
    Stats,
)
from plait.errors import BY_CODE, ContextOverflow

FAULT = Fault.of(ContextOverflow("too long", param="messages", data={"limit": 4}))
EVENTS: list[Event] = [
    Loading("weights", 10),
    Ready(EngineInfo("scripted", "m", ["chat"], 4, 4096, 1024, 1 << 40, "freed")),
    LoadFailed(FAULT),
    Prepared(1, 10, 2**40, 100),
    Refused(1, FAULT),
    Item(1, b'{"content":"\xf0\x9f\xa7\xb5"}'),
    Item(1, bytes(range(256)), units=40, kind=1, flags=3, aux=2**32 - 1),
    Item(1, b'{"segment":{"index":6}}', units=800, revises=7),
    Consumed(1, 3_840_000),
    Starved(1, 2**40, 12),
    Finished(1, "stop", {"prompt_tokens": 10}),
    Failed(1, FAULT, {}),
    Released(1, 12.5, 3, {"completion_tokens": 4}),
    Pong(7, Stats(slots_used=1, kv_bytes=2**40, steps=3, busy_seconds=0.5)),
    Gauges(Stats()),
]
COMMANDS = [
    Prepare(1, "chat", {"messages": [{"role": "user", "content": "hi \x00 é"}]}, "c1"),
    Start(1),
    Feed(1, audio=b"\x00\xff"),
    Feed(1, texts=["a", ""]),
    FinishInput(1),
    Pause(1),
    Resume(1),
    Cancel(1, 123.456),
    Ping(9),
    Shutdown(),
]
payloads = st.lists(st.binary(min_size=1, max_size=300), max_size=12)


def only_frame(data: bytes) -> bytes:
    (payload,) = ipc.FrameReader().feed(data)
    return payload


def test_every_event_survives_the_border() -> None:
    assert ipc.decode_events(only_frame(ipc.encode_events(EVENTS))) == EVENTS


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: type(c).__name__)
def test_every_command_survives_the_border(command: Any) -> None:
    assert ipc.decode_command(only_frame(ipc.encode_command(command))) == command


def test_the_load_spec_survives_the_border() -> None:
    spec = LoadSpec("scripted", "m", 4, 4096, 1024, options={"step_seconds": 0.5})

    assert ipc.decode_spec(only_frame(ipc.encode_command(spec))) == spec


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_error_survives_the_border(code: str) -> None:
    error = BY_CODE[code]("no", param="p", data={"n": 1}, retry_after_ms=5)

    back = Fault.of(error).to_error()

    assert type(back) is type(error)
    assert vars(back) == vars(error)


@given(payloads, st.data())
def test_frames_are_the_same_however_the_stream_is_cut(
    sent: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(map(ipc.encode_frame, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30)))
    reader = ipc.FrameReader()

    received = [
        frame
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for frame in reader.feed(stream[start:end])
    ]

    assert received == sent
    assert not reader.unfinished


@given(payloads.filter(bool), st.integers(min_value=1))
def test_a_stream_cut_inside_a_frame_is_unfinished(sent: list[bytes], cut: int) -> None:
    stream = b"".join(map(ipc.encode_frame, sent))
    missing = 1 + cut % (len(sent[-1]) + 3)
    reader = ipc.FrameReader()

    assert reader.feed(stream[:-missing]) == sent[:-1]
    assert reader.unfinished


@pytest.mark.parametrize("length", [0, 1025, 2**32 - 1])
def test_a_length_out_of_bounds_is_an_error_before_anything_is_buffered(length: int) -> None:
    reader = ipc.FrameReader(max_frame_bytes=1024)

    with pytest.raises(ipc.FrameError, match=str(length)):
        reader.feed(struct.pack("<I", length))


def test_a_frame_of_exactly_the_limit_is_fine() -> None:
    reader = ipc.FrameReader(max_frame_bytes=1024)

    assert reader.feed(ipc.encode_frame(b"x" * 1024)) == [b"x" * 1024]


def test_a_big_frame_in_small_pieces_is_not_copied_over_and_over() -> None:
    payload = bytes(32 * 1024 * 1024)  # quadratic copying would move half a terabyte
    stream = ipc.encode_frame(payload)
    reader = ipc.FrameReader()

    frames = [f for i in range(0, len(stream), 1024) for f in reader.feed(stream[i : i + 1024])]

    assert frames == [payload]


@given(st.binary(min_size=1, max_size=64))
def test_garbage_payloads_are_frame_errors_and_nothing_else(payload: bytes) -> None:
    for decode in (ipc.decode_command, ipc.decode_events, ipc.decode_spec):
        with contextlib.suppress(ipc.FrameError):
            decode(payload)
