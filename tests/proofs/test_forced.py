"""A model that was made to: a tool called with valid arguments, an answer of a JSON schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from time import monotonic
from typing import Any

import jsonschema
import pytest

from plait.client import connect
from plait.wire.messages import Cancelled
from tests.live.server import LiveServer
from tests.proofs.rig import params
from tests.proofs.sizes import TEST_SECONDS

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

QUESTION = "What will the weather be in Paris next week?"
FORECAST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
    "additionalProperties": False,
}
PEOPLE: dict[str, Any] = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": PERSON, "minItems": 1, "maxItems": 2}},
    "required": ["people"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "time"}},
    {"type": "function", "function": {"name": "weather", "parameters": FORECAST}},
]
CALL_IT = {"type": "function", "function": {"name": "weather"}}


def of_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"schema": schema}}


async def test_a_named_tool_is_called_with_valid_arguments_and_nothing_is_said(
    llamacpp: LiveServer, record_property: Callable[[str, object], None]
) -> None:
    asked: dict[str, Any] = {"tools": TOOLS, "tool_choice": CALL_IT, "temperature": 0}
    async with connect(llamacpp.ws_url) as client:
        messages = params(QUESTION)["messages"]
        deltas = [delta async for delta in client.chat(messages, **asked)]

    (call,) = [call for delta in deltas for call in delta.calls]
    record_property("arguments", call.arguments)
    assert call.name == "weather"
    jsonschema.validate(json.loads(call.arguments), FORECAST)
    assert "".join(delta.content for delta in deltas) == ""
    assert deltas[-1].finish_reason == "tool_calls"


async def test_forced_answers_are_of_their_schemas_beside_free_ones(llamacpp: LiveServer) -> None:
    async with connect(llamacpp.ws_url) as client:

        async def ask(schema: dict[str, Any], seed: int) -> None:
            asked = params("Invent some people.", response_format=of_schema(schema), seed=seed)
            async with client.open("chat", {**asked, "temperature": 1.0}) as stream:
                answer = "".join([item.data["content"] async for item in stream])
            jsonschema.validate(json.loads(answer), schema)

        async def talk() -> int:
            free = client.chat(params("Name five fruits.")["messages"], max_tokens=20)
            return len(await free.text())

        async with asyncio.TaskGroup() as group:
            free = group.create_task(talk())
            for seed, schema in enumerate((PEOPLE, FORECAST, PEOPLE)):
                group.create_task(ask(schema, seed))

    assert free.result() > 0


async def test_a_slow_reader_of_a_forced_answer_gets_all_of_it(llamacpp: LiveServer) -> None:
    asked = params("Invent some people.", response_format=of_schema(PEOPLE), temperature=0)
    async with connect(llamacpp.ws_url) as client:
        async with client.open("chat", asked) as stream:
            at_once = "".join([item.data["content"] async for item in stream])
        async with client.open("chat", asked, window=1) as stream:
            slowly = "".join([item.data["content"] async for item in stream])

    assert slowly == at_once
    jsonschema.validate(json.loads(slowly), PEOPLE)


async def test_a_forced_answer_stops_like_any_other(
    llamacpp: LiveServer, record_property: Callable[[str, object], None]
) -> None:
    endless = {"type": "array", "items": {"type": "string"}, "minItems": 1000}
    asked = params("List words.", response_format=of_schema(endless), max_tokens=200)
    async with connect(llamacpp.ws_url) as client, client.open("chat", asked) as stream:
        await anext(stream)
        begin = monotonic()
        await stream.cancel()
        record_property("cancel to terminal, s", round(monotonic() - begin, 3))

    assert isinstance(stream.terminal, Cancelled)
    assert stream.terminal.by == "client"
