"""Every field of every client message with every bad value; then frames nobody planned.

A bad value gives an error that names its field, on its own stream alone, or it is allowed.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from plait.errors import PlaitError
from plait.wire.close import CloseCode
from plait.wire.codec import encode_server
from plait.wire.connection import Connection
from plait.wire.events import (
    CloseRequired,
    ConnectionEvent,
    OpenReceived,
    OpenRejected,
    StreamFaulted,
)
from plait.wire.messages import PARAMS, ErrorBody, Rejected
from tests.wire.support import NOW, audio, connection_with, limits, open_chat, open_method, text

DEPTH = 1000
BAD = {
    "null": "null",
    "true": "true",
    "one": "1",
    "fraction": "1.5",
    "negative": "-1",
    "negative zero": "-0.0",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "1e999": "1e999",
    "1e308": "1e308",
    "2^63": str(2**63),
    "2^64": str(2**64),
    "five thousand digits": "9" * 5000,
    "empty string": '""',
    "word": '"word"',
    "path": '"../../etc/passwd"',
    "long string": '"' + "a" * 100_000 + '"',
    "lone surrogate": '"\\ud800"',
    "lone surrogate as a key": '{"\\udfff":1}',
    "NUL": '"\\u0000"',
    "empty array": "[]",
    "empty object": "{}",
    "array of arrays": "[[]]",
    "arrays nested deep": "[" * DEPTH + "]" * DEPTH,
    "objects nested deep": '{"a":' * DEPTH + "1" + "}" * DEPTH,
    "both nested deep": '[{"a":' * DEPTH + "1" + "}]" * DEPTH,
}
CODES = ("invalid_request", "unsupported_method", "invalid_message", "id_reused")
MESSAGES = {
    "open": ["id", "method", "params", "window", "priority", "deadline_ms", "resume_seconds"],
    "ack": ["id", "seq", "window"],
    "input": ["id", "text", "texts"],
    "end": ["id"],
    "cancel": ["id", "heard_ms"],
    "ping": ["n"],
}
VALID: dict[str, dict[str, Any]] = {
    "open": {"id": 9, "method": "chat", "params": {"messages": [{"role": "u", "content": "a"}]}},
    "ack": {"id": 1, "seq": 0},
    "input": {"id": 1, "text": "a"},
    "end": {"id": 1},
    "cancel": {"id": 1},
    "ping": {"n": 1},
}
PARAMS_VALID: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "a"}]},
    "transcribe": {"sample_rate": 16000},
    "synthesize": {},
    "embed": {},
}


def with_raw(valid: dict[str, Any], field: str, raw: str) -> str:
    """JSON of `valid` with `field` set to the text `raw`, valid JSON or not; the rest after it."""
    rest = {key: value for key, value in valid.items() if key != field}
    return (
        "{"
        + f'"{field}":{raw}'
        + "".join(f",{json.dumps(k)}:{json.dumps(v)}" for k, v in rest.items())
        + "}"
    )


def fresh() -> Connection:
    return connection_with(open_method(1, "synthesize"), open_chat(2))


def assert_contained(connection: Connection, event: ConnectionEvent, field: str) -> None:
    """The event is no harm, or an error that names `field` and can be sent."""
    if isinstance(event, (OpenRejected, StreamFaulted)):
        error: PlaitError = event.error
        assert error.code in CODES
        assert (error.param or "").startswith(field)
        assert len(encode_server(Rejected(event.id, ErrorBody.of(error)))) < 1000
        assert event.id in (1, 9)
    assert 2 in connection.live_ids


@pytest.mark.parametrize(
    ("type", "field"), [(type, field) for type, fields in MESSAGES.items() for field in fields]
)
def test_a_bad_field_is_named_on_its_own_stream(
    type: str, field: str, subtests: pytest.Subtests
) -> None:
    for name, bad in BAD.items():
        with subtests.test(bad=name):
            connection = fresh()
            frame = with_raw({"type": type, **VALID[type]}, field, bad)
            for event in connection.receive_text(frame, NOW):
                if isinstance(event, CloseRequired):
                    assert field in ("id", "n"), "only what names no stream may close the socket"
                    assert event.code == CloseCode.UNREADABLE
                    assert field in event.reason
                else:
                    # the params of an open are named by their own fields
                    assert_contained(connection, event, "" if field == "params" else field)


@pytest.mark.parametrize("type", MESSAGES)
def test_a_bad_type_closes_4400(type: str, subtests: pytest.Subtests) -> None:
    for name, bad in BAD.items():
        with subtests.test(bad=name):
            [event] = fresh().receive_text(with_raw(VALID[type], "type", bad), NOW)
            assert isinstance(event, CloseRequired)
            assert event.code == CloseCode.UNREADABLE


@pytest.mark.parametrize(
    ("method", "field"),
    [
        (method, field.encode_name)
        for method, params in PARAMS.items()
        for field in msgspec.structs.fields(params)
    ],
)
def test_a_bad_param_is_named_and_its_open_rejected(
    method: str, field: str, subtests: pytest.Subtests
) -> None:
    for name, bad in BAD.items():
        with subtests.test(bad=name):
            connection = fresh()
            params = with_raw(PARAMS_VALID[method], field, bad)
            frame = with_raw({"type": "open", "id": 9, "method": method}, "params", params)
            [event] = connection.receive_text(frame, NOW)
            assert isinstance(event, (OpenReceived, OpenRejected))
            assert_contained(connection, event, field)


@pytest.mark.parametrize("field", ["role", "content", "name", "tool_calls", "tool_call_id"])
def test_a_bad_field_of_a_chat_message_is_named_with_its_index(
    field: str, subtests: pytest.Subtests
) -> None:
    for name, bad in BAD.items():
        with subtests.test(bad=name):
            connection = fresh()
            message = with_raw({"role": "user", "content": "a"}, field, bad)
            params = '{"messages":[{"role":"user"},' + message + "]}"
            frame = with_raw({"type": "open", "id": 9, "method": "chat"}, "params", params)
            [event] = connection.receive_text(frame, NOW)
            if isinstance(event, OpenRejected) and "nested" not in event.error.message:
                assert (event.error.param or "").startswith(f"messages[1].{field}")
            assert_contained(connection, event, "messages")


def test_a_bad_unknown_field_is_ignored_or_named(subtests: pytest.Subtests) -> None:
    for name, bad in BAD.items():
        with subtests.test(bad=name):
            connection = fresh()
            frame = with_raw({"type": "ack", **VALID["ack"]}, "novelty", bad)
            for event in connection.receive_text(frame, NOW):
                assert_contained(connection, event, "novelty")


def test_of_a_repeated_key_the_last_counts() -> None:
    [event] = fresh().receive_text('{"type":"open","id":8,"id":9,"method":"chat"}', NOW)
    assert isinstance(event, OpenRejected)
    assert event.id == 9


def test_a_repeated_type_is_a_fault_of_type() -> None:
    [event] = fresh().receive_text('{"type":"ack","id":1,"seq":0,"type":"end"}', NOW)
    assert isinstance(event, StreamFaulted)
    assert event.error.param == "type"


def test_names_the_peer_chose_are_not_repeated_to_anyone() -> None:
    key = "k" * 5000
    frame = f'{{"type":"ack","id":1,"seq":0,"{key}":{{"{key}":NaN}}}}'
    [event] = fresh().receive_text(frame, NOW)
    assert isinstance(event, StreamFaulted)
    assert (event.error.code, event.error.param) == ("invalid_message", None)


# --- frames nobody planned -----------------------------------------------------------------------

ids = st.integers(0, 12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(["seq", "text", "messages", "x"]), children, max_size=3)
    ),
    max_leaves=5,
)
texts = st.one_of(
    st.builds(open_chat, ids),
    st.builds(open_method, ids, st.sampled_from([*PARAMS, "paint"])),
    st.builds(open_method, ids, st.just("transcribe"), sample_rate=st.just(16000)),
    st.builds(text, st.sampled_from(sorted(MESSAGES)), id=ids, seq=ids, n=ids, text=st.text()),
    st.builds(text, st.sampled_from(sorted(MESSAGES)), id=ids, seq=json_values, window=json_values),
    st.text(alphabet='{}[]",:0123456789.-+eEtruefalsnNI\\ud8ab ', max_size=40),
    st.builds(json.dumps, json_values),
)
steps = st.lists(
    st.one_of(texts, st.builds(audio, ids), st.binary(max_size=40), st.integers(0, 12)),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_random_frames_never_raise_and_never_corrupt_the_live_ids(
    frames: list[str | bytes | int],
) -> None:
    connection, live, highest, closed = Connection(limits()), set[int](), 0, False
    for frame in frames:
        events: list[ConnectionEvent] = []
        if isinstance(frame, int):
            connection.forget(frame)
            live.discard(frame)
        elif isinstance(frame, str):
            events = connection.receive_text(frame, NOW)
        else:
            events = connection.receive_binary(frame, NOW)
        assert not (closed and events)
        for event in events:
            closed = closed or isinstance(event, CloseRequired)
            if isinstance(event, OpenReceived):
                assert event.id > highest
                highest = event.id
                live.add(event.id)
            elif not isinstance(event, OpenRejected) and hasattr(event, "id"):
                assert event.id in live
        assert connection.live_ids == live
        highest = max(highest, connection.highest_id)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(MESSAGES)), st.data())
def test_a_cut_or_mangled_message_never_raises(type: str, data: st.DataObject) -> None:
    frame = json.dumps({"type": type, **VALID[type]})
    at = data.draw(st.integers(0, len(frame)))
    junk = data.draw(st.text(alphabet='{}[]",:0\\u', max_size=3))
    for mangled in (frame[:at], frame[:at] + junk + frame[at:]):
        for event in fresh().receive_text(mangled, NOW):
            assert not isinstance(event, (OpenRejected, StreamFaulted)) or (
                event.error.code != "internal"
            )
