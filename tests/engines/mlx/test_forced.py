"""Forced answers on mlx: a random model, which would never say so by itself, obeys the grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from plait.engines.base import Finished
from plait.errors import InvalidRequest
from tests.engines.mlx.tiny import Rig, build_tiny_model, make_rig

pytestmark = pytest.mark.model

COLOURS = ["red", "green", "blue"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "colour": {"enum": COLOURS},
        "parts": {"type": "array", "items": {"type": "boolean"}, "minItems": 6, "maxItems": 6},
    },
    "required": ["colour", "parts"],
    "additionalProperties": False,
}
PAINT = {"type": "function", "function": {"name": "paint", "parameters": SCHEMA}}
AS_SCHEMA = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = make_rig(build_tiny_model(tmp_path_factory.mktemp("tiny-mlx")))
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    yield loaded
    loaded.finish()
    assert loaded.engine.stats().slots_used == 0


def reason(rig: Rig, job: int) -> str:
    end = rig.ends[job]
    assert isinstance(end, Finished)
    return end.finish_reason


def calls(rig: Rig, job: int) -> list[dict[str, Any]]:
    entries = [entry for item in rig.items[job] for entry in item.get("tool_calls", [])]
    return [entry["function"] for entry in entries if entry.get("complete")]


def is_painting(text: str) -> bool:
    painting = json.loads(text)
    return painting["colour"] in COLOURS and len(painting["parts"]) == 6


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_an_answer_of_a_schema_is_of_it_and_ends_by_itself(rig: Rig, temperature: float) -> None:
    job = rig.start("x", response_format=AS_SCHEMA, temperature=temperature, seed=1)
    rig.finish()

    assert reason(rig, job) == "stop"
    assert is_painting(rig.text(job))


def test_a_tool_that_must_be_called_is_called(rig: Rig) -> None:
    choice = {"type": "function", "function": {"name": "paint"}}
    job = rig.start("x", tools=[PAINT], tool_choice=choice, temperature=1, seed=2)
    rig.finish()

    assert reason(rig, job) == "tool_calls"
    assert not any("content" in item for item in rig.items[job])
    (call,) = calls(rig, job)
    assert call["name"] == "paint"
    assert is_painting(call["arguments"])


def test_a_forced_answer_goes_on_after_a_pause_as_if_nothing_had_been(rig: Rig) -> None:
    asked: dict[str, Any] = {"response_format": AS_SCHEMA, "temperature": 1.2, "seed": 3}
    alone = rig.talk("x", **asked)

    job = rig.start("x", **asked)
    for items in (3, 9, 20):
        rig.step_to(job, items)
        rig.engine.pause(job)
        rig.step()
        rig.engine.resume(job)
    rig.finish()

    assert rig.text(job) == alone
    assert is_painting(alone)


def test_free_and_forced_answers_share_a_batch(rig: Rig) -> None:
    alone = rig.talk("free", max_tokens=30)

    forced = rig.start("x", response_format=AS_SCHEMA)
    free = rig.start("free", max_tokens=30)
    rig.finish()

    assert rig.text(free) == alone
    assert is_painting(rig.text(forced))


def test_a_schema_that_cannot_be_compiled_is_refused_with_its_field(rig: Rig) -> None:
    wanted = {"type": "json_schema", "json_schema": {"schema": {"type": "colour"}}}

    with pytest.raises(InvalidRequest) as caught:
        rig.prepare("x", response_format=wanted)

    assert caught.value.param == "response_format"
