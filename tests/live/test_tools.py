"""Chats with tools through a real server: deltas, endings, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait.client import Delta, ToolCall, connect
from plait.errors import InvalidRequest
from tests.live.server import LiveServer

TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}}
ARGUMENTS = '{"zone":"Europe/Oslo"}'


def asking(script: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": script}]


async def deltas_of(server: LiveServer, script: str, **params: Any) -> list[Delta]:
    async with (
        connect(server.ws_url) as client,
        client.chat(asking(script), tools=[TIME], **params) as stream,
    ):
        return [delta async for delta in stream]


async def test_a_call_arrives_in_pieces_and_whole(server: LiveServer) -> None:
    deltas = await deltas_of(server, f"tokens=2 call=time args={ARGUMENTS}")

    entries = [entry for delta in deltas for entry in delta.tool_calls or []]
    pieces = [entry["function"]["arguments"] for entry in entries[1:-1]]
    assert "".join(delta.content for delta in deltas) == "w0 w1 "
    assert entries[0]["function"] == {"name": "time"}
    assert "".join(pieces) == ARGUMENTS
    assert len(pieces) > 1
    assert [call for delta in deltas for call in delta.calls] == [
        ToolCall(entries[0]["id"], "time", ARGUMENTS)
    ]
    assert deltas[-1].finish_reason == "tool_calls"


async def test_a_slow_reader_gets_the_whole_call(server: LiveServer) -> None:
    deltas = await deltas_of(server, f"tokens=0 call=time calls=3 args={ARGUMENTS}", window=1)

    assert [call.arguments for delta in deltas for call in delta.calls] == [ARGUMENTS] * 3


async def test_a_conversation_goes_on_with_the_result_of_a_call(server: LiveServer) -> None:
    first = await deltas_of(server, "tokens=0", tool_choice="required")
    (call,) = [call for delta in first for call in delta.calls]
    said = {"id": call.id, "type": "function", "function": {"name": "time", "arguments": "{}"}}
    messages = [
        *asking("What time is it?"),
        {"role": "assistant", "content": None, "tool_calls": [said]},
        {"role": "tool", "content": "tokens=2", "tool_call_id": call.id},
    ]

    async with connect(server.ws_url) as client:
        answer = await client.chat(messages, tools=[TIME]).text()

    assert answer == "w0 w1 "


async def test_a_form_that_the_engine_cannot_force_fails_with_its_field(
    server: LiveServer,
) -> None:
    async with connect(server.ws_url) as client:
        wanted = {"type": "json_object"}
        with pytest.raises(InvalidRequest) as caught:
            await client.chat(asking("tokens=1"), response_format=wanted).text()
        after = await client.chat(asking("tokens=1")).text()

    assert caught.value.param == "response_format"
    assert after == "w0 "


async def test_a_choice_of_no_tool_is_refused_at_once(server: LiveServer) -> None:
    async with connect(server.ws_url) as client:
        choice = {"type": "function", "function": {"name": "fly"}}
        with pytest.raises(InvalidRequest) as caught:
            await client.chat(asking("x"), tools=[TIME], tool_choice=choice).text()

    assert caught.value.param == "tool_choice.function.name"
    assert json.dumps(choice) not in caught.value.message
