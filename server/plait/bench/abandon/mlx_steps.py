"""What mlx_lm.server's batch did, step by step, as an account of its tasks.

A step's time is shared out by the tokens it computed. The batch runs one step ahead: a sequence
that is removed while it decodes has one more token under way, which counts as decoded. Pure; does
NOT know requests. Moments are of the machine's monotonic clock, the client's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from plait.bench.abandon.served import Span, Work


class Event(msgspec.Struct):
    """Of `mlx_child`. `insert`: (uid, prompt tokens); `read`: (uid, prompt tokens so far);
    `made`: (uid, whether it was the last)."""

    at: float = 0.0
    insert: list[tuple[int, int]] = []
    begin: list[int] = []
    remove: list[int] = []
    step: tuple[float, float] | None = None
    read: list[tuple[int, int]] = []
    made: list[tuple[int, bool]] = []


@dataclass(slots=True)
class _Row:
    work: Work
    read: int = 0
    over: bool = False


class MlxSteps:
    """Take every event; `forget` what was before a run. `on_begin` hears when a task leaves the
    queue: 0 is the run's first to come."""

    def __init__(self, on_begin: Callable[[int], None] = lambda number: None) -> None:
        self._on_begin = on_begin
        self._rows: dict[int, _Row] = {}
        self._busy = 0.0
        self._first = 0  # the uid that the next run's first task gets: they are counted up

    @property
    def seen(self) -> int:
        return len(self._rows)

    @property
    def pending(self) -> bool:
        return not all(row.over for row in self._rows.values())

    def forget(self) -> None:
        self._first += len(self._rows)
        self._rows.clear()
        self._busy = 0.0

    def works(self) -> tuple[list[Work], float]:
        """(tasks by number, busy seconds)."""
        return [self._rows[uid].work for uid in sorted(self._rows)], self._busy

    def take(self, line: str, arrived: float) -> None:
        """`arrived` does not matter: events carry their moments."""
        event = msgspec.json.decode(line, type=Event)
        for uid, _ in event.insert:
            self._rows[uid] = _Row(Work(uid))
        for uid in event.begin:
            self._on_begin(uid - self._first)
        for uid in event.remove:
            self._remove(uid, event.at)
        if event.step is not None:
            self._step(*event.step, event)

    def _step(self, begin: float, end: float, event: Event) -> None:
        reads = [(uid, done - self._rows[uid].read) for uid, done in event.read if self._has(uid)]
        made = [(uid, last) for uid, last in event.made if self._has(uid)]
        self._busy += end - begin
        tokens = sum(count for _, count in reads) + len(made)
        each = (end - begin) / tokens if tokens else 0.0
        for uid, count in reads:
            row = self._launched(uid, begin)
            row.read += count
            if count:
                row.work.prefill.append(Span(begin, end, count, each * count))
        for uid, last in made:
            row = self._launched(uid, begin)
            row.work.decoded += 1
            row.work.decode_seconds += each
            if last:
                row.over, row.work.released = True, end

    def _remove(self, uid: int, at: float) -> None:
        if (row := self._rows.get(uid)) is None or row.over:
            return
        if row.work.decoded:
            row.work.decode_seconds += row.work.decode_seconds / row.work.decoded
            row.work.decoded += 1
        row.over, row.work.cancelled, row.work.released = True, at, at

    def _launched(self, uid: int, begin: float) -> _Row:
        row = self._rows[uid]
        if row.work.launched is None:
            row.work.launched = begin
        return row

    def _has(self, uid: int) -> bool:
        return uid in self._rows
