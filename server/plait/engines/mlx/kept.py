"""What rows leave behind and rows begin with: keys and values of prompts that are over.

Copies go in and out, as a batch changes its caches in place. Only caches that can be cut to any
length are kept: recurrent models have none, nor have sliding windows once they have slid.
Invariant: what is kept and what live jobs have reserved fit the KV budget together, live ones
first. Knows rows; knows no jobs and no generator.
"""

from __future__ import annotations

from collections.abc import Iterable

import mlx.core as mx
from mlx_lm.models.cache import can_trim_prompt_cache

from plait.engines.mlx.batch import Row
from plait.engines.mlx.caches import first_tokens, states
from plait.engines.mlx.prefixes import PrefixStore

# A chat template's own first tokens are the same in every prompt and not worth a copy.
LEAST_TOKENS = 16


class KeptPrefixes:
    """`budget_bytes`: of live rows and kept ones; `most_bytes`: of kept ones at any time."""

    def __init__(self, budget_bytes: int, most_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._most_bytes = most_bytes
        self._reserved_bytes = 0
        self._store = PrefixStore()
        self._allow()

    @property
    def allocated_bytes(self) -> int:
        return self._store.allocated_bytes

    def keep_at_most(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._allow()

    def reserve(self, reserve_bytes: int) -> None:
        """A job starts: what is kept makes room."""
        self._reserved_bytes += reserve_bytes
        self._allow()

    def give_back(self, reserve_bytes: int) -> None:
        self._reserved_bytes -= reserve_bytes
        self._allow()

    def clear(self) -> None:
        self._store.allow(0)
        self._allow()

    def lend(self, scope: str, row: Row) -> int:
        """Let a row that has computed nothing begin with what is kept of its prompt. -> tokens."""
        # The last token is always computed: what follows it is not kept.
        found = self._store.find(scope, row.prompt[:-1])
        if found is None or found.shared < LEAST_TOKENS:
            return 0
        copied = first_tokens(found.kept.caches, found.shared)
        try:
            mx.async_eval(states(copied))  # type: ignore[no-untyped-call]
        except (RuntimeError, MemoryError):
            return 0  # no room for a copy: it is computed as if nothing were kept
        row.cached, row.caches = row.prompt[: found.shared], copied
        return found.shared

    def expect(self, rows: Iterable[Row]) -> None:
        """These rows leave: cut what they have to what can be kept, and make room for it."""
        for row in rows:
            self._cut(row)
        self._store.make_room(sum(row.kv_bytes for row in rows))

    def keep(self, scope: str, row: Row) -> None:
        """Take over what a row has computed."""
        if row.caches:
            self._store.keep(scope, row.cached, row.caches, row.kv_bytes)
        row.caches, row.cached = None, []

    def _cut(self, row: Row) -> None:
        if row.caches is None:
            return
        most = len(row.cached)
        if row.kv_bytes > self._store.max_bytes:
            most = most * self._store.max_bytes // row.kv_bytes
        if most < LEAST_TOKENS or not can_trim_prompt_cache(row.caches):
            row.caches, row.cached = None, []
        elif most < len(row.cached):
            row.caches, row.cached = first_tokens(row.caches, most), row.cached[:most]

    def _allow(self) -> None:
        room = max(0, self._budget_bytes - self._reserved_bytes)
        self._store.allow(min(self._most_bytes, room))
