"""Grammars of forced answers: what they let through, what is refused, and that none takes long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from plait.engines.chat.constraint import MAX_GRAMMAR_BYTES, Watch
from plait.engines.chat.dialects import HERMES, LLAMA, MARKS, MISTRAL, UNKNOWN, Dialect
from plait.engines.chat.grammar import Grammar, grammar_of
from plait.errors import GenerationFailed, InvalidRequest
from plait.wire.messages import ChatMessage, ChatParams

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"zone": {"type": "string"}},
    "required": ["zone"],
    "additionalProperties": False,
}
TIME = {"type": "function", "function": {"name": "time", "parameters": SCHEMA}}
WEATHER = {"type": "function", "function": {"name": "weather"}}
NAMED = MISTRAL._replace(form="named", opener=MARKS["[TOOL_CALLS]"], args=MARKS["[ARGS]"])
# Far above what is expected of the slowest machine, far below what would hold up a worker.
PATIENCE_SECONDS = 5.0


def asking(**params: Any) -> ChatParams:
    return ChatParams([ChatMessage("user", "x")], **params)


def grammar(dialect: Dialect = HERMES, **params: Any) -> Grammar:
    ids = {mark: token for token, mark in enumerate(MARKS.values(), 500)}
    ids = {mark: token for mark, token in ids.items() if mark in dialect}
    made = grammar_of(asking(**params), dialect, ids)
    assert made is not None
    return made


def of_schema(schema: dict[str, Any]) -> Grammar:
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    return grammar(response_format=wanted)


def lets_through(made: Grammar, text: str) -> bool:
    watch = Watch(made)
    try:
        for character in text:
            watch.add(character)
        watch.finish()
    except GenerationFailed:
        return False
    return True


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"tools": [TIME]},
        {"tools": [TIME], "tool_choice": "none"},
        {"response_format": {"type": "text"}},
    ],
)
def test_an_answer_nobody_forces_has_no_grammar(params: dict[str, Any]) -> None:
    assert grammar_of(asking(**params), HERMES, {}) is None


@pytest.mark.parametrize(
    ("dialect", "call"),
    [
        (HERMES, '<tool_call>\n{"name": "time", "arguments": {"zone": "UTC"}}\n</tool_call>'),
        (LLAMA, '{"name": "time", "parameters": {"zone": "UTC"}}'),
        (UNKNOWN, '{"name": "time", "arguments": {"zone": "UTC"}}'),
        (MISTRAL, '[TOOL_CALLS][{"name": "time", "arguments": {"zone": "UTC"}}]'),
        (NAMED, f'{MARKS["[TOOL_CALLS]"]}time{MARKS["[ARGS]"]}{{"zone": "UTC"}}'),
    ],
)
def test_a_forced_call_is_written_as_its_family_does(dialect: Dialect, call: str) -> None:
    made = grammar(dialect, tools=[TIME, WEATHER], tool_choice="required")

    assert lets_through(made, call)
    assert not lets_through(made, call.replace("time", "fly"))
    assert not lets_through(made, call.replace("zone", "place"))
    assert not lets_through(made, "It is noon.")


def test_a_named_tool_is_the_only_one_and_called_once() -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    made = grammar(LLAMA, tools=[TIME, WEATHER], tool_choice=choice)

    assert lets_through(made, '{"name": "weather", "parameters": {"any": [1]}}')
    assert not lets_through(made, '{"name": "time", "parameters": {"zone": "UTC"}}')
    assert not lets_through(made, '{"name": "weather", "parameters": {}}; {"name": "weather"')


def test_markup_that_is_a_special_token_is_told_to_engines_by_its_id() -> None:
    made = grammar(NAMED, tools=[TIME], tool_choice="required")

    assert "<[503]>" in made.text
    assert "<[504]>" in made.text
    assert not set(made.text) & set(MARKS.values())


def test_json_may_come_after_a_call_was_possible() -> None:
    made = grammar(tools=[WEATHER], response_format={"type": "json_object"})

    assert lets_through(made, '{"sunny": true}')
    assert lets_through(made, '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>')
    assert not lets_through(made, "[1]")


def test_an_answer_of_a_schema_keeps_to_it_and_to_little_space() -> None:
    made = of_schema(SCHEMA)

    assert lets_through(made, '{\n    "zone": "Ω \\n"\n}')
    assert not lets_through(made, '{"zone": 1}')
    assert not lets_through(made, '{"zone": "a"')
    assert not lets_through(made, "{" + " " * 50 + '"zone": "a"}')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "colour"},
        {"type": "array", "uniqueItems": True},
        {"type": "string", "pattern": "((("},
        {"$ref": "https://example.com/schema"},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"enum": ["x" * MAX_GRAMMAR_BYTES]},
    ],
)
def test_a_schema_that_cannot_be_enforced_names_the_format(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Watch(of_schema(schema))

    assert caught.value.param == "response_format"
    assert len(caught.value.message) < 400


def test_a_tools_schema_that_cannot_be_enforced_names_the_tool() -> None:
    broken = {"type": "function", "function": {"name": "b", "parameters": {"type": "colour"}}}

    with pytest.raises(InvalidRequest) as caught:
        Watch(grammar(tools=[TIME, broken], tool_choice="required"))

    assert caught.value.param == "tools[1].function.parameters"


def test_what_a_tools_schema_asks_beyond_the_grammar_is_left_to_the_tool() -> None:
    parameters = {"type": "array", "uniqueItems": True}
    tool = {"type": "function", "function": {"name": "b", "parameters": parameters}}

    assert lets_through(
        grammar(LLAMA, tools=[tool], tool_choice="required"), '{"name": "b", "parameters": [1, 1]}'
    )


def test_a_peer_cannot_write_rules_of_its_own() -> None:
    schema = {**SCHEMA, "x-guidance": {"whitespace_flexible": False}, "title": '"\nstart: "x'}

    assert lets_through(of_schema(schema), '{ "zone": "a" }')


def nested_choices(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"anyOf": [{"type": "array", "items": schema}, {"type": "string"}]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(a?){500}a{500}$"},
        {"type": "string", "pattern": "^((a{1,1000}){1,1000}){1,1000}$"},
        {"type": "string", "pattern": "^(.*a.{12}|.*b.{13}|.*[c-e].{17})*$"},
        {"type": "array", "minItems": 10_000, "items": {"type": "integer"}},
        {"anyOf": [{"properties": {f"a{n}": {"type": "string"}}} for n in range(500)]},
        {"allOf": [{"properties": {f"a{n}": {"type": "string"}}} for n in range(500)]},
        {"properties": {f"p{n}": {"type": "string"} for n in range(900)}},
        {"enum": [f"{n}" * 100 for n in range(100)]},
        nested_choices(20),
    ],
)
def test_no_schema_holds_up_a_worker(schema: dict[str, Any]) -> None:
    begin = time.thread_time()
    try:
        watch = Watch(of_schema(schema))
        for character in '"' + "a" * 60:
            watch.add(character)
    except (InvalidRequest, GenerationFailed):
        pass

    assert time.thread_time() - begin < PATIENCE_SECONDS


def test_the_grammar_of_many_tools_fits() -> None:
    tools = [
        {"type": "function", "function": {"name": f"tool{n}", "parameters": SCHEMA}}
        for n in range(128)
    ]

    made = grammar(LLAMA, tools=tools, tool_choice="required")

    assert lets_through(made, json.dumps({"name": "tool127", "parameters": {"zone": "a"}}))
