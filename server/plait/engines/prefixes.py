"""How far two sequences of token ids agree: the one question every prefix cache asks.

Slices are compared before single ids, so a long agreement costs little more than a `memcmp`. Knows
no engine, no scope and no cache.
"""

from __future__ import annotations

BLOCK_TOKENS = 256


def common_prefix(first: list[int], second: list[int]) -> int:
    """-> tokens at the beginning that are the same in both."""
    most = min(len(first), len(second))
    length = 0
    while length < most and (
        first[length : length + BLOCK_TOKENS] == second[length : length + BLOCK_TOKENS]
    ):
        length += BLOCK_TOKENS
    for index in range(length, most):
        if first[index] != second[index]:
            return index
    return most
