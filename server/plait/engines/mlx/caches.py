"""What is done with mlx-lm's caches of one row: take it as it is, copy a beginning, evaluate it.

A list of caches is a row's keys and values, one of each layer. mlx computes lazily: what is made
here takes its memory, and lets go of what it was made from, only when its `states` are evaluated.
Knows no rows, no tokens' meaning and no generator but for the parts of it that hold caches.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache, KVCache, trim_prompt_cache


def states(caches: Iterable[Any]) -> list[Any]:
    """Everything to evaluate."""
    return [cache.state for cache in caches if not cache.empty()]


def whole_row(uid: int, parts: Iterable[Any]) -> tuple[list[Any], list[int]] | None:
    """The caches and tokens of the row `uid` if it has one of the generator's `parts` to itself.

    They are its own then and need no copy, which takes a CPU as long as a step.
    """
    for part in parts:
        if part.uids == [uid] and all(_is_one_row(cache) for cache in part.prompt_cache):
            return [_row_of(cache) for cache in part.prompt_cache], part.tokens[0]
    return None


def first_tokens(caches: list[Any], count: int) -> list[Any]:
    """A copy, of `count` tokens' own size where the kind of cache allows."""
    return [_first_tokens(cache, count) for cache in caches]


def _is_one_row(cache: Any) -> bool:
    return type(cache) is BatchKVCache and cache.left_padding.tolist() == [0]


def _row_of(cache: BatchKVCache) -> KVCache:
    row = KVCache()
    row.keys, row.values, row.offset = cache.keys, cache.values, cache.size()
    return row


def _first_tokens(cache: Any, count: int) -> Any:
    if type(cache) is not KVCache:
        copied = copy.deepcopy(cache)
        trim_prompt_cache([copied], cache.offset - count)
        return copied
    part = KVCache()
    part.keys = mx.contiguous(cache.keys[..., :count, :])
    part.values = mx.contiguous(cache.values[..., :count, :])
    part.offset = count
    return part
