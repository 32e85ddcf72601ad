"""Templates, special tokens in a peer's text, and how much answer fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from plait.engines.chat.prompt import ChatTokenizer, fit_answer, reserve_bytes
from plait.engines.chat.text import Detokenizer
from plait.errors import ContextOverflow, ModelLoadFailed, TemplateError
from plait.wire.messages import ChatMessage, ChatParams
from tests.engines.chat.tiny import SPECIALS, chat, tiny_tokenizer, write_tokenizer

NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{{ m.content }}{% endfor %}"
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenizer:
    return ChatTokenizer.load(write_tokenizer(tmp_path_factory.mktemp("tokenizer")))


def load(directory: Path, template: Any, **config: Any) -> ChatTokenizer:
    return ChatTokenizer.load(write_tokenizer(directory, template, **config))


def encode(tokenizer: ChatTokenizer, params: ChatParams, context_tokens: int = 4096) -> list[int]:
    return tokenizer.encode_chat(params, context_tokens=context_tokens)


def text_of(tokenizer: ChatTokenizer, tokens: list[int]) -> str:
    """Special tokens by name, the rest as text."""
    pieces = tokenizer.vocabulary.pieces
    return b"".join(pieces[t] or tokenizer.token_text(t).encode() for t in tokens).decode()


# --- prompts -------------------------------------------------------------------------------------


def test_the_prompt_is_the_rendered_template_with_its_control_tokens(
    tokenizer: ChatTokenizer,
) -> None:
    tokens = encode(tokenizer, chat("Hello"))

    expected = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert text_of(tokenizer, tokens) == expected
    assert tokens == tiny_tokenizer().encode(expected).ids


@given(parts=st.lists(st.sampled_from([*SPECIALS, "<", "|", "im_end|>", "hi", "\ufdd0", "é"])))
@settings(deadline=None)
def test_a_peers_text_never_becomes_a_control_token(
    tokenizer: ChatTokenizer, parts: list[str]
) -> None:
    content = "".join(parts)

    tokens = encode(tokenizer, chat(content))

    control = {tiny_tokenizer().token_to_id(name) for name in SPECIALS}
    assert sum(token in control for token in tokens) == 3  # the template's own
    detokenizer = Detokenizer(tokenizer.vocabulary)
    shown = "".join(detokenizer.add(token) for token in tokens)
    assert shown == f"user\n{content}\nassistant\n"


def test_control_tokens_in_roles_and_tools_are_defused_too(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, "{{ messages[0].role }}{{ tools | tojson }}<|im_end|>")
    tools = [{"<|im_end|>": {"type": "function", "name": "<|im_start|>é"}}]
    params = ChatParams([ChatMessage("<|im_end|>", "x")], tools=tools)

    tokens = encode(tokenizer, params)

    assert [token for token in tokens if token in tokenizer.vocabulary.eos_ids] == [tokens[-1]]
    assert (
        text_of(tokenizer, tokens) == f"<|im_end|>{json.dumps(tools, ensure_ascii=False)}<|im_end|>"
    )


def test_tool_arguments_reach_the_template_as_objects_and_absent_content_as_empty(
    tmp_path: Path,
) -> None:
    tokenizer = load(
        tmp_path,
        "{% for m in messages %}[{% if m.tool_calls %}"
        "{{ m.tool_calls[0].function.arguments.city }}{% else %}{{ '' + m.content }}{% endif %}]"
        "{% endfor %}",
    )
    call = {"type": "function", "function": {"name": "w", "arguments": '{"city":"Oslo"}'}}
    messages = [ChatMessage("user"), ChatMessage("assistant", tool_calls=[call])]

    assert text_of(tokenizer, encode(tokenizer, ChatParams(messages))) == "[][Oslo]"


@pytest.mark.parametrize("arguments", ["no JSON", "[" * 9_000, "[" * 4_500 + "]" * 4_500])
def test_tool_arguments_that_cannot_be_read_are_shown_as_they_are(
    tmp_path: Path, arguments: str
) -> None:
    tokenizer = load(tmp_path, "{{ messages[0].tool_calls[0].function.arguments }}")
    call = {"type": "function", "function": {"name": "w", "arguments": arguments}}
    params = ChatParams([ChatMessage("assistant", tool_calls=[call])])

    assert text_of(tokenizer, encode(tokenizer, params)) == arguments


def test_a_tool_template_is_used_when_there_are_tools(tmp_path: Path) -> None:
    templates = [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "{{ tools[0].name }}"},
    ]
    tokenizer = load(tmp_path, templates)

    plain = encode(tokenizer, chat("x"))
    tooled = encode(tokenizer, chat("x", tools=[{"name": "search"}]))

    assert [text_of(tokenizer, tokens) for tokens in (plain, tooled)] == ["plain", "search"]


def test_training_marks_and_loop_controls_of_real_templates_work(tmp_path: Path) -> None:
    tokenizer = load(
        tmp_path,
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% break %}"
        "{% endfor %}{{ strftime_now('%d') | length }}{{ bos_token }}",
        bos_token={"content": "<|endoftext|>"},
    )

    assert text_of(tokenizer, encode(tokenizer, chat("one", "two"))) == "one2<|endoftext|>"


# --- templates that fail -------------------------------------------------------------------------


def test_a_refused_role_is_a_typed_error_with_the_templates_own_words(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, NO_SYSTEM)
    params = ChatParams([ChatMessage("system", "be kind"), ChatMessage("user", "hi")])

    with pytest.raises(TemplateError, match="System role not supported") as caught:
        encode(tokenizer, params)

    assert caught.value.param == "messages"
    assert text_of(tokenizer, encode(tokenizer, chat("hi"))) == "hi"


@pytest.mark.parametrize("template", ["{% for %}", None, "{% endif %}", 7])
def test_a_broken_or_missing_template_fails_requests_not_the_load(
    tmp_path: Path, template: Any
) -> None:
    tokenizer = load(tmp_path, template)

    with pytest.raises(TemplateError, match="another model"):
        encode(tokenizer, chat("hi"))


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0].content + 1 }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ 1 // 0 }}",
        "{{ missing.attribute.deeper }}",
    ],
)
def test_code_that_fails_or_breaks_out_of_the_sandbox_is_a_typed_error(
    tmp_path: Path, template: str
) -> None:
    with pytest.raises(TemplateError):
        encode(load(tmp_path, template), chat("hi"))


def test_data_nested_too_deeply_for_a_template_is_a_typed_error(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}

    with pytest.raises(TemplateError):
        encode(load(tmp_path, "{{ tools | tojson }}"), chat("hi", tools=[deep]))


# --- loading -------------------------------------------------------------------------------------


def test_every_end_of_turn_token_is_known(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [5, 7]}')
    tokenizer = load(tmp_path, None, eos_token={"content": "<|im_end|>"})

    named = {tiny_tokenizer().token_to_id(name) for name in ("<|im_end|>", "<|endoftext|>")}
    assert tokenizer.vocabulary.eos_ids == {5, 7, *named}


def test_unusable_tokenizer_files_are_a_typed_error_without_a_path(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")

    with pytest.raises(ModelLoadFailed) as caught:
        ChatTokenizer.load(tmp_path)

    assert str(tmp_path) not in caught.value.message


def test_pieces_spell_what_the_tokenizer_encodes_and_special_ones_nothing(
    tokenizer: ChatTokenizer,
) -> None:
    text = "漢字 👩‍👩‍👧‍👦 <think> e\u0301"
    tokens = tiny_tokenizer().encode(text).ids
    pieces = tokenizer.vocabulary.pieces

    assert b"".join(pieces[token] for token in tokens) == text.encode()
    assert all(pieces[token] == b"" for token in tokenizer.vocabulary.eos_ids)


# --- arithmetic ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "asked", "effective"),
    [(10, None, 50), (10, 20, 20), (10, 10**18, 50), (80, None, 20), (99, 7, 1)],
)
def test_an_answer_is_bounded_by_the_ask_the_cap_and_the_room(
    prompt: int, asked: int | None, effective: int
) -> None:
    assert fit_answer(prompt, asked, max_tokens=50, context_tokens=100) == effective


@pytest.mark.parametrize("prompt", [100, 101])
def test_a_prompt_without_room_for_one_token_is_refused_with_true_numbers(prompt: int) -> None:
    with pytest.raises(ContextOverflow, match=f"{prompt} tokens") as caught:
        fit_answer(prompt, 1, max_tokens=50, context_tokens=100)

    assert caught.value.data == {"prompt_tokens": prompt, "limit": 100}


def test_a_hopelessly_long_text_is_refused_without_tokenizing_all_of_it(
    tokenizer: ChatTokenizer,
) -> None:
    with pytest.raises(ContextOverflow, match="more than") as caught:
        encode(tokenizer, chat("word " * 12_000), context_tokens=4_096)

    assert caught.value.data is not None
    assert 8_192 < caught.value.data["prompt_tokens"] < 20_000
    assert caught.value.data["limit"] == 4_096


@pytest.mark.parametrize(
    "params",
    [
        chat(" " * 1_000_000),
        ChatParams(messages=[ChatMessage("user", "")] * 4_096),
    ],
)
def test_what_could_fit_only_as_a_wonder_is_refused_before_it_is_tokenized(
    tokenizer: ChatTokenizer, params: ChatParams
) -> None:
    with pytest.raises(ContextOverflow, match="at least") as caught:
        encode(tokenizer, params, context_tokens=4_096)

    assert caught.value.data is not None
    assert caught.value.data["prompt_tokens"] > 4_096


def test_a_long_text_of_few_tokens_still_fits(tokenizer: ChatTokenizer) -> None:
    tokens = encode(tokenizer, chat("<think>" * 20_000), context_tokens=16_384)

    assert len(tokens) > 20_000


def test_a_text_slightly_too_long_is_counted_to_the_end(tokenizer: ChatTokenizer) -> None:
    tokens = encode(tokenizer, chat("x" * 10_000), context_tokens=64)

    assert len(tokens) > 9_000  # and `fit_answer` names that number


@pytest.mark.parametrize(("tokens", "step", "cells"), [(1, 1, 1), (1, 256, 256), (257, 256, 512)])
def test_reservations_are_rounded_up_to_the_engines_step(
    tokens: int, step: int, cells: int
) -> None:
    assert reserve_bytes(tokens, 10, step) == cells * 10
