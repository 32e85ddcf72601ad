"""Runs a schedule against one target: clients that send, read, and leave when they are told to.

A client has one living request at a time; what becomes of one that was left is not its business.
`no_cancel`: whoever leaves says nothing, and what still comes is read and thrown away, so that any
server works for nobody to the end. Every task ends with the run. Does NOT know servers nor judge.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from plait.bench.abandon.target import Account, Exchange, HangUp, Request, Target

Advance = Callable[[int], None]


@dataclass(slots=True)
class Record:
    """One request as its reader saw it; moments are monotonic seconds.

    `read`: tokens until he left or the answer ended; `read_after`: thrown away afterwards, the
    first of them, where none came before, at `first_after_at`.
    `left_at` None: he read to the end, where it may have come before the moment to leave.
    """

    index: int
    asked: HangUp | None
    due: float
    sent: float = 0.0
    first_at: float | None = None
    last_at: float = 0.0
    gaps: list[float] = field(default_factory=list)
    read: int = 0
    left_at: float | None = None
    read_after: int = 0
    first_after_at: float | None = None
    ended_at: float | None = None

    @property
    def reader_until(self) -> float:
        """The last moment at which somebody wanted it."""
        moment = self.ended_at if self.left_at is None else self.left_at
        assert moment is not None
        return moment


@dataclass(slots=True)
class Run:
    """`seconds`: from the first request to the last moment at which a reader was there."""

    records: list[Record]
    account: Account
    seconds: float


@dataclass(frozen=True, slots=True)
class Terms:
    """`load` None: no arrival is waited for, clients take the next request at once. `signs`: the
    target says when it begins with a request, so prefill is timed from there."""

    clients: int
    load: float | None = None
    no_cancel: bool = False
    signs: bool = False


async def run(
    target: Target, requests: Sequence[Request], terms: Terms, advance: Advance = lambda _: None
) -> Run:
    """All of `requests`; `advance(1)` when somebody is done with one. Raises BenchError."""
    await target.begin()
    reader = _Readers(target, requests, terms, advance)
    begin = monotonic()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(terms.clients, len(requests))):
            tasks.create_task(reader.client(tasks, begin))
    account = await target.account()
    for record in reader.records:
        _correct(record, account)
    end = max((record.reader_until for record in reader.records), default=begin)
    return Run(sorted(reader.records, key=lambda r: r.index), account, end - begin)


class _Readers:
    def __init__(
        self, target: Target, requests: Sequence[Request], terms: Terms, advance: Advance
    ) -> None:
        self.records: list[Record] = []
        self._target = target
        self._waiting = deque(requests)
        self._terms = terms
        self._advance = advance

    async def client(self, tasks: asyncio.TaskGroup, begin: float) -> None:
        """One request after the other, each until its reader is done with it."""
        while self._waiting:
            request = self._waiting.popleft()
            due = monotonic() if self._terms.load is None else begin + request.at
            await asyncio.sleep(max(0.0, due - monotonic()))
            record = Record(request.index, request.hang_up, due)
            self.records.append(record)
            left = asyncio.Event()
            # A task of its own: it goes on when its reader is with the next one already.
            tasks.create_task(self._serve(request, record, left))
            await left.wait()
            self._advance(1)

    async def _serve(self, request: Request, record: Record, left: asyncio.Event) -> None:
        record.sent = monotonic()
        async with self._target.open(request) as exchange:
            if await self._reads_to_the_end(exchange, request.hang_up, record):
                record.ended_at = monotonic()
            elif self._terms.no_cancel:
                record.left_at = monotonic()
                left.set()
                while (tokens := await exchange.next_tokens()) is not None:
                    if tokens and record.first_after_at is None:
                        record.first_after_at = monotonic()
                    record.read_after += tokens
                record.ended_at = monotonic()
            else:
                assert request.hang_up is not None
                record.left_at = await exchange.hang_up(request.hang_up.how)
            left.set()

    async def _reads_to_the_end(
        self, exchange: Exchange, leave: HangUp | None, record: Record
    ) -> bool:
        """False when it is time to leave; True when there was nothing to leave any more."""
        if leave is not None and leave.phase == "prefill":
            return await self._reads_for(exchange, leave.after_seconds, record)
        bound = None if leave is None else leave.after_tokens
        while bound is None or record.read < bound:
            tokens = await exchange.next_tokens()
            if tokens is None:
                return True
            _note(record, tokens)
        return False

    async def _reads_for(self, exchange: Exchange, seconds: float, record: Record) -> bool:
        loop = asyncio.get_running_loop()
        begun = not self._terms.signs
        try:
            async with asyncio.timeout(seconds if begun else None) as bound:
                while (tokens := await exchange.next_tokens()) is not None:
                    if not begun:
                        begun = True
                        bound.reschedule(loop.time() + seconds)
                    _note(record, tokens)
        except TimeoutError:
            return False
        return True


def _correct(record: Record, account: Account) -> None:
    """An answer that had arrived whole when its reader left was not left: its target says so."""
    told = account.decoded_after
    left = record.left_at is not None and record.ended_at is None
    if left and told is not None and record.index not in told:
        record.left_at, record.ended_at = None, record.left_at


def _note(record: Record, tokens: int) -> None:
    if not tokens:
        return
    now = monotonic()
    if record.first_at is None:
        record.first_at = now
    else:
        record.gaps.append(now - record.last_at)
    record.last_at = now
    record.read += tokens
