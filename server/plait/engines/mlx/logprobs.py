"""Reads numbers out of a row's log-probabilities without waiting for the step under way.

The next step already runs on the generator's stream, in order; these reads go to a stream of their
own on the CPU, where the evaluated arrays are visible too. Plain numbers come out: an array that
crosses a process border would carry its whole vocabulary along. Knows no jobs and no sampling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from plait.engines.mlx.batch import Token


class LogprobReader:
    """`token_text` names a token id for the peer."""

    def __init__(self, token_text: Callable[[int], str]) -> None:
        self._token_text = token_text
        self._stream = mx.new_stream(mx.cpu)

    def chosen(self, tokens: list[Token]) -> list[float]:
        """Log-probability of each sampled token; NaN where the model gave no distribution."""
        if not tokens:
            return []
        with mx.stream(self._stream):
            picked = mx.stack([token.logprobs[token.token] for token in tokens])
            return _floats(picked.astype(mx.float32))

    def describe(self, token: Token, logprob: float, top: int) -> dict[str, Any]:
        """The `logprobs` entry of an item: the token and the `top` likeliest in its place."""
        return {
            "token": self._token_text(token.token),
            "logprob": logprob,
            "top": [
                {"token": self._token_text(other), "logprob": value}
                for other, value in self._likeliest(token.logprobs, top)
            ],
        }

    def _likeliest(self, logprobs: Any, top: int) -> list[tuple[int, float]]:
        if top == 0:
            return []
        with mx.stream(self._stream):
            ids = mx.argpartition(-logprobs, kth=top - 1)[:top]
            values = _floats(logprobs[ids].astype(mx.float32))
            pairs = zip(map(int, _floats(ids)), values, strict=True)
        return sorted(pairs, key=lambda pair: -pair[1])


def _floats(array: Any) -> list[float]:
    values: list[float] = array.tolist()
    return values
