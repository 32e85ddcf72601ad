"""Tool calls by script: the same deltas as a model's, from the parser that all engines share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plait.engines.base import Event, Finished, Item
from plait.engines.scripted.engine import ScriptedEngine, load
from plait.errors import InvalidRequest
from tests.engines.recording import prepare, scripted_spec

TOOLS = [
    {"type": "function", "function": {"name": "time"}},
    {"type": "function", "function": {"name": "weather"}},
]


class NoFlags:
    def stamp(self, job: int) -> float | None:
        return None


def answer(script: str, **params: Any) -> list[Event]:
    engine: ScriptedEngine = load(scripted_spec(), NoFlags(), lambda phase, percent: None)
    engine.prepare(prepare(1, script, **params))
    engine.start(1)
    events: list[Event] = []
    while not engine.idle:
        events += engine.step()
    return events


def content_of(events: list[Event]) -> str:
    items = [msgspec.json.decode(event.data) for event in events if isinstance(event, Item)]
    return "".join(item.get("content", "") for item in items)


def calls_of(events: list[Event]) -> list[tuple[str, str]]:
    items = [msgspec.json.decode(event.data) for event in events if isinstance(event, Item)]
    entries = [entry for item in items for entry in item.get("tool_calls", [])]
    whole = [entry["function"] for entry in entries if entry.get("complete")]
    return [(function["name"], function["arguments"]) for function in whole]


def reason_of(events: list[Event]) -> str:
    return next(event.finish_reason for event in events if isinstance(event, Finished))


def test_a_scripted_call_comes_after_the_words() -> None:
    events = answer('tokens=2 call=time args={"zone":"UTC"}', tools=TOOLS)

    assert content_of(events) == "w0 w1 "
    assert calls_of(events) == [("time", '{"zone":"UTC"}')]
    assert reason_of(events) == "tool_calls"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", []),
        ("none", []),
        ("required", ["time"]),
        ({"type": "function", "function": {"name": "weather"}}, ["weather"]),
    ],
)
def test_tool_choice_is_obeyed(choice: Any, expected: list[str]) -> None:
    events = answer("tokens=1", tools=TOOLS, tool_choice=choice)

    assert [name for name, _ in calls_of(events)] == expected


def test_several_calls_or_one_as_it_was_asked() -> None:
    several = answer("tokens=0 call=time calls=3", tools=TOOLS)
    one = answer("tokens=0 call=time calls=3", tools=TOOLS, parallel_tool_calls=False)

    assert (len(calls_of(several)), len(calls_of(one))) == (3, 1)


def test_a_call_cut_by_length_is_not_complete() -> None:
    events = answer("tokens=0 call=time", tools=TOOLS, max_tokens=10)

    assert calls_of(events) == []
    assert reason_of(events) == "length"


def test_broken_arguments_are_content() -> None:
    events = answer("tokens=0 call=time args={oops}", tools=TOOLS)

    assert content_of(events).count("oops") == 1
    assert reason_of(events) == "stop"


def test_a_form_of_json_cannot_be_forced_without_a_grammar() -> None:
    with pytest.raises(InvalidRequest) as caught:
        answer("tokens=1", response_format={"type": "json_object"})

    assert caught.value.param == "response_format"
