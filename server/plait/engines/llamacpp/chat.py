"""The llama.cpp chat adapter: jobs on the slots of an in-process server, one thread each.

`step` does not compute: llama.cpp's own loop does, and `step` waits (bounded) for what it yields.
Pause is a dropped request; resume continues from the token ids of prompt and answer on the slot's
cache, with the sampler started anew (`usage.reseeded` unless greedy). Only a forced answer goes on
while its reader rests (see `ahead`). `Released` follows only the engine's own confirmation. KV is
preallocated, hence "reusable". Knows no sockets, no scheduling, and not how a request is stopped.
"""

from __future__ import annotations

import time
from collections import deque
from queue import Empty, SimpleQueue
from typing import Any

from plait.engines.base import (
    CancelFlags,
    EngineInfo,
    Event,
    Failed,
    Fault,
    Feed,
    Finished,
    Item,
    Prepare,
    Prepared,
    Released,
    Stats,
)
from plait.engines.chat.prompt import ChatTokenizer, reserve_bytes
from plait.engines.llamacpp.job import Job, TokenNames, make_job
from plait.engines.llamacpp.request import Arrival, Gone, Inbox, Request
from plait.engines.llamacpp.seats import Seats
from plait.engines.llamacpp.server import allocated_tokens, slots_processing
from plait.engines.llamacpp.turns import Turns, take_next
from plait.engines.llamacpp.wire import Chunk, completion_body, probe_body
from plait.errors import GenerationFailed, InvalidRequest

STEP_SECONDS = 0.05
CLOSE_SECONDS = 2.0


class LlamaCpp:
    """Implements `Engine`. `grammars`: whether this build can force the form of an answer."""

    def __init__(
        self,
        server: Any,
        tokenizer: ChatTokenizer,
        info: EngineInfo,
        kv_bytes_per_token: int,
        flags: CancelFlags,
        chunk_tokens: int,
        *,
        prefix_cache_bytes: int = 0,
        grammars: bool = True,
    ) -> None:
        self.info = info
        self.chunk_tokens = chunk_tokens
        self._server = server
        self._tokenizer = tokenizer
        self._grammars = grammars
        self._names = TokenNames(list(tokenizer.vocabulary.pieces), tokenizer.token_text)
        self._kv_bytes_per_token = kv_bytes_per_token
        self._flags = flags
        self._jobs: dict[int, Job] = {}
        self._requests: dict[int, Request] = {}
        self._turns = Turns(self._requests)
        self._waiting: deque[Job] = deque()  # for a seat, and for a turn to have its prompt read
        self._behind: list[Job] = []  # resumed, and computed further than was handed over
        self._seats = Seats(info.slots, prefix_cache_bytes // kv_bytes_per_token)
        room = allocated_tokens(info.context_tokens)
        self._probes = [probe_body(slot, room) for slot in range(info.slots)]
        self._inbox: Inbox = SimpleQueue()
        self._events: list[Event] = []

    # --- commands ------------------------------------------------------------------------------

    def prepare(self, job: Prepare) -> Prepared:
        made = make_job(job, self._tokenizer, self.info, grammars=self._grammars)
        self._jobs[job.job] = made
        reserved = reserve_bytes(len(made.prompt) + made.max_tokens, self._kv_bytes_per_token)
        return Prepared(job.job, len(made.prompt), reserved, made.max_tokens)

    def start(self, job: int) -> None:
        entry = self._jobs[job]
        entry.started = True
        self._waiting.append(entry)
        self._seat_waiting()

    def feed(self, feed: Feed) -> None:
        raise InvalidRequest("A chat takes no input after it was opened.")

    def finish_input(self, job: int) -> None:
        """A chat's input is complete from the start."""

    def pause(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None or not entry.started or entry.over or entry.paused:
            return
        entry.paused = True
        if entry in self._behind:
            self._behind.remove(entry)
        elif entry in self._waiting:
            self._waiting.remove(entry)
        elif entry.request is not None and entry.grammar is None:
            self._turns.stop(entry.request)

    def resume(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None or not entry.paused:
            return
        entry.paused = False
        if entry.ahead:
            self._behind.append(entry)
        elif entry.request is None:  # else it goes on when the dropped request is gone
            self._waiting.appendleft(entry)
            self._seat_waiting()

    def cancel(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None:
            return
        entry.cancelled = True
        if entry.request is not None:
            self._turns.stop(entry.request)
            return
        if entry in self._waiting:
            self._waiting.remove(entry)
        if entry.started:
            self._release(entry, time.monotonic())
        else:
            self._jobs.pop(job)

    def interrupt(self) -> None:
        # In the reader's thread: a flagged job stops without waiting for the loop's turn.
        for request in list(self._requests.values()):
            if self._flags.stamp(request.job) is not None:
                self._turns.stop(request)
        self._inbox.put(None)

    # --- progress ------------------------------------------------------------------------------

    def step(self) -> list[Event]:
        self._hand_over()
        if self._requests and not self._events:
            self._take(STEP_SECONDS)
        while not self._inbox.empty():
            self._take(0)
        events, self._events = self._events, []
        return events

    @property
    def idle(self) -> bool:
        return not self._requests and not self._events and not self._behind

    def keep_prefixes(self, max_bytes: int) -> None:
        """Frees no memory, as slots are allocated for good: what is dropped is not reused again."""
        self._seats.keep_at_most(max_bytes // self._kv_bytes_per_token)

    def stats(self) -> Stats:
        occupants = (self._jobs[job] for job in self._seats.occupants if job in self._jobs)
        held = sum(entry.held_tokens for entry in occupants)
        return Stats(
            slots_used=self._slots_used(),
            kv_bytes=held * self._kv_bytes_per_token,
            cache_bytes=self._seats.kept_tokens * self._kv_bytes_per_token,
        )

    def close(self) -> None:
        for request in list(self._requests.values()):
            request.stop()
            request.join(CLOSE_SECONDS)
        self._server = None

    def _slots_used(self) -> int:
        """While any run: unconfirmed ones too. Asking llama.cpp would wait for a step."""
        if self._requests:
            return min(self.info.slots, len(self._requests) + len(self._waiting))
        return slots_processing(self._server)

    def _take(self, seconds: float) -> None:
        try:
            arrived = self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
        except Empty:
            return
        match arrived:
            case Arrival(request, chunk, at):
                self._advance(self._jobs[request.job], request, chunk, at)
                self._seat_waiting()
            case Gone():
                self._leave(self._jobs[arrived.request.job], arrived)

    def _seat_waiting(self) -> None:
        while self._waiting and self._seats.free and self._turns.free:
            self._begin(take_next(self._waiting))
        reader = self._turns.reader if self._waiting else None
        if reader is not None:
            unread_tokens = self._jobs[reader.job].unread_tokens
            if any(job.unread_tokens < unread_tokens for job in self._waiting):
                self._turns.let_pass()

    def _begin(self, job: Job) -> None:
        tokens, seed = job.begin_request()
        job.seat, reusable = self._seats.take(job.id, job.scope, tokens)
        body = completion_body(
            job.params,
            prompt=tokens,
            max_tokens=job.max_tokens - job.produced,
            seed=seed,
            slot=job.seat.index,
            cache_prompt=reusable,
            context_tokens=self.info.context_tokens,
            grammar=job.grammar,
        )
        job.request = Request(self._server, body, self._probes[job.seat.index], self._inbox, job.id)
        self._requests[job.id] = job.request
        job.request.start()

    def _advance(self, job: Job, request: Request, chunk: Chunk, at: float) -> None:
        if chunk.error is not None:
            job.error = GenerationFailed("The model could not go on with this prompt; change it.")
        elif chunk.prompt_progress is not None:
            stamp = self._flags.stamp(job.id)
            job.note_progress(chunk.prompt_progress, dead=stamp is not None and at > stamp)
        elif job.cancelled:
            self._count_wasted(job, chunk, at)
        elif job.over:
            if chunk.finish_reason is None:  # it does not take this token for an end: we do
                self._turns.stop(request)
        elif job.grammar is not None and (job.paused or job.ahead):
            job.ahead.keep(chunk)
        else:
            self._add(job, chunk)

    def _add(self, job: Job, chunk: Chunk) -> None:
        try:
            deltas = job.add(chunk, self._names)
        except GenerationFailed as error:  # the answer has not the form that was asked for
            job.error = error
            if job.request is not None:
                self._turns.stop(job.request)
            return
        self._events += [Item(job.id, delta.data, units=delta.tokens) for delta in deltas]
        if job.answer.finish_reason is not None:
            self._events.append(Finished(job.id, job.answer.finish_reason, job.usage))
            if job.request is not None:
                self._turns.end(job.request, stop=job.answer.stop_string)

    def _hand_over(self) -> None:
        """What was computed while the reader rested, a step's worth of it."""
        for job in list(self._behind):
            for chunk in job.ahead.take():
                if not job.over:
                    self._add(job, chunk)
            if job.ahead.handed_over:
                self._behind.remove(job)
                gone, job.ahead.gone = job.ahead.gone, None
                if gone is not None:
                    self._end(job, gone, cancelled=False)

    def _count_wasted(self, job: Job, chunk: Chunk, at: float) -> None:
        stamp = self._flags.stamp(job.id)
        if chunk.token is not None and stamp is not None and at > stamp:
            job.wasted += 1 + job.hidden_before(chunk)

    def _leave(self, job: Job, gone: Gone) -> None:
        """The engine holds nothing of the request any more."""
        assert job.seat is not None
        cancelled = job.cancelled or self._flags.stamp(job.id) is not None
        if cancelled and gone.stopped and job.answer.finish_reason is None:
            job.waste_step(self.chunk_tokens)  # the one under way when the engine was told
        stays = not (cancelled or job.over or gone.error is not None) and gone.stopped
        broken = job.error is not None or gone.error is not None
        self._seats.leave(job.seat, [] if broken else job.computed_tokens, kept=stays)
        job.seat = job.request = None
        self._requests.pop(job.id)
        if job.ahead and not cancelled and not job.over:
            job.ahead.gone = gone  # it ends when the last of it is handed over
        elif not stays:
            self._end(job, gone, cancelled=cancelled)
        elif gone.request.gave_way and not job.paused:
            self._waiting.append(job)
        elif not job.paused:  # resumed before the dropped request was gone
            self._waiting.appendleft(job)
        self._seat_waiting()

    def _end(self, job: Job, gone: Gone, *, cancelled: bool) -> None:
        if not cancelled and job.answer.finish_reason is None:
            error = job.error or GenerationFailed("The model stopped without an end; try again.")
            self._events.append(Failed(job.id, Fault.of(error), job.usage))
        self._release(job, gone.at)

    def _release(self, job: Job, at: float) -> None:
        self._seats.forget(job.id)
        self._jobs.pop(job.id)
        self._behind = [other for other in self._behind if other is not job]
        self._events.append(Released(job.id, at, job.wasted, job.usage, job.wasted_prompt))
