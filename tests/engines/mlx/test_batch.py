"""The order in which an mlx batch reads prompts: nobody waits for longer ones only."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from plait.wire.messages import ChatMessage, ChatParams
from tests.engines.mlx.tiny import build_tiny_model

pytestmark = pytest.mark.model

GREEDY = ChatParams([ChatMessage("user", "")], temperature=0)
MOST_STEPS = 500


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from mlx_lm.utils import load_model

    directory: Path = build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))
    return load_model(directory)[0]


class Reading:
    """A batch whose steps seem to take a second, so that chunks stay small, and what came out."""

    def __init__(self, model: Any) -> None:
        from plait.engines.mlx.batch import Batch

        self.batch = Batch(model, 8, [], clock=map(float, count()).__next__)
        self.said: dict[int, list[int]] = {}

    def insert(self, first: int, tokens: int) -> Any:
        from plait.engines.mlx.batch import Row
        from plait.engines.mlx.sampling import RowSampling

        prompt = [first, *(index % 97 for index in range(tokens - 1))]
        row = Row(prompt, [], 6, RowSampling(GREEDY))
        self.said[id(row)] = row.produced
        self.batch.insert(row)
        return row

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            for token in self.batch.step():
                token.row.produced.append(token.token)

    def steps_until_said(self, row: Any) -> int:
        for steps in range(1, MOST_STEPS):
            self.step()
            if row.produced:
                return steps
        raise AssertionError("it says nothing")

    def finish(self) -> None:
        for _ in range(MOST_STEPS):
            if not len(self.batch):
                return
            self.step()


def test_a_short_prompt_passes_long_ones_that_take_all_places(model: Any) -> None:
    reading = Reading(model)
    long = [reading.insert(first, 800) for first in (1, 2, 3)]
    reading.step(4)

    short = reading.insert(4, 10)

    assert reading.steps_until_said(short) <= 3
    assert [row.produced for row in long] == [[], [], []]
    reading.finish()


def test_prompts_that_let_others_pass_are_answered_as_if_they_had_not(model: Any) -> None:
    sizes = [(1, 500), (2, 400), (3, 300), (4, 12)]
    alone = []
    for first, tokens in sizes:
        reading = Reading(model)
        row = reading.insert(first, tokens)
        reading.finish()
        alone.append(row.produced)

    reading = Reading(model)
    rows = []
    for first, tokens in sizes:
        rows.append(reading.insert(first, tokens))
        reading.step(3)
    reading.finish()

    assert [row.produced for row in rows] == alone
    assert all(len(row.produced) == 6 for row in rows)


def test_long_prompts_are_read_on_while_short_ones_keep_coming(model: Any) -> None:
    reading = Reading(model)
    long = [reading.insert(first, 300) for first in (1, 2)]
    reading.step(2)

    for number in range(40):
        reading.insert(10 + number, 20)
        reading.step(2)
        if any(row.produced for row in long):
            break

    assert any(row.produced for row in long)
    reading.finish()
    assert all(len(row.produced) == 6 for row in long)
