"""PROTOCOL.md and the code say the same: tables of errors, close codes, messages and params."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from plait.errors import BY_CODE, InvalidRequest
from plait.wire.close import CloseCode
from plait.wire.codec import decode_params, decode_server
from plait.wire.messages import PARAMS, ClientMessage, Open, ServerMessage

DOCUMENT = (Path(__file__).parents[2] / "PROTOCOL.md").read_text("utf-8")


def section(number: int) -> str:
    return DOCUMENT.split(f"\n## {number} ")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_error_table_is_the_closed_list_of_codes() -> None:
    documented = {
        row[0].strip("` "): (row[1], row[2] == "yes")
        for row in rows(section(6))
        if len(row) >= 4 and row[1] in ("client", "capacity", "model", "internal")
    }
    assert documented == {
        code: (error.error_class, error.retryable) for code, error in BY_CODE.items()
    }


def test_the_close_codes_are_all_documented() -> None:
    documented = {int(row[0]) for row in rows(section(6)) if re.fullmatch(r"\d{4}", row[0])}
    assert documented == set(CloseCode)


@pytest.mark.parametrize("message", get_args(ClientMessage) + get_args(ServerMessage))
def test_every_message_and_field_is_documented(message: type[msgspec.Struct]) -> None:
    documented = section(1) + section(2)
    assert f"`{message.__struct_config__.tag}`" in documented
    for field in msgspec.structs.fields(message):
        assert re.search(rf"\b{field.encode_name}\b", documented), field.name


@pytest.mark.parametrize("method", PARAMS)
def test_every_param_is_documented_with_its_default(method: str) -> None:
    table = section(3).split(f"### `{method}`")[1].split("\n### ")[0]
    defaults = {name.strip("` "): row[-1] for row in rows(table) for name in row[0].split(",")}
    for field in msgspec.structs.fields(PARAMS[method]):
        assert field.encode_name in defaults
        if field.required:
            assert defaults[field.encode_name] == "required"
        elif isinstance(field.default, (bool, int, float)):
            expected = json.dumps(field.default).removesuffix(".0")
            assert defaults[field.encode_name].startswith(expected)


def test_the_defaults_of_an_open_are_documented() -> None:
    table = [row for row in rows(section(2)) if len(row) == 5]
    defaults = {row[1].strip("` "): row[3] for row in reversed(table)}  # open comes first
    for field in msgspec.structs.fields(Open):
        if isinstance(field.default, (int, float, str)):
            assert defaults[field.encode_name].strip("`") == str(field.default)


def test_the_json_examples_can_be_read() -> None:
    examples = re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(examples) >= 4
    for example in examples:
        for line in re.split(r"\n(?=\{)", example.strip()):
            assert isinstance(json.loads(line), dict)


def test_the_welcome_example_is_a_welcome() -> None:
    example = re.findall(r"```json\n(.*?)```", section(1), re.DOTALL)[0]
    message = decode_server(example)
    assert message is not None
    assert message.__struct_config__.tag == "welcome"


def some_tools(count: int) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": f"tool{n}"}} for n in range(count)]


@pytest.mark.parametrize(
    ("method", "field", "inside", "outside"),
    [
        ("chat", "temperature", [0, 10], [-0.01, 10.01]),
        ("chat", "top_p", [0.001, 1], [0, 1.01]),
        ("chat", "top_k", [0, 2**31 - 1], [-1, 2**31]),
        ("chat", "min_p", [0, 1], [-0.01, 1.01]),
        ("chat", "repetition_penalty", [0.01, 10], [0, 10.01]),
        ("chat", "seed", [0, 2**32 - 1, None], [-1, 2**32]),
        ("chat", "max_tokens", [1, 10**9, 2**63, None], [0, -1, 1.5, "5"]),
        ("chat", "logprobs", [True, False, 0, 20], [-1, 21]),
        ("chat", "stop", [[], ["a"] * 16, ["a" * 4096]], [[""], ["a"] * 17, ["a" * 4097]]),
        ("chat", "tools", [some_tools(128), [], None], [some_tools(129), [1], [{}]]),
        ("chat", "tool_choice", ["auto", "none"], ["any", None, "required", 1]),
        ("chat", "parallel_tool_calls", [True, False], [None, 1]),
        ("chat", "response_format", [{"type": "text"}, None], [{"type": "xml"}, "text", {}]),
        ("transcribe", "sample_rate", [8000, 48000], [7999, 48001]),
        ("transcribe", "channels", [1, 2], [0, 3]),
        ("transcribe", "silence_ms", [200, 3000], [199, 3001, 500.5]),
        ("transcribe", "max_segment_seconds", [4, 12.5, 28], [3.99, 28.01]),
        ("transcribe", "speech_threshold", [0.1, 0.9], [0.09, 0.91]),
        ("transcribe", "prompt", [None, "", "x" * 1024], ["x" * 1025, 5]),
        ("transcribe", "language", [None, "x" * 16], ["x" * 17, 5]),
        ("synthesize", "speed", [0.5, 2], [0.49, 2.01]),
        ("embed", "texts", [None, [], ["", "a"]], [[None], ["a", 5], "a", {"0": "a"}]),
        ("embed", "encoding", ["f32", "json"], [None, "base64", 32]),
        ("embed", "truncate", [True, False], [None, 1, "yes"]),
    ],
)
def test_the_documented_bounds_are_the_codes(
    method: str, field: str, inside: list[Any], outside: list[Any]
) -> None:
    required: dict[str, dict[str, Any]] = {
        "chat": {"messages": [{"role": "user"}]},
        "transcribe": {"sample_rate": 16000},
    }
    for values, allowed in ((inside, True), (outside, False)):
        for value in values:
            raw = json.dumps({**required.get(method, {}), field: value}).encode()
            assert accepts(method, raw) is allowed, value


def accepts(method: str, raw: bytes) -> bool:
    try:
        decode_params(method, raw)
    except InvalidRequest:
        return False
    return True
