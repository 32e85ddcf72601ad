"""The vector file both codecs run: what is in it, the Python codec reads and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from plait.errors import PlaitError
from plait.wire.codec import (
    BadField,
    Undecodable,
    decode_binary,
    decode_client,
    decode_params,
    decode_server,
    encode_binary,
    encode_client,
    encode_item,
    encode_params,
    encode_server,
)
from plait.wire.messages import ClientMessage, ItemMessage, Open, ServerMessage
from plait.wire.window import Credit

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "plait.v1.json").read_text("utf-8")
)


def vectors(kind: str) -> pytest.MarkDecorator:
    cases = VECTORS[kind]
    return pytest.mark.parametrize("vector", cases, ids=[case["name"] for case in cases])


def as_text(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


@vectors("client")
def test_client_messages_survive_a_round_trip(vector: dict[str, Any]) -> None:
    message = decode_client(as_text(vector["message"]))
    assert json.loads(encode_client(message)) == vector["message"]


@vectors("client")
def test_params_survive_a_round_trip(vector: dict[str, Any]) -> None:
    message = decode_client(as_text(vector["message"]))
    if isinstance(message, Open):
        params = decode_params(message.method, message.params)
        assert decode_params(message.method, encode_params(params)) == params


@vectors("server")
def test_server_messages_survive_a_round_trip(vector: dict[str, Any]) -> None:
    message = decode_server(as_text(vector["message"]))
    assert message is not None
    assert json.loads(encode_server(message)) == vector["message"]


def test_items_are_framed_without_encoding_their_data_again() -> None:
    data = '{"content": "漢"}'.encode()
    message = decode_server(encode_item(7, 3, data))
    assert isinstance(message, ItemMessage)
    assert (message.id, message.seq, bytes(message.data)) == (7, 3, data)


@vectors("binary")
def test_binary_frames_read_and_write(vector: dict[str, Any]) -> None:
    frame = decode_binary(bytes.fromhex(vector["hex"]))
    fields = {name: getattr(frame, name) for name in ("kind", "flags", "id", "seq", "aux")}
    assert fields.items() <= vector.items()
    assert frame.payload.hex() == vector["payload_hex"]
    assert encode_binary(**fields, payload=frame.payload).hex() == vector["hex"]


@vectors("invalid_binary")
def test_invalid_binary_frames_close_the_socket(vector: dict[str, Any]) -> None:
    with pytest.raises(Undecodable) as caught:
        decode_binary(bytes.fromhex(vector["hex"]))
    assert caught.value.code == 4400


@vectors("invalid_client")
def test_invalid_client_messages_have_the_documented_outcome(vector: dict[str, Any]) -> None:
    assert outcome_of(vector["text"]) == vector["outcome"]


def outcome_of(text: str) -> dict[str, Any] | None:
    try:
        message = decode_client(text)
        if isinstance(message, Open):
            decode_params(message.method, message.params)
    except Undecodable as error:
        return {"close": error.code}
    except BadField as bad:
        refusal = {"error": bad.error.code, "param": bad.error.param}
        return {**refusal, "id": bad.stream_id, "type": bad.type}
    except PlaitError as error:
        return {"error": error.code, "param": error.param, "id": 1, "type": "open"}
    return None


@vectors("credit")
def test_credit_follows_the_steps(vector: dict[str, Any]) -> None:
    credit = Credit(vector["window"])
    for step in vector["steps"]:
        follow(credit, step)


def follow(credit: Credit, step: dict[str, Any]) -> None:
    if "send" in step:
        assert [credit.sent() for _ in range(step["send"])][-1] == step["seq"]
    elif "error" in step:
        with pytest.raises(PlaitError) as caught:
            credit.receive_ack(step["ack"], step.get("window"))
        assert (caught.value.code, caught.value.param) == (step["error"], step["param"])
    elif "ack" in step:
        assert credit.receive_ack(step["ack"], step.get("window")) is step["progress"]
    else:
        for name, expected in step["expect"].items():
            assert getattr(credit, name) == expected


def test_every_message_type_has_a_vector() -> None:
    for kind, union in (("client", ClientMessage), ("server", ServerMessage)):
        known = {member.__struct_config__.tag for member in get_args(union)}
        assert {vector["message"]["type"] for vector in VECTORS[kind]} == known
