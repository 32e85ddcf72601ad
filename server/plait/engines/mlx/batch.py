"""The rows mlx-lm computes together: insert, pause, remove, and one step for all of them.

Rows are token ids only. `BatchGenerator` runs one step ahead: when a token comes out, the step
after it is already under way, so a removed row may be computed once more and is gone for certain
only after `settle`. KV memory is rows x the longest row (shorter ones are padded on the left),
allocated in steps of 256 tokens; `cells` bounds one row's length and `kv_bytes` reads the truth off
the generator. A few prompts are read at a time, and never only ones that are longer than a waiting
one. One thread makes all calls. Knows no text, no jobs and no events.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mlx.core as mx
from mlx_lm.models.cache import can_trim_prompt_cache, trim_prompt_cache

from plait.engines.mlx.caches import states, whole_row
from plait.engines.mlx.pace import StepPace
from plait.engines.mlx.sampling import RowSampling, greedy

STEP_TOKENS = 256  # the cache grows by so many tokens at a time
PREFILL_ROWS = 2  # so a short prompt need not wait for a long one; more would lengthen the step
# A step this slow is awaited before the next is queued behind it: the loop has a chance to see a
# cancel in between, and on a CPU running ahead gains nothing. Faster ones overlap with ours.
SLOW_STEP_SECONDS = 0.02

# The function `mlx_lm.generate` hides the module of that name.
_generate = importlib.import_module("mlx_lm.generate")


def cells(tokens: int) -> int:
    """Most cache cells a row of that many tokens (prompt and answer) can occupy by itself.

    An allocation happens at any length and adds 256, so up to 256 cells lie beyond the tokens.
    """
    return -(-(tokens + STEP_TOKENS) // STEP_TOKENS) * STEP_TOKENS


@dataclass(slots=True, eq=False)
class Row:
    """One sequence. `produced` is its owner's list of the tokens taken so far.

    `cached` and `caches` are what a row outside the batch has (a new, a paused and a gone one): the
    tokens whose keys and values it has.
    """

    prompt: list[int]
    produced: list[int]
    max_tokens: int
    sampling: RowSampling
    uid: int | None = None
    decoding: bool = False
    prefilled: int = 0
    unread: int = 0  # tokens that have to be read before it goes on
    chunk: int = 0  # how many were read last
    cached: list[int] = field(default_factory=list)
    caches: list[Any] | None = None

    @property
    def cells(self) -> int:
        return cells(len(self.prompt) + self.max_tokens)

    @property
    def kv_bytes(self) -> int:
        """What the row holds by itself, outside the batch."""
        return sum(int(cache.nbytes) for cache in self.caches or [])


class Token(NamedTuple):
    """`logprobs`: the row's evaluated log-probabilities, (vocabulary,)."""

    row: Row
    token: int
    logprobs: Any


class Batch:
    """At most `slots` rows computing at once. After `step` raised, call `restart`."""

    def __init__(
        self,
        model: Any,
        slots: int,
        stop_tokens: Collection[int],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._slots = slots
        self._reading_places = min(PREFILL_ROWS, slots)
        self._stop_tokens = [[token] for token in stop_tokens]
        self._clock = clock
        self._pace = StepPace()
        self._rows: dict[int, Row] = {}
        self._generator = self._new_generator()
        self.step_began = 0.0  # the last one

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[Row]:
        return list(self._rows.values())

    @property
    def kv_bytes(self) -> int:
        return int(self._generator.prompt_cache_nbytes)

    @property
    def chunk_tokens(self) -> int:
        return self._pace.chunk_tokens

    def cells_with(self, row: Row) -> int:
        """Cells of the whole batch, padding included, once `row` is in it."""
        return (len(self._rows) + 1) * max(other.cells for other in [*self._rows.values(), row])

    def insert(self, row: Row) -> None:
        """Compute `row` from now on, without what its caches already hold."""
        known = row.prompt + row.produced
        if row.caches is not None and len(row.cached) >= len(known):
            # The last token is fed again: its successor was being computed when the row left.
            surplus = len(row.cached) - len(known) + 1
            if can_trim_prompt_cache(row.caches):
                trim_prompt_cache(row.caches, surplus)
                row.cached = known[:-1]
            else:
                row.caches = None
        if row.caches is None:
            row.cached = []
        row.sampling.drawn = len(row.produced)
        (row.uid,) = self._generator.insert(
            [known[len(row.cached) :]],
            max_tokens=[row.max_tokens - len(row.produced)],
            caches=None if row.caches is None else [row.caches],
            all_tokens=[row.cached],
            samplers=[row.sampling.sampler],
            logits_processors=[row.sampling.processors],
        )
        row.unread = len(known) - len(row.cached)
        row.caches, row.cached, row.decoding, row.prefilled = None, [], False, 0
        self._rows[row.uid] = row

    def remove(self, row: Row) -> None:
        """Take `row` out, with its caches. What else it held is back after the next `settle`."""
        if row.uid is None:
            return
        with mx.stream(self._generator.stream):
            whole = whole_row(row.uid, self._parts)
            held = self._generator.remove([row.uid], return_prompt_caches=whole is None)
            row.caches, tokens = held[row.uid] if whole is None else whole
            row.cached = list(tokens)
        self._forget(row)

    def pause(self, row: Row) -> None:
        """Take `row` out with its caches; `insert` continues it with identical tokens."""
        assert row.uid is not None, "only a row of the batch can pause"
        self.remove(row)
        with mx.stream(self._generator.stream):
            mx.eval(states(row.caches or []))
            self._evaluate_caches()

    def settle(self, left: Iterable[Row] = ()) -> None:
        """Wait for the step under way, and free what removed rows held but for the caches of
        `left`; those that cannot be had (memory) are lost, which harms nobody."""
        with mx.stream(self._generator.stream):
            for row in left:
                try:
                    mx.eval(states(row.caches or []))
                except (RuntimeError, MemoryError):
                    row.caches, row.cached = None, []
            self._evaluate_caches()
        mx.synchronize(self._generator.stream)

    def settle_if_slow(self) -> bool:
        """-> whether it waited, which it does where running ahead would delay cancels by a step."""
        seconds = self._pace.decode_seconds
        slow = seconds is None or seconds > SLOW_STEP_SECONDS
        if slow:
            mx.synchronize(self._generator.stream)
        return slow

    def step(self) -> list[Token]:
        """One decode step of all rows and one chunk of prompt. Whatever mlx raises comes out."""
        self._let_short_ones_pass()
        began = self.step_began = self._clock()
        decoding = any(row.decoding for row in self._rows.values())
        self._generator.prefill_step_size = self._pace.chunk_tokens
        progress, responses = self._generator.next()
        self._measure(self._clock() - began, progress, decoding)
        for part in progress:
            if part.end_of_prompt:
                self._rows[part.uid].decoding = True
        return [self._take(response) for response in responses]

    def restart(self, lost: Iterable[Row]) -> None:
        """A fresh generator without the `lost` rows; the others are computed anew.

        What a failed step left behind is not trusted, so no cache is kept; draws depend on
        nothing but seed and index, so the answers go on as if nothing had happened.
        """
        kept = [row for row in self._rows.values() if row not in set(lost)]
        for row in self._rows.values():
            row.uid, row.decoding = None, False
        self._rows.clear()
        self._generator.close()
        self._generator = self._new_generator()
        for row in kept:
            self.insert(row)

    def free_unused(self) -> None:
        """Give pooled buffers back to the system; for when nothing computes."""
        mx.synchronize(self._generator.stream)
        mx.clear_cache()

    def close(self) -> None:
        self._rows.clear()
        self._generator.close()

    def _let_short_ones_pass(self) -> None:
        """Where only longer prompts are read, the longest makes way for the shortest that waits.

        It has read a chunk at least, and is not read again; copying its caches is what this costs.
        """
        reading = [row for row in self._rows.values() if not row.decoding and row.prefilled]
        waiting = [row for row in self._rows.values() if not row.decoding and not row.prefilled]
        if not waiting or len(reading) < self._reading_places:
            return
        shortest = min(waiting, key=lambda row: row.unread)
        if shortest.unread >= min(row.unread for row in reading):
            return
        longest = max(reading, key=lambda row: row.unread)
        for row in [*waiting, longest]:  # the generator takes them in the order they came in
            if row is not shortest:
                self._move_to_the_end(row)

    def _move_to_the_end(self, row: Row) -> None:
        self.remove(row)
        caches = row.caches or []
        self.insert(row)
        with mx.stream(self._generator.stream):
            mx.eval(states(caches))
            self._evaluate_caches()

    def _take(self, response: Any) -> Token:
        row = self._rows[response.uid]
        row.decoding = True
        if response.finish_reason is not None:  # the generator has removed it already
            row.caches, row.cached = response.prompt_cache, list(response.all_tokens)
            self._forget(row)
        return Token(row, int(response.token), response.logprobs)

    def _forget(self, row: Row) -> None:
        assert row.uid is not None
        del self._rows[row.uid]
        row.uid, row.decoding = None, False

    def _measure(self, seconds: float, progress: list[Any], decoding: bool) -> None:
        if not progress:
            self._pace.observe_decode(seconds)
            return
        longest = 0
        for part in progress:
            row = self._rows[part.uid]
            row.chunk = part.progress[0] - row.prefilled
            longest = max(longest, row.chunk)
            row.prefilled, row.unread = part.progress[0], part.progress[1] - part.progress[0]
        if not any(part.end_of_prompt for part in progress):
            # A prompt's end costs a forward pass of its own and says nothing about chunks.
            self._pace.observe_prefill(seconds, longest * len(progress), decoding=decoding)

    def _evaluate_caches(self) -> None:
        """Removing a row is lazy: until evaluated, the smaller cache keeps the larger one alive.

        The generator does this as part of its next step; private, as it offers no other way.
        """
        for part in self._parts:
            mx.eval(states(part.prompt_cache))

    @property
    def _parts(self) -> tuple[Any, Any]:
        return self._generator._prompt_batch, self._generator._generation_batch

    def _new_generator(self) -> Any:
        return _generate.BatchGenerator(
            self._model,
            stop_tokens=self._stop_tokens,
            sampler=greedy,
            completion_batch_size=self._slots,
            prefill_batch_size=self._reading_places,
        )
