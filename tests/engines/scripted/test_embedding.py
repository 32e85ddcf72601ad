"""The scripted engine embeds: what a text's vector is, in which frames it comes, and what fails."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from plait.engines.base import (
    Consumed,
    Event,
    Failed,
    Feed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Released,
    Starved,
)
from plait.engines.scripted.embedding import DIMS, MAX_TOKENS, vector
from plait.engines.scripted.engine import ScriptedEngine
from plait.wire.frames import BinaryKind

LONG = "w " * MAX_TOKENS


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(LoadSpec("scripted", "toy", 4, 4096, 1024, method="embed"))


def open_job(engine: ScriptedEngine, texts: list[str] | None, **params: Any) -> None:
    given = {} if texts is None else {"texts": texts}
    engine.prepare(Prepare(1, "embed", {**given, **params}, "test"))
    engine.start(1)


def run(engine: ScriptedEngine) -> list[Event]:
    events: list[Event] = []
    while not engine.idle:
        events += engine.step()
    return events


def test_every_text_has_a_vector_that_can_be_foretold(engine: ScriptedEngine) -> None:
    open_job(engine, ["a", "", "a"])

    *items, finished, released = run(engine)

    expected = [vector("a").tobytes(), vector("").tobytes(), vector("a").tobytes()]
    assert [item.data for item in items if isinstance(item, Item)] == expected
    assert np.linalg.norm(vector("a")) == pytest.approx(1)
    assert finished == Finished(1, "stop", {"texts": 3, "tokens": 8})
    assert isinstance(released, Released)


def test_a_burst_is_one_frame_but_for_what_has_no_vector(engine: ScriptedEngine) -> None:
    open_job(engine, ["burst=4", "b", "nan", "d", "e"])

    items = [event for event in run(engine) if isinstance(event, Item)]

    rows = int(BinaryKind.ROWS)
    assert [(i.kind, i.aux, i.units) for i in items] == [
        (rows, 0, 2),
        (0, 2, 1),
        (rows, 3, 1),
        (rows, 4, 1),
    ]
    assert len(items[0].data) == 2 * DIMS * 4
    assert msgspec.json.decode(items[1].data)["error"]["code"] == "generation_failed"


def test_a_text_too_long_is_an_error_or_cut(engine: ScriptedEngine) -> None:
    open_job(engine, [LONG], encoding="json")
    refused = run(engine)
    open_job(engine, [LONG], encoding="json", truncate=True)
    cut = run(engine)

    answers = [msgspec.json.decode(e.data) for e in (*refused, *cut) if isinstance(e, Item)]
    assert answers[0]["error"]["data"] == {"index": 0, "tokens": 258, "limit": 256}
    assert answers[1]["truncated"] is True
    assert [e.usage for e in (*refused, *cut) if isinstance(e, Finished)] == [
        {"texts": 1, "tokens": 0, "failed": 1},
        {"texts": 1, "tokens": 256, "truncated": 1},
    ]


def test_fed_texts_are_consumed_as_they_are_answered(engine: ScriptedEngine) -> None:
    open_job(engine, None)

    assert run(engine) == [Starved(1)]
    engine.feed(Feed(1, texts=["burst=2 ö", "b"]))
    events = run(engine)
    engine.finish_input(1)

    assert events[0] == Consumed(1, len("burst=2 ö".encode()) + 1 + 32)
    assert isinstance(events[-1], Starved)
    assert any(isinstance(event, Finished) for event in run(engine))


def test_a_failure_comes_after_as_many_texts_as_the_script_says(engine: ScriptedEngine) -> None:
    open_job(engine, ["burst=10 fail_at=3", *"abcdef"])

    events = run(engine)

    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.usage["texts"] == 3
    assert sum(event.units for event in events if isinstance(event, Item)) == 3


def test_a_script_counts_only_as_the_first_text(engine: ScriptedEngine) -> None:
    open_job(engine, ["a", "fail_at=1", "b"])

    assert not any(isinstance(event, Failed) for event in run(engine))
