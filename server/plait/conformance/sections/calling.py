"""§3 chat: calls of tools, forced so that any model makes one."""

from __future__ import annotations

import json
from typing import Any

from plait.conformance.cases import Broken, Skipped, case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab

CALL_TOKENS = 96
PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PLACE}}]
FORCED = {"type": "function", "function": {"name": "weather"}}


def _entries(stream: Heard) -> list[dict[str, Any]]:
    """Of the first call, in order."""
    shown = [entry for item in stream.items for entry in item.data.get("tool_calls") or []]
    return [entry for entry in shown if entry.get("index") == 0]


@case("§3 chat", "a named tool is called: begun, written and at last whole", needs=["chat"])
async def named_tool(lab: Lab) -> None:
    asked = {"tools": TOOLS, "tool_choice": FORCED, "parallel_tool_calls": False}
    async with lab.connect() as peer:
        said = [{"role": "user", "content": "What is the weather like in Paris?"}]
        params = {"messages": said, "max_tokens": CALL_TOKENS, "temperature": 0}
        stream = peer.open("chat", params | asked)
        await peer.ended(stream)
        if stream.ended in ("rejected", "error"):
            param = str(stream.error.get("param"))
            expect(param.startswith("tool"), "invalid_request naming the field", stream.error)
            raise Skipped("the engine has no grammars")
        _check_call(stream)


def _check_call(stream: Heard) -> None:
    entries, reason = _entries(stream), (stream.terminal or {})["finish_reason"]
    if reason == "length":
        raise Skipped("the answer was cut by max_tokens")
    expect(reason == "tool_calls", "finish_reason tool_calls", f"{reason}, {stream.text!r}")
    expect(entries, "tool_calls in the items", f"{stream}: {stream.text!r}")
    first, function = entries[0], entries[0].get("function", {})
    expect(first.get("id") and first.get("type") == "function", "id and type first", first)
    expect(function.get("name") == "weather", "name weather", first)
    expect(entries[-1].get("complete") is True, "complete: true at last", entries[-1])
    _check_whole(entries)


def _check_whole(entries: list[dict[str, Any]]) -> None:
    """The pieces joined are the arguments of the last entry, and JSON."""
    *pieces, last = entries
    written = "".join(piece.get("function", {}).get("arguments", "") for piece in pieces)
    whole = last["function"]["arguments"]
    expect(last["function"].get("name") == "weather", "the name in the whole call", last)
    expect(not pieces or written == whole, f"the pieces joined: {written!r}", repr(whole))
    try:
        json.loads(whole)
    except ValueError as error:
        raise Broken("arguments that are JSON", repr(whole)) from error


@case("§3 chat", "tool_choice none: no call, whatever the tools", needs=["chat"])
async def no_tool(lab: Lab) -> None:
    async with lab.connect() as peer:
        asked = {"tools": TOOLS, "tool_choice": "none"}
        stream = peer.open("chat", lab.chat(8, temperature=0, **asked))
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        expect(not _entries(stream), "no tool_calls", _entries(stream))
