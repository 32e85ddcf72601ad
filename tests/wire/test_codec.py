"""The codec's own corners: params, encoding, a server's frames as a client reads them."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from plait.errors import InvalidRequest, UnsupportedMethod
from plait.wire.codec import (
    Undecodable,
    decode_params,
    decode_server,
    encode_client,
    encode_params,
)
from plait.wire.messages import ChatParams, Input

MESSAGE = {"role": "user", "content": "a"}


def refused(raw: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        decode_params("chat", raw.encode())
    return caught.value


def bytes_to_refuse(raw: str) -> int:
    """The most memory that it takes on the way."""
    tracemalloc.start()
    try:
        refused(raw)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_method_nobody_knows_is_named_but_not_at_length() -> None:
    with pytest.raises(UnsupportedMethod) as caught:
        decode_params("x" * 5000, b"{}")
    assert caught.value.param == "method"
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("raw", ["", "null", "[]", "3", '"a"', "{", "nonsense"])
def test_params_that_are_no_object_are_params_fault(raw: str) -> None:
    assert refused(raw).param == "params"


def test_tools_travel_up_to_the_documented_depth() -> None:
    tool = {"type": "function", "function": {"name": "time"}}
    raw = json.dumps({"messages": [MESSAGE], "tools": [{**tool, "a": nested(61)}]})
    params = decode_params("chat", raw.encode())
    assert isinstance(params, ChatParams)
    raw = json.dumps({"messages": [MESSAGE], "tools": [{**tool, "a": nested(64)}]})
    assert refused(raw).param == "tools"


def test_tool_calls_too_deep_are_named_with_their_message() -> None:
    deep = {"role": "assistant", "tool_calls": [{"a": nested(64)}]}
    assert refused(json.dumps({"messages": [MESSAGE, deep]})).param == "messages[1].tool_calls"


def test_a_number_out_of_range_inside_tools_names_the_tool() -> None:
    raw = '{"messages":[{"role":"u"}],"tools":[{},{"a":1e999}]}'
    assert refused(raw).param == "tools[1]"


def test_a_missing_field_is_named_with_its_path() -> None:
    assert refused('{"messages":[{"role":"u"},{"content":"a"}]}').param == "messages[1].role"


def test_a_huge_value_is_not_repeated_in_the_message() -> None:
    raw = json.dumps({"messages": [{"role": "x" * 100_000}]})
    assert len(refused(raw).message) < 400


def test_the_path_to_a_fault_costs_no_more_the_deeper_it_is() -> None:
    many = "[0]," * 5000 + "NaN"
    flat = f'{{"messages":[{many}]}}'
    deep = f'{{"messages":{"[" * 500}{many}{"]" * 500}}}'

    assert bytes_to_refuse(deep) < 2 * bytes_to_refuse(flat)


def test_text_no_json_can_carry_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        encode_client(Input(1, text="\ud83d"))
    with pytest.raises(InvalidRequest, match="surrogate"):
        encode_params({"messages": [{"role": "user", "content": "\udc00"}]})


def test_a_server_message_of_an_unknown_type_is_nothing() -> None:
    assert decode_server('{"type":"resumed","id":1}') is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"type":"pong"}', '{"type":"pong","n":"x"}'])
def test_a_broken_server_message_is_undecodable(text: str) -> None:
    with pytest.raises(Undecodable):
        decode_server(text)


def test_tools_of_too_many_values_are_refused_before_they_are_read() -> None:
    raw = '{"messages":[{"role":"user"}],"tools":[{"a":[' + "{}," * 100_000 + "1]}]}"
    assert refused(raw).param == "tools"


def test_tool_calls_count_together_and_the_first_too_many_is_named() -> None:
    call = '{"role":"assistant","tool_calls":[{"a":[' + "1," * 6_000 + "1]}]}"
    assert refused(f'{{"messages":[{call},{call}]}}').param == "messages[1].tool_calls"


def test_prose_of_any_length_has_no_values_to_count() -> None:
    raw = json.dumps({"messages": [{"role": "user", "content": "a, [b, {c, " * 50_000}]})
    assert isinstance(decode_params("chat", raw.encode()), ChatParams)


def test_a_fault_elsewhere_in_large_params_is_named_all_the_same() -> None:
    raw = '{"messages":[7],"tools":[{"a":[' + "1," * 20_000 + "1]}]}"
    assert refused(raw).param == "messages[0]"
