"""Tools in prompts, and calls in answers, from params to items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plait.engines.chat.calls import CallParser
from plait.engines.chat.dialects import HERMES, MARKS, dialect_of
from plait.engines.chat.prompt import ChatTokenizer
from plait.engines.chat.text import AnswerText, Delta, Vocabulary
from plait.wire.messages import ChatMessage, ChatParams
from tests.engines.chat.tiny import CHATML, write_tokenizer

TIME = {"type": "function", "function": {"name": "time", "description": "The time of day"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "time", "arguments": '{"a": 1}'}}
WITH_TOOLS = "{% if tools %}TOOLS {{ tools | tojson }} {% endif %}" + CHATML
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
)


def prompt(directory: Path, template: str, params: ChatParams) -> str:
    tokenizer = ChatTokenizer.load(write_tokenizer(directory, template))
    tokens = tokenizer.encode_chat(params, context_tokens=8192)
    pieces = tokenizer.vocabulary.pieces
    return b"".join(pieces[token] for token in tokens).decode()


def asking(*messages: ChatMessage, **params: Any) -> ChatParams:
    return ChatParams(list(messages or [ChatMessage("user", "Hi")]), tools=[TIME], **params)


# --- prompts ---------------------------------------------------------------------------------


def test_a_template_with_tools_is_told_of_them_and_nothing_is_added(tmp_path: Path) -> None:
    text = prompt(tmp_path, WITH_TOOLS, asking())

    assert text.startswith(f"TOOLS {json.dumps([TIME])} ")
    assert "<tools>" not in text


@pytest.mark.parametrize("template", [WITH_TOOLS, CHATML])
def test_tools_that_must_not_be_called_are_not_shown(tmp_path: Path, template: str) -> None:
    text = prompt(tmp_path, template, asking(tool_choice="none"))

    assert text == "user\nHi\nassistant\n"


def test_a_template_without_tools_is_told_of_them_by_the_system(tmp_path: Path) -> None:
    system = ChatMessage("system", "Be brief.")
    text = prompt(tmp_path, CHATML, asking(system, ChatMessage("user", "Hi")))

    assert text.startswith("system\nBe brief.\n\n")
    assert f"<tools>\n{json.dumps(TIME)}\n</tools>" in text
    assert text.endswith("user\nHi\nassistant\n")


def test_without_a_system_message_one_is_made(tmp_path: Path) -> None:
    text = prompt(tmp_path, CHATML, asking())

    assert text.startswith("system\n")
    assert "<tool_call>" in text


def test_where_the_system_has_no_role_the_first_message_tells(tmp_path: Path) -> None:
    text = prompt(tmp_path, NO_SYSTEM, asking())

    assert text.startswith("user: ")
    assert text.index("<tools>") < text.index("Hi")


def test_calls_and_results_become_text_where_the_template_leaves_them_out(tmp_path: Path) -> None:
    said = ChatMessage("assistant", None, tool_calls=[CALL])
    result = ChatMessage("tool", "noon", tool_call_id="c1")
    text = prompt(tmp_path, CHATML, ChatParams([ChatMessage("user", "Hi"), said, result]))

    assert 'assistant\n<tool_call>\n{"name": "time", "arguments": {"a": 1}}\n</tool_call>' in text
    assert "user\n<tool_response>\nnoon\n</tool_response>" in text


# --- answers ---------------------------------------------------------------------------------

WORDS = ["Well, ", "<tool_call>", '{"name": "time", ', '"arguments": {', "}}", "</tool_call>", "x"]
EOS = len(WORDS)


def answer(max_tokens: int = 20, *, parallel: bool = True) -> AnswerText:
    vocabulary = Vocabulary([word.encode() for word in WORDS], frozenset({EOS}))
    calls = CallParser(HERMES, frozenset({"time"}), parallel=parallel, new_id=lambda: "id")
    return AnswerText(vocabulary, [], max_tokens, calls)


def items(deltas: list[Delta | None]) -> list[dict[str, Any]]:
    return [json.loads(delta.data) for delta in deltas if delta is not None]


def test_an_answer_that_calls_ends_as_such() -> None:
    said = answer()
    given = items([said.add(token) for token in (0, 1, 2, 3, 4, 5, EOS)])

    assert [item.get("content") for item in given] == ["Well, ", None, None]
    assert given[-1]["tool_calls"][-1]["complete"] is True
    assert said.finish_reason == "tool_calls"
    assert not said.stop_string


def test_tokens_of_markup_count_with_the_next_item() -> None:
    said = answer()
    deltas = [said.add(token) for token in (1, 2, 3, 4, 5, EOS)]

    assert [delta.tokens for delta in deltas if delta is not None] == [3, 1]


def test_an_answer_cut_in_a_call_ends_by_length() -> None:
    said = answer(max_tokens=3)
    given = items([said.add(token) for token in (1, 2, 3)])

    assert said.finish_reason == "length"
    assert not any(entry.get("complete") for item in given for entry in item["tool_calls"])


def test_the_one_call_that_was_asked_for_ends_the_answer_before_the_engine_does() -> None:
    said = answer(parallel=False)
    for token in (1, 2, 3, 4):
        said.add(token)

    assert said.finish_reason == "tool_calls"
    assert said.stop_string


def test_markup_that_is_a_special_token_is_seen_and_not_shown() -> None:
    special = frozenset({"[TOOL_CALLS]"})
    mark = MARKS["[TOOL_CALLS]"].encode()
    words = [b"", b'[{"name": "time", "arguments": {}}]', b" Done."]
    vocabulary = Vocabulary(words, frozenset({9}), marks={0: mark})
    calls = CallParser(dialect_of("tools", special), frozenset({"time"}))
    said = AnswerText(vocabulary, [], 20, calls)

    given = items([said.add(token) for token in (0, 1, 2, 9)])

    assert "".join(item.get("content", "") for item in given) == " Done."
    assert said.finish_reason == "tool_calls"


def test_the_same_token_is_nothing_to_an_answer_without_tools() -> None:
    vocabulary = Vocabulary([b"", b"a"], frozenset({9}), marks={0: "\ufdd0".encode()})
    said = AnswerText(vocabulary, [], 20)

    assert items([said.add(token) for token in (0, 1, 9)]) == [{"content": "a"}]
