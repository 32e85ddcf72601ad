"""What a frame means for the ids of one connection."""

from __future__ import annotations

import pytest

from plait.errors import PlaitError
from plait.wire.codec import BinaryKind, encode_binary
from plait.wire.connection import Connection
from plait.wire.events import (
    AckReceived,
    AudioReceived,
    CancelReceived,
    CloseRequired,
    EndReceived,
    InputReceived,
    OpenReceived,
    OpenRejected,
    PingReceived,
    StreamFaulted,
)
from plait.wire.messages import ChatParams
from tests.wire.support import NOW, audio, connection_with, limits, open_chat, open_method, text


def rejection(connection: Connection, frame: str, now: float = NOW) -> PlaitError:
    [event] = connection.receive_text(frame, now)
    assert isinstance(event, OpenRejected)
    return event.error


def fault(connection: Connection, frame: str | bytes) -> PlaitError:
    [event] = (
        connection.receive_text(frame, NOW)
        if isinstance(frame, str)
        else connection.receive_binary(frame, NOW)
    )
    assert isinstance(event, StreamFaulted)
    return event.error


def test_an_open_comes_out_complete() -> None:
    connection = connection_with()
    frame = open_chat(7, window=3, priority="batch", deadline_ms=50)
    [event] = connection.receive_text(frame, NOW)
    assert isinstance(event, OpenReceived)
    assert isinstance(event.params, ChatParams)
    assert (event.id, event.method, event.window) == (7, "chat", 3)
    assert (event.priority, event.deadline_ms) == ("batch", 50)
    assert connection.live_ids == {7}


def test_messages_for_a_live_stream_come_out_as_events() -> None:
    connection = connection_with(open_chat(1))
    received = [
        *connection.receive_text(text("ack", id=1, seq=0, window=9), NOW),
        *connection.receive_text(text("cancel", id=1, heard_ms=2.5), NOW),
        *connection.receive_text(text("ping", n=4), NOW),
    ]
    assert received == [AckReceived(1, 0, 9), CancelReceived(1, 2.5), PingReceived(4)]


@pytest.mark.parametrize("old", [1, 2, 3])
def test_an_old_id_is_rejected_and_live_streams_stay(old: int) -> None:
    connection = connection_with(open_chat(1), open_chat(3))
    error = rejection(connection, open_chat(old))
    assert (error.code, error.data) == ("id_reused", {"highest_id": 3})
    assert connection.live_ids == {1, 3}


def test_an_id_is_never_free_again() -> None:
    connection = connection_with(open_chat(1))
    connection.forget(1)
    assert rejection(connection, open_chat(1)).code == "id_reused"


def test_a_bad_open_uses_its_id_up() -> None:
    connection = connection_with()
    assert rejection(connection, text("open", id=5)).param == "method"
    assert rejection(connection, open_chat(5)).code == "id_reused"
    assert connection.live_ids == set()


def test_a_bad_open_with_a_live_id_is_a_reused_id_and_touches_nothing() -> None:
    connection = connection_with(open_chat(1))
    assert rejection(connection, text("open", id=1, window=-1)).code == "id_reused"
    assert connection.live_ids == {1}


def test_an_unknown_method_is_rejected_with_the_known_ones() -> None:
    error = rejection(connection_with(), open_method(1, "paint"))
    assert (error.code, error.param) == ("unsupported_method", "method")
    assert "transcribe" in error.message


def test_resuming_is_refused_by_name() -> None:
    error = rejection(connection_with(), open_chat(1, resume_seconds=0.5))
    assert (error.code, error.param) == ("invalid_request", "resume_seconds")


def test_streams_beyond_the_limit_are_rejected_until_one_is_forgotten() -> None:
    connection = connection_with(open_chat(1), open_chat(2), max_streams=2)
    assert rejection(connection, open_chat(3)).code == "too_many_streams"
    connection.forget(1)
    connection.receive_text(open_chat(4), NOW)
    assert connection.live_ids == {2, 4}


def test_opens_beyond_the_rate_are_told_how_long_to_wait() -> None:
    connection = connection_with(open_chat(1), open_chat(2), opens_per_second=1.0)
    error = rejection(connection, open_chat(3))
    assert (error.code, error.retry_after_ms) == ("rate_limited", 1000)
    [event] = connection.receive_text(open_chat(4), NOW + 1)
    assert isinstance(event, OpenReceived)


def test_a_flood_of_opens_and_cancels_closes_4429() -> None:
    connection = connection_with(opens_per_second=1.0)
    events = [
        event
        for id in range(1, 50)
        for frame in (open_chat(id), text("cancel", id=id))
        for event in connection.receive_text(frame, NOW)
    ]
    assert isinstance(events[-1], CloseRequired)
    assert events[-1].code == 4429
    assert len(events) - 1 <= 40


def test_a_flood_of_malformed_cancels_is_a_flood_too() -> None:
    connection = connection_with(opens_per_second=1.0)
    bad = text("cancel", id=1, heard_ms=-1)
    events = [event for _ in range(50) for event in connection.receive_text(bad, NOW)]
    assert [type(event) for event in events] == [CloseRequired]


def test_bad_messages_for_nobody_are_ignored_until_they_are_a_flood() -> None:
    connection = connection_with(opens_per_second=1.0)
    bad = text("ack", id=1, seq=-1, more="x" * 40_000)
    assert [connection.receive_text(bad, NOW) for _ in range(4)] == [[]] * 4
    [event] = connection.receive_text(bad, NOW)
    assert isinstance(event, CloseRequired)
    assert event.code == 4429


def test_a_thousand_pairs_paced_by_their_answers_are_no_flood() -> None:
    connection = connection_with()
    for id in range(1, 1001):
        now = NOW + id / 1000  # a millisecond each: far faster than any engine answers
        events = connection.receive_text(open_chat(id), now)
        events += connection.receive_text(text("cancel", id=id), now)
        connection.forget(id)
        assert not any(isinstance(event, CloseRequired) for event in events)


@pytest.mark.parametrize("id", [1, 9])
@pytest.mark.parametrize("type", ["ack", "input", "end", "cancel"])
def test_messages_for_ids_that_are_not_live_are_ignored(type: str, id: int) -> None:
    connection = connection_with(open_chat(1), open_chat(2))
    connection.forget(1)
    assert connection.receive_text(text(type, id=id, seq=1, text="a"), NOW) == []
    assert connection.receive_text(text(type, id=id, seq=-1, text=4, heard_ms=[]), NOW) == []
    assert connection.receive_binary(audio(id), NOW) == []
    assert connection.live_ids == {2}


def test_a_bad_message_faults_its_stream_once_and_no_other() -> None:
    connection = connection_with(open_chat(1), open_chat(2))
    error = fault(connection, text("ack", id=1, seq="x"))
    assert (error.code, error.param) == ("invalid_request", "seq")
    assert connection.receive_text(text("ack", id=1, seq="x"), NOW) == []
    assert connection.receive_text(text("ack", id=1, seq=0), NOW) == []
    assert connection.receive_text(text("ack", id=2, seq=0), NOW) == [AckReceived(2, 0, None)]


def test_a_faulted_stream_can_still_be_cancelled() -> None:
    connection = connection_with(open_chat(1))
    fault(connection, text("ack", id=1))
    assert connection.receive_text(text("cancel", id=1), NOW) == [CancelReceived(1, None)]


def test_audio_flows_to_a_transcription_without_a_copy() -> None:
    connection = connection_with(open_method(1, "transcribe", sample_rate=16000))
    frame = audio(1, b"\1\2\3\4")
    [event] = connection.receive_binary(frame, NOW)
    assert isinstance(event, AudioReceived)
    assert event.payload.obj is frame
    assert bytes(event.payload) == b"\1\2\3\4"


@pytest.mark.parametrize("size", [0, 1, 3, 1601, (1 << 18) - 16])
def test_an_audio_frame_may_have_any_length_and_what_its_header_says_is_ignored(size: int) -> None:
    connection = connection_with(open_method(1, "transcribe", sample_rate=16000))
    frame = encode_binary(BinaryKind.AUDIO_IN, 0xFFFF, 1, 7, 9, bytes(size))
    [event] = connection.receive_binary(frame, NOW)
    assert isinstance(event, AudioReceived)
    assert len(event.payload) == size


@pytest.mark.parametrize(
    ("method", "frame", "expected"),
    [
        ("synthesize", text("input", id=1, text="a"), InputReceived(1, "a", None)),
        ("embed", text("input", id=1, texts=["a"]), InputReceived(1, None, ["a"])),
    ],
)
def test_text_input_flows_until_end(method: str, frame: str, expected: InputReceived) -> None:
    connection = connection_with(open_method(1, method))
    assert connection.receive_text(frame, NOW) == [expected]
    assert connection.receive_text(text("end", id=1), NOW) == [EndReceived(1)]
    assert connection.receive_text(text("end", id=1), NOW) == []
    assert fault(connection, frame).code == "invalid_request"


@pytest.mark.parametrize(
    ("opened", "frame", "param"),
    [
        (open_chat(1), text("input", id=1, text="a"), "type"),
        (open_chat(1), audio(1), "type"),
        (open_method(1, "synthesize", text="a"), text("input", id=1, text="a"), "type"),
        (open_method(1, "synthesize"), text("input", id=1, texts=["a"]), "texts"),
        (open_method(1, "synthesize"), audio(1), "type"),
        (open_method(1, "embed"), text("input", id=1, text="a"), "text"),
        (open_method(1, "embed"), text("input", id=1), "texts"),
        (open_method(1, "synthesize"), text("input", id=1), "text"),
        (open_method(1, "synthesize"), text("input", id=1, text="a", texts=["a"]), "texts"),
        (open_method(1, "embed"), text("input", id=1, text="a", texts=["a"]), "text"),
        (open_method(1, "transcribe", sample_rate=8000), text("input", id=1, text="a"), "text"),
    ],
)
def test_input_a_stream_does_not_take_is_its_error(
    opened: str, frame: str | bytes, param: str
) -> None:
    error = fault(connection_with(opened), frame)
    assert error.code in ("invalid_request", "invalid_message")
    assert error.param == param


def test_end_for_a_stream_without_input_is_ignored() -> None:
    connection = connection_with(open_chat(1))
    assert connection.receive_text(text("end", id=1), NOW) == []


@pytest.mark.parametrize(
    ("kind", "version", "param"), [(BinaryKind.AUDIO_OUT, 1, "kind"), (2, 9, "version")]
)
def test_a_binary_header_no_client_sends_is_the_streams_error(
    kind: int, version: int, param: str
) -> None:
    frame = bytes([version]) + encode_binary(kind, 0, 1, 0, 0, b"")[1:]
    connection = connection_with(open_method(1, "transcribe", sample_rate=8000))
    error = fault(connection, frame)
    assert (error.code, error.param) == ("invalid_message", param)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("nonsense", 4400),
        ('{"type":"hello","id":1}', 4400),
        (b"\xff{}", 1007),
        ("[" * 100_000, 4400),
        ('{"a":' * 100_000, 4400),
        ('{"type":"end","id":1,"x":[' + "1," * 60_000 + "NaN]}", 4400),
        ('{"type":"end","id":1,"x":' + "[" * 2000 + "]" * 1999 + "}}", 4400),
        ('{"type":"end","id":1,"x":' + "[" * 2000, 4400),
        ("[" * 2000 + "]" * 2000, 4400),
        ('{"type":"end","id":1,"x":' + "[" * 2000 + '"', 4400),
        (" " * 5000, 1009),
        ("é" * 2100, 1009),
    ],
)
def test_frames_that_concern_no_stream_close_the_socket_for_good(
    frame: str | bytes, code: int
) -> None:
    limit = 4096 if code == 1009 else 1 << 20
    connection = connection_with(open_chat(1), max_text_bytes=limit)
    [event] = connection.receive_text(frame, NOW)
    assert isinstance(event, CloseRequired)
    assert event.code == code
    assert 0 < len(event.reason.encode()) <= 123
    assert connection.receive_text(open_chat(2), NOW) == []
    assert connection.receive_binary(audio(1), NOW) == []


def test_binary_frames_are_bounded_below_and_above() -> None:
    for frame, code in ((b"\1" * 15, 4400), (audio(1, bytes(100)), 1009)):
        [event] = Connection(limits(max_binary_bytes=64)).receive_binary(frame, NOW)
        assert isinstance(event, CloseRequired)
        assert event.code == code


def test_a_frame_of_exactly_the_limit_passes() -> None:
    frame = open_chat(1)
    connection = connection_with(max_text_bytes=len(frame))
    [event] = connection.receive_text(frame, NOW)
    assert isinstance(event, OpenReceived)
