"""Tool calls out of text: every family, any cut of the text, and what is no call after all."""

from __future__ import annotations

import itertools
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from plait.engines.chat.calls import CallParser, Said, new_call_id
from plait.engines.chat.dialects import HERMES, LLAMA, MARKS, MISTRAL, UNKNOWN, Dialect, dialect_of

NAMES = frozenset({"time", "weather"})
DIALECTS = [HERMES, LLAMA, MISTRAL, UNKNOWN]


class Answer(NamedTuple):
    content: str
    calls: list[tuple[str, Any]]  # complete ones: name, arguments
    entries: list[dict[str, Any]]  # with the arguments of a call joined
    parser: CallParser


def parser(dialect: Dialect, *, parallel: bool = True) -> CallParser:
    numbers = itertools.count(1)
    return CallParser(dialect, NAMES, parallel=parallel, new_id=lambda: f"id{next(numbers)}")


def parse(dialect: Dialect, *pieces: str, cut: bool = False, parallel: bool = True) -> Answer:
    reader = parser(dialect, parallel=parallel)
    said = [*(reader.add(piece) for piece in pieces), reader.finish("", cut=cut)]
    entries = joined(said)
    whole = [entry["function"] for entry in entries if entry.get("complete")]
    calls = [(function["name"], json.loads(function["arguments"])) for function in whole]
    return Answer("".join(part.content for part in said), calls, entries, reader)


def joined(said: list[Said]) -> list[dict[str, Any]]:
    """Entries, with consecutive pieces of arguments as one."""
    entries: list[dict[str, Any]] = []
    for entry in itertools.chain.from_iterable(part.tool_calls for part in said):
        is_piece = entry.keys() == {"index", "function"}
        if is_piece and entries and entries[-1].keys() == entry.keys():
            before = entries[-1]["function"]["arguments"]
            arguments = before + entry["function"]["arguments"]
            entries[-1] = {**entry, "function": {"arguments": arguments}}
        else:
            entries.append(entry)
    return entries


def hermes(name: str, arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


# --- the families ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (HERMES, hermes("time", {"zone": "UTC"})),
        (HERMES, '<tool_call>[{"name": "time", "arguments": {"zone": "UTC"}}]</tool_call>'),
        (HERMES, '<tool_call>{"arguments": {"zone": "UTC"}, "name": "time"}'),
        (HERMES, '<tool_call>{"name": "time", "arguments": "{\\"zone\\": \\"UTC\\"}"}</tool_call>'),
        (LLAMA, '{"name": "time", "parameters": {"zone": "UTC"}}'),
        (
            LLAMA,
            '<|python_tag|>{"type": "function", "name": "time", "parameters": {"zone": "UTC"}}',
        ),
        (MISTRAL, '[TOOL_CALLS][{"name": "time", "arguments": {"zone": "UTC"}, "id": "a1"}]'),
        (MISTRAL, '[TOOL_CALLS]time[ARGS]{"zone": "UTC"}'),
        (MISTRAL, '[TOOL_CALLS]time[CALL_ID]abcdefghi[ARGS]{"zone": "UTC"}'),
        (UNKNOWN, '{"name": "time", "arguments": {"zone": "UTC"}}'),
        (UNKNOWN, hermes("time", {"zone": "UTC"})),
    ],
)
def test_each_family_writes_a_call_its_way(dialect: Dialect, text: str) -> None:
    answer = parse(dialect, text)

    assert answer.content == ""
    assert answer.calls == [("time", {"zone": "UTC"})]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (HERMES, hermes("time", {"n": 1}) + "\n" + hermes("weather", {})),
        (LLAMA, '{"name":"time","parameters":{"n":1}}; {"name":"weather","parameters":{}}'),
        (MISTRAL, '[TOOL_CALLS][{"name":"time","arguments":{"n":1}}, {"name":"weather"}]'),
        (MISTRAL, '[TOOL_CALLS]time[ARGS]{"n":1}[TOOL_CALLS]weather[ARGS]{}'),
    ],
)
def test_one_answer_may_hold_several_calls(dialect: Dialect, text: str) -> None:
    answer = parse(dialect, text)

    assert answer.content == ""
    assert answer.calls == [("time", {"n": 1}), ("weather", {})]
    assert [entry["index"] for entry in answer.entries] == [0, 0, 0, 1, 1, 1]


def test_a_call_begins_goes_on_and_is_told_whole() -> None:
    reader = parser(HERMES)
    begun = reader.add('Let me see. <tool_call>{"name": "time", "arguments": {"zo')
    on = reader.add('ne": "U')
    end = reader.add('TC"}}')

    call = {"index": 0, "id": "id1", "type": "function"}
    assert begun.content == "Let me see. "
    assert begun.tool_calls == [
        {**call, "function": {"name": "time"}},
        {"index": 0, "function": {"arguments": '{"zo'}},
    ]
    assert on == Said("", [{"index": 0, "function": {"arguments": 'ne": "U'}}])
    whole = {"name": "time", "arguments": '{"zone": "UTC"}'}
    assert end.tool_calls[-1] == {**call, "function": whole, "complete": True}


def test_text_around_calls_is_content_and_space_at_their_borders_is_not() -> None:
    text = f"\n{hermes('time', {})}\n\n{hermes('weather', {})}\nThat is all.\n"

    assert parse(HERMES, text).content == "\nThat is all.\n"


def test_only_what_may_be_markup_is_held_back() -> None:
    reader = parser(HERMES)

    assert reader.add("a < b <tool").content == "a < b "
    assert reader.add("s>").content == "<tools>"


def test_without_parallel_calls_the_first_one_ends_the_answer() -> None:
    answer = parse(HERMES, hermes("time", {}), hermes("weather", {}), "more", parallel=False)

    assert answer.calls == [("time", {})]
    assert answer.content == ""
    assert answer.parser.done


# --- what is no call -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (HERMES, "<tool_call>not JSON</tool_call> and on"),
        (HERMES, '<tool_call>{"name": "fly", "arguments": {}}</tool_call>'),
        (HERMES, '<tool_call>{"name": "time", "arguments": {"zone": nope}}</tool_call>'),
        (HERMES, '<tool_call>{"name": "time", "arguments": {"a": 1]}</tool_call>'),
        (HERMES, '<tool_call>{"name": "time", "arguments": 5}</tool_call>'),
        (HERMES, '<tool_call>{"name": "time", "arguments": {"a": "\\ud800"}}</tool_call>'),
        (HERMES, '<tool_call>{"name": "time", "arguments": {"a": ' + "[" * 80 + "]" * 80 + "}}"),
        (HERMES, '<tool_call>{"name": "time", "argu'),
        (HERMES, "a <tool_"),
        (LLAMA, '{"name": "Ada", "age": 36}'),
        (LLAMA, '{"city": "Oslo", "name": "time", "parameters": {}}'),
        (LLAMA, '{"name": "time"}'),
        (LLAMA, 'Like this: {"name": "time", "parameters": {}}'),
        (MISTRAL, "[TOOL_CALLS]fly[ARGS]{}"),
        (MISTRAL, "[TOOL_CALLS]a name longer than any tool has"),
        (UNKNOWN, "[1, 2, 3]"),
        (HERMES, " \n"),
    ],
)
def test_what_is_no_call_is_content_to_the_last_character(dialect: Dialect, text: str) -> None:
    answer = parse(dialect, text)

    assert answer.content == text
    assert answer.calls == []


def test_a_broken_call_costs_its_index_and_nothing_that_follows() -> None:
    broken = '<tool_call>{"name": "time", "arguments": {"zone": nope}}</tool_call>'

    answer = parse(HERMES, broken + hermes("weather", {}))

    assert answer.content == broken
    assert answer.calls == [("weather", {})]
    assert answer.entries[-1]["index"] == 1


@pytest.mark.parametrize("length", range(12, 60))
def test_a_call_cut_by_length_is_neither_shown_nor_complete(length: int) -> None:
    answer = parse(HERMES, hermes("time", {"zone": "Europe/Oslo"})[:length], cut=True)

    assert answer.content == ""
    assert answer.calls == []
    assert answer.parser.cut


def test_a_special_token_is_never_shown() -> None:
    special = frozenset({"<|python_tag|>"})
    dialect = dialect_of("tools", special)
    mark = MARKS["<|python_tag|>"]

    answer = parse(dialect, f"{mark}print(1)")

    assert dialect.opener == mark
    assert answer.content == "print(1)"


def test_an_id_is_one_that_every_template_takes() -> None:
    ids = {new_call_id() for _ in range(50)}

    assert len(ids) == 50
    assert all(len(id) == 9 and id.isalnum() for id in ids)


# --- which family ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "special", "expected"),
    [
        (None, (), HERMES),
        ("{{ tools }} <tool_call>", (), HERMES),
        ("{{ tools }} [TOOL_CALLS]", (), MISTRAL),
        ("{{ tools }} <|python_tag|>", (), LLAMA),
        ("{{ tools }}", ("<|python_tag|>",), LLAMA._replace(opener=MARKS["<|python_tag|>"])),
        ("{{ tools }}", (), UNKNOWN),
    ],
)
def test_the_template_or_the_vocabulary_tells_the_family(
    template: str | None, special: tuple[str, ...], expected: Dialect
) -> None:
    assert dialect_of(template, frozenset(special)) == expected


# --- any text, any cut -----------------------------------------------------------------------

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(), values, max_size=4)
MARKUP = '<tool_call> </tool_call> <tool [TOOL_CALLS] [ARGS] <|python_tag|> < { } [ ] " \\ , : ; a'
noise = st.sampled_from([
    *MARKUP.split(), "\n", " ", "time", '{"name": "time", ', '"arguments": ', '"parameters": {}',
    '{"name": "time", "arguments": {}}', *MARKS.values(),
])  # fmt: skip


@st.composite
def cut_texts(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    text = draw(texts)
    borders = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[a:b] for a, b in itertools.pairwise([0, *borders, len(text)])]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(pieces=cut_texts(st.lists(noise, max_size=20).map("".join)), cut=st.booleans())
@settings(deadline=None)
def test_no_cut_of_the_text_changes_what_comes_of_it(
    dialect: Dialect, pieces: list[str], cut: bool
) -> None:
    whole, parts = parse(dialect, "".join(pieces), cut=cut), parse(dialect, *pieces, cut=cut)

    assert parts[:3] == whole[:3]
    assert parts.parser.cut == whole.parser.cut
    assert not set(parts.content) & set(MARKS.values())


@pytest.mark.parametrize("ascii_only", [True, False])
@given(data=st.data(), wanted=arguments, before=st.sampled_from(["", "Well, ", "a < b"]))
@settings(deadline=None)
def test_arguments_of_any_json_come_out_as_they_went_in(
    ascii_only: bool, data: st.DataObject, wanted: dict[str, Any], before: str
) -> None:
    body = json.dumps({"name": "time", "arguments": wanted}, ensure_ascii=ascii_only)
    pieces = data.draw(cut_texts(st.just(f"{before}<tool_call>{body}</tool_call>")))

    answer = parse(HERMES, *pieces)

    assert answer.content == before
    assert answer.calls == [("time", wanted)]
    begun, arguments_joined, whole = answer.entries
    assert begun["function"] == {"name": "time"}
    assert arguments_joined["function"]["arguments"] == whole["function"]["arguments"]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=st.text())
@settings(deadline=None)
def test_text_without_markup_is_not_touched(dialect: Dialect, text: str) -> None:
    shown = "".join(char for char in text if char not in MARKS.values())

    assert parse(dialect, *text).content == shown
