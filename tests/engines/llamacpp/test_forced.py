"""Forced answers on llama.cpp and the starter model, also where their reader rests or leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from plait.engines.base import Finished
from plait.errors import InvalidRequest
from plait.models import ModelStore
from tests.engines.llamacpp.rig import Rig

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

QUESTION = "What will the weather be in Paris?"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo"]}, "days": {"enum": [1, 3, 7]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
CALL_IT = {"type": "function", "function": {"name": "weather"}}
AS_SCHEMA: dict[str, Any] = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}


@pytest.fixture(scope="module")
def loaded() -> Iterator[Rig]:
    model = ModelStore().ensure("smollm2-135m-instruct", "llamacpp")
    assert model.gguf is not None
    rig = Rig(model.gguf, model.tokenizer, slots=2)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    """One engine for all tests of the module; each has to leave it empty."""
    yield loaded
    loaded.finish()
    assert loaded.engine.idle
    stats = loaded.engine.stats()
    assert (stats.slots_used, stats.kv_bytes) == (0, 0)


def reason(rig: Rig, job: int) -> str:
    end = rig.ends[job]
    assert isinstance(end, Finished)
    return end.finish_reason


def is_forecast(text: str) -> bool:
    forecast = json.loads(text)
    return forecast["city"] in ("Paris", "Oslo") and forecast["days"] in (1, 3, 7)


def whole_calls(rig: Rig, job: int) -> list[dict[str, Any]]:
    entries = [entry for item in rig.items[job] for entry in item.get("tool_calls", [])]
    return [entry["function"] for entry in entries if entry.get("complete")]


@pytest.mark.parametrize("temperature", [0, 2.0])
def test_an_answer_of_a_schema_is_of_it_and_ends_by_itself(rig: Rig, temperature: float) -> None:
    job = rig.start(QUESTION, response_format=AS_SCHEMA, temperature=temperature, seed=1)
    rig.finish(job)

    assert reason(rig, job) == "stop"
    assert is_forecast(rig.text(job))


def test_a_tool_that_must_be_called_is_called(rig: Rig) -> None:
    job = rig.start(QUESTION, tools=[WEATHER], tool_choice=CALL_IT)
    rig.finish(job)

    assert reason(rig, job) == "tool_calls"
    assert not any("content" in item for item in rig.items[job])
    (call,) = whole_calls(rig, job)
    assert call["name"] == "weather"
    assert is_forecast(call["arguments"])


def test_one_call_is_enough_where_calls_are_not_parallel(rig: Rig) -> None:
    asked: dict[str, Any] = {"tool_choice": "required", "parallel_tool_calls": False}
    job = rig.start(QUESTION, tools=[WEATHER], **asked)
    rig.finish(job)

    assert reason(rig, job) == "tool_calls"
    assert len(whole_calls(rig, job)) == 1


def test_a_pause_hands_nothing_over_and_loses_nothing(rig: Rig) -> None:
    alone = rig.talk(QUESTION, response_format=AS_SCHEMA)

    job = rig.start(QUESTION, response_format=AS_SCHEMA)
    rig.step_to(job, 3)
    rig.engine.pause(job)
    before = len(rig.items[job])
    rig.step_until_idle()
    rested = len(rig.items[job])
    rig.engine.resume(job)
    rig.finish(job)

    assert rested == before
    assert rig.text(job) == alone
    assert is_forecast(alone)


def test_a_pause_that_ends_at_once_loses_nothing(rig: Rig) -> None:
    alone = rig.talk(QUESTION, response_format=AS_SCHEMA)

    job = rig.start(QUESTION, response_format=AS_SCHEMA)
    for items in (1, 3, 5, 7):
        rig.step_to(job, items)
        rig.engine.pause(job)
        rig.engine.resume(job)
    rig.finish(job)

    assert rig.text(job) == alone


def test_a_rested_answer_that_is_over_holds_no_slot(rig: Rig) -> None:
    jobs = [rig.start(QUESTION, response_format=AS_SCHEMA, seed=seed) for seed in (1, 2)]
    for job in jobs:
        rig.step_to(job, 1)
        rig.engine.pause(job)
    rig.step_until_idle()

    assert rig.engine.stats().slots_used == 0
    assert rig.talk("Say hi.", max_tokens=4)
    for job in jobs:
        rig.engine.resume(job)
    rig.finish(*jobs)
    assert all(is_forecast(rig.text(job)) for job in jobs)


@pytest.mark.parametrize("over", [False, True])
def test_a_cancel_while_resting_gives_everything_back(rig: Rig, over: bool) -> None:
    job = rig.start(QUESTION, response_format={"type": "json_object"}, max_tokens=40)
    rig.step_to(job, 1)
    rig.engine.pause(job)
    if over:
        rig.step_until_idle()
    rig.cancel(job)
    rig.finish(job)

    assert job not in rig.ends


def test_a_schema_that_cannot_be_compiled_is_refused_with_its_field(rig: Rig) -> None:
    wanted = {"type": "json_schema", "json_schema": {"schema": {"type": "forecast"}}}

    with pytest.raises(InvalidRequest) as caught:
        rig.start(QUESTION, response_format=wanted)

    assert caught.value.param == "response_format"
