"""Chat on mlx-lm with continuous batching: the `Engine` around one `Batch`.

A started job waits until the batch has room for it (rows x longest row fits the KV budget), then
computes until its text ends, its cancel or its error; `Released` follows once the step that was
under way is over, for only then is nothing computed for it any more. A token that comes out after
the cancel's arrival, and the one being computed then, count as wasted; prompt tokens do not. What a
job that did not fail has computed is kept for the next prompt of its scope (see `kept`).
Knows no mlx-lm internals (see `batch`), no sampling and no scheduling.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from plait.engines.base import (
    CancelFlags,
    Event,
    Failed,
    Fault,
    Feed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Stats,
)
from plait.engines.chat.prompt import ChatTokenizer
from plait.engines.mlx.batch import Batch, Row, Token
from plait.engines.mlx.forced import GrammarTokens
from plait.engines.mlx.job import Job, JobState, failure_of, make_job, no_distribution
from plait.engines.mlx.kept import KeptPrefixes
from plait.engines.mlx.logprobs import LogprobReader
from plait.engines.mlx.offer import offer_of, require_fit
from plait.engines.mlx.reservations import Reservations
from plait.errors import GenerationFailed, InvalidRequest, OutOfMemory, PlaitError


class MlxChat:
    """Implements `Engine`; `kv_bytes_per_token` is what one cache cell of this model takes."""

    def __init__(
        self,
        spec: LoadSpec,
        flags: CancelFlags,
        tokenizer: ChatTokenizer,
        batch: Batch,
        logprobs: LogprobReader,
        *,
        kv_bytes_per_token: int,
        grammar_tokens: GrammarTokens | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.info = offer_of(spec, kv_bytes_per_token)
        self._spec = spec
        self._flags = flags
        self._tokenizer = tokenizer
        self._grammar_tokens = grammar_tokens
        self._batch = batch
        self._logprobs = logprobs
        self._kv_bytes_per_token = kv_bytes_per_token
        self._clock = clock
        self._jobs: dict[int, Job] = {}
        self._by_row: dict[Row, Job] = {}
        self._reservations = Reservations(spec.slots)
        self._kept = KeptPrefixes(self.info.kv_budget_bytes, spec.prefix_cache_bytes)
        self._waiting: deque[Job] = deque()  # at most one entry per started job
        self._leaving: list[Job] = []
        self._events: list[Event] = []
        self._tidy = True

    # --- a job's life --------------------------------------------------------------------------

    def prepare(self, job: Prepare) -> Prepared:
        entry = make_job(job, self._tokenizer, self._spec, self._grammar_tokens)
        row = entry.row
        require_fit(self.info, row.cells * self._kv_bytes_per_token)
        self._jobs[job.job] = entry
        self._by_row[row] = entry
        reserved = self._reservations.add(entry.id, row.cells) * self._kv_bytes_per_token
        # More than everything it will not take: beside others it would have to wait.
        entry.reserve_bytes = min(reserved, self.info.kv_budget_bytes)
        return Prepared(job.job, len(row.prompt), entry.reserve_bytes, row.max_tokens)

    def start(self, job: int) -> None:
        entry = self._jobs[job]
        assert entry.state is JobState.PREPARED, "a job starts once"
        entry.state = JobState.WAITING
        self._waiting.append(entry)
        # First what it can use itself: its own room may be what that has to make way for.
        entry.cached_tokens = self._kept.lend(entry.scope, entry.row)
        self._kept.reserve(entry.reserve_bytes)
        assert self._slots_used() <= self._spec.slots, "the scheduler overbooked the slots"

    def feed(self, feed: Feed) -> None:
        raise InvalidRequest("A chat takes its input with the open; send another open instead.")

    def finish_input(self, job: int) -> None:
        """Chat has no input after its open."""

    def pause(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None:
            return
        if entry.state is JobState.WAITING:
            self._waiting.remove(entry)
            entry.state = JobState.PAUSED
        elif entry.state is JobState.COMPUTING:
            self._batch.pause(entry.row)
            entry.state = JobState.PAUSED

    def resume(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None and entry.state is JobState.PAUSED:
            entry.state = JobState.WAITING
            self._waiting.appendleft(entry)  # ahead of new work

    def cancel(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None or entry.state is JobState.LEAVING:
            return
        if entry.state is JobState.PREPARED:
            self._forget(entry)
            return
        stamp = self._flags.stamp(job)
        if stamp is not None and entry.row.decoding:
            entry.wasted += 1  # the step under way computes one more token for it
        elif stamp is not None and stamp > self._batch.step_began:
            entry.wasted_prompt.append(entry.row.chunk)
        self._leave(entry)

    def _leave(self, entry: Job) -> None:
        """Stop computing for `entry`; it is released once nothing under way is for it."""
        self._batch.remove(entry.row)
        if entry.state is JobState.WAITING:
            self._waiting.remove(entry)
        entry.state = JobState.LEAVING
        self._leaving.append(entry)

    def _forget(self, entry: Job) -> None:
        del self._jobs[entry.id]
        del self._by_row[entry.row]
        self._reservations.drop(entry.id)

    def _fail(self, entry: Job, error: PlaitError) -> None:
        self._events.append(Failed(entry.id, Fault.of(error), entry.usage))
        self._leave(entry)
        entry.row.caches = None  # what failed is not handed on

    # --- computing -----------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Nothing to cut short: a step is one forward pass and mlx cannot abandon it."""

    def step(self) -> list[Event]:
        """Releases go out before anything is computed; the rest is one step of the batch."""
        if not self._events and self._leaving:
            self._settle()
        if not self._events and (self._waiting or len(self._batch)):
            self._compute()
        elif not self._busy:
            self._batch.free_unused()
            self._tidy = True
        events, self._events = self._events, []
        return events

    @property
    def _busy(self) -> bool:
        return bool(self._events or self._leaving or self._waiting or len(self._batch))

    @property
    def idle(self) -> bool:
        """Once nothing computes, one more step gives back the buffers kept for reuse."""
        return self._tidy and not self._busy

    def keep_prefixes(self, max_bytes: int) -> None:
        self._kept.keep_at_most(max_bytes)
        self._tidy = False  # a step gives the memory back

    def stats(self) -> Stats:
        paused = sum(job.row.kv_bytes for job in self._jobs.values())
        return Stats(
            slots_used=self._slots_used(),
            kv_bytes=self._batch.kv_bytes + paused,
            cache_bytes=self._kept.allocated_bytes,
        )

    def close(self) -> None:
        self._batch.close()
        self._kept.clear()
        self._jobs.clear()
        self._by_row.clear()

    def _slots_used(self) -> int:
        free = (JobState.PREPARED, JobState.PAUSED)
        return sum(job.state not in free for job in self._jobs.values())

    def _settle(self) -> None:
        leaving, self._leaving = self._leaving, []
        rows = [entry.row for entry in leaving]
        self._kept.give_back(sum(entry.reserve_bytes for entry in leaving))
        self._kept.expect(rows)
        self._batch.settle(rows)
        for entry in leaving:
            self._kept.keep(entry.scope, entry.row)
            self._forget(entry)
            at, usage = self._clock(), entry.usage
            self._events.append(Released(entry.id, at, entry.wasted, usage, entry.wasted_prompt))

    def _compute(self) -> None:
        self._tidy = False
        # When the tokens that come out next were complete; unknown while they still compute.
        complete_at = self._clock() if self._batch.settle_if_slow() else math.inf
        self._drop_cancelled()
        if self._leaving:
            self._settle()
            return
        self._admit()
        try:
            tokens = self._batch.step()
        except Exception as error:  # noqa: BLE001 - whatever mlx raises ends jobs, not the worker
            self._survive(error)
            return
        self._take(tokens, complete_at)
        self._drop_cancelled()

    def _admit(self) -> None:
        """Let waiting jobs in, in order, while the padded batch stays within the budget.

        Reservations count each row alone; what padding adds on top is awaited here.
        """
        paused = sum(job.row.cells for job in self._jobs.values() if job.state is JobState.PAUSED)
        while self._waiting:
            needed = self._batch.cells_with(self._waiting[0].row) + paused
            if len(self._batch) and needed * self._kv_bytes_per_token > self.info.kv_budget_bytes:
                return
            entry = self._waiting.popleft()
            entry.state = JobState.COMPUTING
            self._batch.insert(entry.row)

    def _drop_cancelled(self) -> None:
        """Flags are set while a step runs; the command itself comes a moment later."""
        for row in self._batch.rows:
            entry = self._by_row[row]
            if self._flags.stamp(entry.id) is not None:
                self.cancel(entry.id)

    def _take(self, tokens: list[Token], complete_at: float) -> None:
        chosen = self._logprobs.chosen(tokens)
        for token, logprob in zip(tokens, chosen, strict=True):
            entry = self._by_row[token.row]
            stamp = self._flags.stamp(entry.id)
            if stamp is not None:
                entry.wasted += stamp < complete_at
                if token.row.uid is None:  # it ended by itself, so no cancel can remove it
                    self._leave(entry)
            elif math.isnan(logprob):
                self._fail(entry, no_distribution(entry.answer))
            elif entry.row.sampling.error is not None:
                self._fail(entry, failure_of(entry.row.sampling.error))
            else:
                self._say(entry, token, logprob)

    def _say(self, entry: Job, token: Token, logprob: float) -> None:
        entry_logprobs = None
        if entry.top_logprobs is not None:
            entry_logprobs = self._logprobs.describe(token, logprob, entry.top_logprobs)
        try:
            delta = entry.answer.add(token.token, entry_logprobs)
        except GenerationFailed as error:  # it has not the form that was asked for
            self._fail(entry, error)
            return
        if delta is not None:
            self._events.append(Item(entry.id, delta.data, units=delta.tokens))
        if entry.answer.finish_reason is not None:
            self._events.append(Finished(entry.id, entry.answer.finish_reason, entry.usage))
            self._leave(entry)

    def _survive(self, error: Exception) -> None:
        """A step failed: end the jobs that can have caused it and compute the others anew.

        Whoever was being prefilled is new to a batch that worked before, hence the suspects.
        Memory runs out by length: then the longest row goes. Something always goes, so a step
        that keeps failing does so at most once per job.
        """
        rows = self._batch.rows
        suspects = [row for row in rows if not row.decoding] or rows
        typed = failure_of(error)
        if isinstance(typed, OutOfMemory):
            self._kept.clear()
            suspects = [max(suspects, key=lambda row: row.cells)]
        self._batch.restart(suspects)
        for row in suspects:
            self._fail(self._by_row[row], typed)
