"""The fields of a chat that hold JSON of the peer's own: tools, tool calls, schemas.

Their size is bounded before they are decoded, their depth and integers before they travel on into
templates, grammars and other encoders, and what PROTOCOL.md §3 says of their shape is checked
here. A fault is `InvalidRequest` with the path of its field. Does NOT know what a model makes of
them, nor whether a schema can be compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from plait.errors import InvalidRequest
from plait.wire.diagnose import MAX_DEPTH, at_most_values
from plait.wire.params import ChatParams

MAX_INT64 = 2**63 - 1
MAX_FREE_FORM_VALUES = 10_000  # a few ms of the event loop, and more than 128 tools' worth
TOOL_CHOICES = ("auto", "none", "required")
RESPONSE_FORMATS = ("text", "json_object", "json_schema")

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


class _Calls(msgspec.Struct):
    tool_calls: msgspec.Raw = msgspec.Raw(b"")


class _FreeForm(msgspec.Struct):
    """Only the free-form fields of chat's params, and these unread."""

    tools: msgspec.Raw = msgspec.Raw(b"")
    tool_choice: msgspec.Raw = msgspec.Raw(b"")
    response_format: msgspec.Raw = msgspec.Raw(b"")
    messages: list[_Calls] = []


_free_form = msgspec.json.Decoder(_FreeForm)


def measure_free_form(raw: bytes) -> None:
    """Before decoding: to make and to walk a million tiny values takes up to a second.

    Raises InvalidRequest, or what the decoder raises.
    """
    if at_most_values(raw) <= MAX_FREE_FORM_VALUES:
        return
    free_form = _free_form.decode(raw)
    values = 0
    for path, field in _fields(free_form):
        values += at_most_values(bytes(field))
        if values > MAX_FREE_FORM_VALUES:
            raise InvalidRequest(
                f"{path}: tools, tool_calls and response_format hold more than "
                f"{MAX_FREE_FORM_VALUES} values in all. Send fewer.",
                param=path,
            )


def _fields(free_form: _FreeForm) -> Iterator[tuple[str, msgspec.Raw]]:
    for name in ("tools", "tool_choice", "response_format"):
        yield name, getattr(free_form, name)
    for index, message in enumerate(free_form.messages):
        yield f"messages[{index}].tool_calls", message.tool_calls


def check_free_form(params: ChatParams) -> None:
    """Raises InvalidRequest."""
    for index, message in enumerate(params.messages):
        if message.tool_calls is not None:
            _check_values(f"messages[{index}].tool_calls", message.tool_calls)
    names = _check_tools(params.tools or [])
    if params.tool_choice != "auto":
        _check_tool_choice(params.tool_choice, names)
    if params.response_format is not None:
        _check_response_format(params.response_format)


def _check_tools(tools: list[dict[str, Any]]) -> set[str]:
    """-> their names."""
    _check_values("tools", tools)
    names: set[str] = set()
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if tool.get("type") != "function":
            raise _wrong(f"{path}.type", 'must be "function"')
        name = _check_function(f"{path}.function", tool.get("function"))
        if name in names:
            raise _wrong(f"{path}.function.name", "is the name of a tool before it")
        names.add(name)
    return names


def _check_function(path: str, function: Any) -> str:
    if not isinstance(function, dict):
        raise _wrong(path, "must be an object with a name")
    name = function.get("name")
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise _wrong(f"{path}.name", "must be 1 to 128 letters, digits or any of _ . : / -")
    if not isinstance(function.get("description"), str | None):
        raise _wrong(f"{path}.description", "must be a string")
    if not isinstance(function.get("parameters"), dict | None):
        raise _wrong(f"{path}.parameters", "must be a JSON schema, an object")
    return name


def _check_tool_choice(choice: str | dict[str, Any], names: set[str]) -> None:
    if isinstance(choice, str):
        if choice not in TOOL_CHOICES:
            raise _wrong("tool_choice", f"must be one of {', '.join(TOOL_CHOICES)}, or name a tool")
        if choice == "required" and not names:
            raise _wrong("tool_choice", "requires a call, and no tools are given")
        return
    _check_values("tool_choice", choice)
    if choice.get("type") != "function":
        raise _wrong("tool_choice.type", 'must be "function"')
    function = choice.get("function")
    if not isinstance(function, dict):
        raise _wrong("tool_choice.function", "must be an object with a name")
    name = function.get("name")
    if not isinstance(name, str) or name not in names:
        raise _wrong("tool_choice.function.name", "must be the name of one of tools")


def _check_response_format(response_format: dict[str, Any]) -> None:
    _check_values("response_format", response_format)
    kind = response_format.get("type")
    if kind not in RESPONSE_FORMATS:
        raise _wrong("response_format.type", f"must be one of {', '.join(RESPONSE_FORMATS)}")
    if kind != "json_schema":
        return
    asked = response_format.get("json_schema")
    if not isinstance(asked, dict):
        raise _wrong("response_format.json_schema", "must be an object with a schema")
    if not isinstance(asked.get("schema"), dict):
        raise _wrong("response_format.json_schema.schema", "must be a JSON schema, an object")


def _check_values(path: str, value: Any) -> None:
    """All that these go to recurse, and none carries an integer of more than 64 bits."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if any(isinstance(node, int) and abs(node) > MAX_INT64 for node in level):
            raise _wrong(path, "holds an integer of more than 64 bits. Send it as a string")
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise _wrong(path, f"nested more than {MAX_DEPTH} levels deep. Flatten it")


def _wrong(path: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{path}: {what}. Correct it and send it again.", param=path)
