"""Makes one row of an mlx batch obey a grammar: which tokens may come next, by llguidance.

A pure function of the row's tokens, like its sampling: after a pause, or in a batch computed anew,
the row is followed from its tokens again. It has to know the last token before the next logits are
done, so a forced row costs its batch the running ahead. Knows no text and no jobs.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from plait.errors import GenerationFailed


class GrammarTokens:
    """A model's vocabulary as llguidance reads it, which takes a moment: once per model."""

    def __init__(self, tokenizer_json: str, eos_ids: frozenset[int]) -> None:
        from llguidance import LLTokenizer

        self.eos_ids = eos_ids
        self.tokens = LLTokenizer(tokenizer_json, eos_token=sorted(eos_ids))


class Forced:
    """A logits processor; raises `GenerationFailed` when the grammar is too complex to go on."""

    def __init__(self, vocabulary: GrammarTokens, grammar: str, prompt_tokens: int) -> None:
        from llguidance import LLMatcher

        self._eos_ids = vocabulary.eos_ids
        self._prompt_tokens = prompt_tokens
        self._matcher = LLMatcher(vocabulary.tokens, grammar, log_level=0)
        self._followed: list[int] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """(all tokens of the row), (1, vocabulary) logits -> those with the forbidden ones out."""
        self._follow(tokens)
        if self._followed and self._followed[-1] in self._eos_ids:
            return logits  # the answer is over; what is computed ahead of that is not looked at
        allowed = np.frombuffer(self._matcher.compute_logit_bias(), np.uint8)
        if self._matcher.is_error():
            raise GenerationFailed(
                "The form that was asked for is too complex to go on with; ask for a simpler one."
            )
        width = logits.shape[-1]
        mask = np.zeros(width, np.bool_)  # a model's vocabulary may be padded
        mask[: len(allowed)] = allowed[:width] > 0
        return mx.where(mx.array(mask), logits, -float("inf"))

    def _follow(self, tokens: Any) -> None:
        """One step further as a rule; from the beginning where the row went back."""
        count = tokens.shape[-1] - self._prompt_tokens
        followed = self._followed
        last = int(tokens[-1].item()) if count else -1
        if count == len(followed) + 1:
            new = [last]
        elif count == len(followed) and (not followed or followed[-1] == last):
            return
        else:
            self._matcher.reset()
            followed.clear()
            new = tokens[self._prompt_tokens :].tolist()
        followed += new
        self._matcher.consume_tokens([token for token in new if token not in self._eos_ids])
