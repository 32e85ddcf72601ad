"""Tools, tool_choice and response_format: what they must look like, and which field is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait.errors import InvalidRequest
from plait.wire.codec import decode_params
from plait.wire.free_form import MAX_FREE_FORM_VALUES
from plait.wire.messages import ChatParams

TIME: dict[str, Any] = {"type": "function", "function": {"name": "time"}}
SCHEMA = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}, "name": "x"}}


def read(**params: Any) -> ChatParams:
    raw = json.dumps({"messages": [{"role": "user", "content": "a"}], **params})
    decoded = decode_params("chat", raw.encode())
    assert isinstance(decoded, ChatParams)
    return decoded


def function(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "time", **fields}}]


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    "params",
    [
        {"tools": function(description=None, parameters=None), "tool_choice": "required"},
        {"tools": function(parameters={"type": "object"}), "tool_choice": named("time")},
        {"tools": [named("a"), named("b-c.d/e:f_2")], "parallel_tool_calls": False},
        {"tool_choice": "none"},
        {"response_format": {"type": "json_object"}},
        {"response_format": SCHEMA, "tools": [TIME]},
    ],
)
def test_what_the_protocol_shows_is_read(params: dict[str, Any]) -> None:
    assert read(**params).messages[0].content == "a"


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"tools": [{"function": {"name": "a"}}]}, "tools[0].type"),
        ({"tools": [TIME, {"type": "function"}]}, "tools[1].function"),
        ({"tools": [TIME, TIME]}, "tools[1].function.name"),
        ({"tools": [named("")]}, "tools[0].function.name"),
        ({"tools": [named("a b")]}, "tools[0].function.name"),
        ({"tools": [named("a" * 129)]}, "tools[0].function.name"),
        ({"tools": function(description=1)}, "tools[0].function.description"),
        ({"tools": function(parameters=[])}, "tools[0].function.parameters"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "always", "tools": [TIME]}, "tool_choice"),
        ({"tool_choice": {"type": "tool"}, "tools": [TIME]}, "tool_choice.type"),
        ({"tool_choice": {"type": "function"}, "tools": [TIME]}, "tool_choice.function"),
        ({"tool_choice": named("x"), "tools": [TIME]}, "tool_choice.function.name"),
        ({"tool_choice": named("time")}, "tool_choice.function.name"),
        ({"response_format": {"type": "json"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": True}}},
            "response_format.json_schema.schema",
        ),
        # Also where nobody looks: it all goes to the worker, in a form of 64-bit integers.
        ({"tools": function(parameters={"enum": [10**30]})}, "tools"),
        ({"tools": [TIME], "tool_choice": {**named("time"), "x": 10**30}}, "tool_choice"),
        ({"response_format": {"type": "text", "x": 10**30}}, "response_format"),
        ({"response_format": {**SCHEMA, "x": {"y": -(10**30)}}}, "response_format"),
    ],
)
def test_a_fault_names_its_field(params: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**params)

    assert caught.value.param == path
    assert caught.value.message.startswith(f"{path}: ")


def test_a_schema_of_too_many_values_is_refused_before_it_is_read() -> None:
    schema = {"enum": [0] * MAX_FREE_FORM_VALUES}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}

    with pytest.raises(InvalidRequest) as caught:
        read(response_format=wanted)

    assert caught.value.param == "response_format"


def test_a_schema_too_deep_for_those_that_recurse_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(70):
        schema = {"items": schema}
    text = json.dumps({"type": "json_schema", "json_schema": {"schema": schema}})

    with pytest.raises(InvalidRequest) as caught:
        read(response_format=json.loads(text))

    assert caught.value.param is not None
    assert caught.value.param.startswith("response_format")
