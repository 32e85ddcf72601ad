"""llama-server's own log (verbosity 4), read as an account of its tasks.

    0.03.024.222 I slot launch_slot_: id  3 | task 21 | processing task, is_child = 0

A line begins with the time since the start, `minutes.seconds.milliseconds.microseconds`; the two
clocks are brought together by the line that took the shortest to arrive. A release names the tokens
in the slot: all but the last one decoded are in it. Pure; does NOT know requests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from plait.bench.abandon.served import Span, Work, busy_seconds

_LINE = re.compile(r"(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) \w +(\w+) +(\S+): (.*)$")
_TASK = re.compile(r"id +\d+ \| task (\d+) \| (.*)$")
_PROMPT = re.compile(r"new prompt, .*task\.n_tokens = (\d+)")
_CACHED = re.compile(r"cached n_tokens = (\d+)")
_PREFILLED = re.compile(r"prompt eval time = +([\d.]+) ms")
_DECODED = re.compile(r"eval time = +[\d.]+ ms / +(\d+) tokens")
_RELEASED = re.compile(r"stop processing: n_tokens = (\d+)")
_CANCELLED = re.compile(r"cancel task, id_task = (\d+)")


@dataclass(slots=True)
class _Task:
    """Times by the log's clock. `tokens`: in the slot at the end."""

    launched: float | None = None
    released: float | None = None
    cancelled: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefill_seconds: float | None = None
    decoded: int | None = None
    tokens: int = 0

    def prefilled_tokens(self) -> int:
        """A prompt may have been left half read."""
        return max(0, min(self.prompt_tokens, self.tokens) - self.cached_tokens)

    def decoded_tokens(self) -> int:
        if self.decoded is not None:
            return self.decoded
        whole = self.prompt_tokens and self.tokens >= self.prompt_tokens
        return self.tokens - self.prompt_tokens + 1 if whole else 0


class LlamaLog:
    """Take every line; `forget` what was before a run."""

    def __init__(self) -> None:
        self._tasks: dict[int, _Task] = {}
        self._offset: float | None = None  # the client's clock minus the log's

    def take(self, line: str, arrived: float) -> None:
        found = _LINE.match(line)
        if found is None:
            return
        minutes, seconds, milli, micro = (int(part) for part in found.groups()[:4])
        at = 60 * minutes + seconds + milli / 1e3 + micro / 1e6
        offset = arrived - at
        self._offset = offset if self._offset is None else min(self._offset, offset)
        if cancelled := _CANCELLED.match(found[7]):
            self._task(int(cancelled[1])).cancelled = at
        elif (told := _TASK.match(found[7])) and found[5] == "slot":
            self._take_task(int(told[1]), told[2].strip(), at)

    @property
    def seen(self) -> int:
        """Tasks that were launched, or cancelled before that."""
        return len(self._tasks)

    @property
    def pending(self) -> bool:
        """Whether a launched task was not released yet."""
        return any(t.launched is not None and t.released is None for t in self._tasks.values())

    def forget(self) -> None:
        """Tasks that are not over are kept out of the account as well."""
        self._tasks.clear()

    def works(self) -> tuple[list[Work], float]:
        """(tasks by number, busy seconds: while at least one held a slot)."""
        works = [self._work(number, self._tasks[number]) for number in sorted(self._tasks)]
        return works, busy_seconds(works)

    def _task(self, number: int) -> _Task:
        return self._tasks.setdefault(number, _Task())

    def _take_task(self, number: int, what: str, at: float) -> None:
        if number < 0:
            return
        if what.startswith("processing task"):
            self._task(number).launched = at
        elif number not in self._tasks:
            return  # from before the run
        elif found := _PROMPT.match(what):
            self._tasks[number].prompt_tokens = int(found[1])
        elif found := _CACHED.match(what):
            self._tasks[number].cached_tokens = int(found[1])
        elif found := _PREFILLED.match(what):
            self._tasks[number].prefill_seconds = float(found[1]) / 1e3
        elif found := _DECODED.match(what):
            self._tasks[number].decoded = int(found[1])
        elif found := _RELEASED.match(what):
            self._tasks[number].released = at
            self._tasks[number].tokens = int(found[1])

    def _work(self, number: int, task: _Task) -> Work:
        decoded = task.decoded_tokens()
        work = Work(
            number,
            self._moment(task.launched),
            self._moment(task.released),
            self._moment(task.cancelled),
            decoded=decoded,
        )
        if work.launched is not None and work.released is not None:
            end = work.released
            if task.prefill_seconds is not None:
                end = min(end, work.launched + task.prefill_seconds)
            work.prefill = [Span(work.launched, end, task.prefilled_tokens())]
        return work

    def _moment(self, at: float | None) -> float | None:
        return None if at is None or self._offset is None else at + self._offset
