"""Messages, calls and tools as templates want them; and in plain words, where one takes no tools.

Then the tools are described in the system's words, a call is written the way Hermes does, and a
result comes in the user's turn: what most models of these days have seen. Knows no template and no
parser.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from plait.wire.messages import ChatMessage, ChatParams

Message = dict[str, Any]

INSTRUCTION = """\
You may call one or more functions to help with the request. Their signatures are:
<tools>
{tools}
</tools>
For each call, write a JSON object with the function's name and its arguments, between tags:
<tool_call>
{{"name": <name>, "arguments": <object of arguments>}}
</tool_call>"""


def tools_of(params: ChatParams) -> list[dict[str, Any]] | None:
    """Those the model is told of: none where it must not call any."""
    return params.tools if params.tools and params.tool_choice != "none" else None


def names_of(tools: list[dict[str, Any]]) -> frozenset[str]:
    return frozenset(tool["function"]["name"] for tool in tools)


def template_message(message: ChatMessage) -> dict[str, Any]:
    """A message the way templates expect it.

    They add `content` to strings, so an absent one is empty; beside tool calls it stays None,
    which templates test for. Tool arguments are objects there, JSON text in the OpenAI shape.
    """
    fields: dict[str, Any] = msgspec.to_builtins(message)
    if not message.tool_calls:
        return {**fields, "content": message.content or ""}
    calls = [_template_call(call) for call in message.tool_calls]
    return {**fields, "content": message.content, "tool_calls": calls}


def _template_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = msgspec.json.decode(function["arguments"])
    except (msgspec.DecodeError, RecursionError):
        return call  # free text, or nested without end: the template shows it as it is
    return {**call, "function": {**function, "arguments": arguments}}


def in_system(messages: list[Message], tools: list[dict[str, Any]]) -> list[Message]:
    """The messages with the tools described at the end of the system's, or in a new one."""
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": ""}, *messages]
    first = messages[0]
    return [{**first, "content": _joined(first["content"], _instruction(tools))}, *messages[1:]]


def in_user(messages: list[Message], tools: list[dict[str, Any]]) -> list[Message]:
    """The same, at the head of the first message."""
    first = messages[0]
    return [{**first, "content": _joined(_instruction(tools), first["content"])}, *messages[1:]]


def as_text(message: Message) -> Message:
    """A call or a result, as what a template without tools can render; others as they are."""
    content = message.get("content") or ""
    calls = message.get("tool_calls")
    if calls:
        texts = [f"<tool_call>\n{_call_text(call)}\n</tool_call>" for call in calls]
        return {"role": message["role"], "content": _joined(content, "\n".join(texts))}
    if message["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
    return message


def _call_text(call: dict[str, Any]) -> str:
    function = call.get("function")
    if not isinstance(function, dict):
        return _json(call)
    return _json({"name": function.get("name"), "arguments": function.get("arguments") or {}})


def _instruction(tools: list[dict[str, Any]]) -> str:
    return INSTRUCTION.format(tools="\n".join(map(_json, tools)))


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
