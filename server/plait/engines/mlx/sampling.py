"""How one row of an mlx batch picks its tokens: a pure function of logits, params, seed and index.

Draw number n of a job uses the random key (seed, n), so a row that was paused, resumed or computed
anew draws the same tokens, and no generator state needs saving. An error in a row's sampling is
kept on that row and never reaches the batch, which would lose every row's tokens of that step.
Plain mlx operations only: mlx-lm's samplers are compiled per value of temperature or top_p, and on
a CPU every new value would start a C++ compiler (1-2 s) in the middle of everybody's answers.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx_lm.sample_utils import make_repetition_penalty

from plait.wire.messages import ChatParams

COLDEST = 1e-4  # below, dividing by the temperature overflows; the draw is the maximum anyway
PENALTY_TOKENS = 64  # how far back repetition_penalty looks, prompt included; llama.cpp's default

Sampler = Callable[[Any], Any]
Processor = Callable[[Any, Any], Any]


def greedy(logprobs: Any) -> Any:
    """One object for all greedy rows: a batch that shares its sampler samples in one call."""
    return mx.argmax(logprobs, axis=-1)


class RowSampling:
    """The sampler and logits processors of one row, and the first error either raised.

    `drawn` is the index of the next draw; whoever re-inserts a row sets it to the number of
    tokens the row has produced.
    """

    def __init__(self, params: ChatParams, forced: Processor | None = None) -> None:
        """`forced`: takes the tokens out that a grammar forbids; it may raise."""
        self.drawn = 0
        self.error: Exception | None = None
        self._seed = secrets.randbits(32) if params.seed is None else params.seed
        self._draw: Sampler = _drawing(params, self._key)
        self._penalty: Processor | None = None
        if params.repetition_penalty != 1.0:
            self._penalty = make_repetition_penalty(params.repetition_penalty, PENALTY_TOKENS)
        self._forced = forced
        self._greedy = params.temperature < COLDEST

    @property
    def sampler(self) -> Sampler:
        return greedy if self._greedy else self._sample

    @property
    def processors(self) -> list[Processor]:
        return [self._process] if self._penalty or self._forced else []

    def _key(self) -> Any:
        key = mx.array([self._seed, self.drawn], dtype=mx.uint32)
        self.drawn += 1
        return key

    def _sample(self, logprobs: Any) -> Any:
        try:
            return self._draw(logprobs)
        except Exception as error:  # noqa: BLE001 - kept: the adapter fails this row with it
            self.error = self.error or error
            return greedy(logprobs)

    def _process(self, tokens: Any, logits: Any) -> Any:
        try:
            for process in (self._penalty, self._forced):
                logits = logits if process is None else process(tokens, logits)
        except Exception as error:  # noqa: BLE001 - kept: the adapter fails this row with it
            self.error = self.error or error
        return logits


def _drawing(params: ChatParams, next_key: Callable[[], Any]) -> Sampler:
    """llama.cpp's order: top_k, top_p, min_p, and the temperature last."""

    def draw(logprobs: Any) -> Any:
        """(1, vocabulary) log-probabilities -> (1,) token."""
        logprobs = logprobs.astype(mx.float32)
        if 0 < params.top_k < logprobs.shape[-1]:
            logprobs = keep_top_k(logprobs, params.top_k)
        if params.top_p < 1.0:
            logprobs = keep_top_p(logprobs, params.top_p)
        if params.min_p > 0.0:
            least = mx.max(logprobs, axis=-1, keepdims=True) + mx.log(mx.array(params.min_p))
            logprobs = _keep_from(logprobs, least)
        return mx.random.categorical(logprobs * (1.0 / params.temperature), key=next_key())

    return draw


def keep_top_k(logprobs: Any, top_k: int) -> Any:
    """Only the k likeliest stay (and those tied with the last of them)."""
    least = mx.min(mx.topk(logprobs, top_k, axis=-1), axis=-1, keepdims=True)
    return _keep_from(logprobs, least)


def keep_top_p(logprobs: Any, top_p: float) -> Any:
    """The smallest set of likeliest tokens that holds `top_p` of the probability left."""
    ascending = mx.sort(logprobs, axis=-1)
    chances = mx.exp(ascending)
    likelier = mx.cumsum(chances, axis=-1, reverse=True, inclusive=False)
    total = likelier[..., :1] + chances[..., :1]
    dropped = (likelier >= top_p * total).sum(axis=-1, keepdims=True)
    dropped = mx.minimum(dropped, ascending.shape[-1] - 1)  # a top_p that float32 takes for 0
    return _keep_from(logprobs, mx.take_along_axis(ascending, dropped, axis=-1))


def _keep_from(logprobs: Any, least: Any) -> Any:
    return mx.where(logprobs < least, -float("inf"), logprobs)
