"""Draws are a function of logits, params, seed and index; errors stay with their row."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from plait.engines.mlx import blas
from plait.wire.messages import ChatMessage, ChatParams

if "mlx.core" not in sys.modules:
    blas.preload()

import mlx.core as mx

from plait.engines.mlx.sampling import RowSampling, greedy, keep_top_k, keep_top_p

pytestmark = pytest.mark.model

CHANCES = [0.05, 0.4, 0.25, 0.3]
MESSAGES = [ChatMessage("user", "hi")]


def logprobs(chances: list[float] = CHANCES) -> Any:
    return mx.log(mx.array([chances]))


def kept(row: Any) -> list[int]:
    return [token for token, value in enumerate(row[0].tolist()) if value != -math.inf]


def draws(count: int, **params: Any) -> list[int]:
    sampling = RowSampling(ChatParams(MESSAGES, **params))
    return [sampling.sampler(logprobs()).item() for _ in range(count)]


def test_top_k_keeps_the_likeliest() -> None:
    assert kept(keep_top_k(logprobs(), 2)) == [1, 3]


@pytest.mark.parametrize(
    ("top_p", "tokens"),
    [(1e-300, [1]), (0.3, [1]), (0.5, [1, 3]), (0.8, [1, 2, 3]), (0.99, [0, 1, 2, 3])],
)
def test_top_p_keeps_the_smallest_set_that_holds_the_probability(
    top_p: float, tokens: list[int]
) -> None:
    assert kept(keep_top_p(logprobs(), top_p)) == tokens


def test_each_filter_bounds_what_is_drawn() -> None:
    plain = {"temperature": 1.0, "top_p": 1.0, "seed": 1}

    assert set(draws(100, **plain)) == {0, 1, 2, 3}
    assert set(draws(100, **plain | {"top_k": 2})) == {1, 3}
    assert set(draws(100, **plain | {"min_p": 0.5})) == {1, 2, 3}
    assert set(draws(100, **plain | {"top_p": 0.5})) == {1, 3}
    assert set(draws(100, **plain | {"top_k": 2**31 - 1})) == {0, 1, 2, 3}


@pytest.mark.parametrize("temperature", [0.0, 1e-320, 5e-5])
def test_a_temperature_of_about_zero_is_greedy(temperature: float) -> None:
    sampling = RowSampling(ChatParams(MESSAGES, temperature=temperature))

    assert sampling.sampler is greedy
    assert sampling.sampler(logprobs()).item() == 1


def test_draws_follow_the_probabilities() -> None:
    drawn = draws(2000, temperature=1.0, top_p=1.0, seed=3)

    for token, chance in enumerate(CHANCES):
        assert abs(drawn.count(token) / 2000 - chance) < 0.05


def test_a_draw_depends_on_nothing_but_seed_and_index() -> None:
    params = ChatParams(MESSAGES, temperature=1.0, top_p=1.0, seed=2**32 - 1)
    whole = RowSampling(params)
    expected = [whole.sampler(logprobs()).item() for _ in range(20)]

    resumed = RowSampling(params)
    resumed.drawn = 12

    assert [resumed.sampler(logprobs()).item() for _ in range(8)] == expected[12:]


def test_unseeded_rows_draw_differently() -> None:
    assert draws(40, temperature=1.0) != draws(40, temperature=1.0)


def test_a_penalty_makes_what_was_said_less_likely() -> None:
    sampling = RowSampling(ChatParams(MESSAGES, repetition_penalty=2.0))
    (processor,) = sampling.processors

    changed = processor(mx.array([1, 1, 3]), mx.array([[1.0, 2.0, 3.0, -4.0]]))

    assert changed.tolist() == [[1.0, 1.0, 3.0, -8.0]]


def test_an_error_while_drawing_stays_with_its_row() -> None:
    beyond = ChatParams(MESSAGES, temperature=1.0, seed=2**70)  # validation would refuse it
    sampling = RowSampling(beyond)

    token = sampling.sampler(logprobs())

    assert token.item() == 1
    assert sampling.error is not None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere mlx brings its own kernels")
def test_on_linux_a_fast_blas_is_loaded() -> None:
    assert "/libopenblas" in Path("/proc/self/maps").read_text()
