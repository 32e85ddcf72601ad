"""What one target did at one share of hang-ups: the runs of all slices as one set of figures.

Where a target knows each request's times, dead engine time counts from the reader's own moment of
leaving. With `no_cancel` the reader itself has counted what came for nobody. Figures that cannot be
had are None, never 0. Pure; does NOT judge (see `report`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean

from plait.bench.abandon.dead import engine_seconds
from plait.bench.abandon.running import Record, Run
from plait.bench.abandon.target import Account, Phase


@dataclass(slots=True)
class Outcome:
    """`control`: the same useful work, with nobody leaving (see `schedule.ended_there`)."""

    target: str
    percent: float
    control: bool = False
    no_cancel: bool = False
    runs: list[Run] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.percent:g} % control" if self.control else f"{self.percent:g} %"

    @property
    def sources(self) -> str:
        return ", ".join(sorted({run.account.source for run in self.runs}))

    # --- those who left --------------------------------------------------------------------------

    @property
    def left(self) -> int:
        return sum(record.left_at is not None for _, record in self._pairs())

    @property
    def left_in_prefill(self) -> int:
        """Before their first token, be it in the queue."""
        return sum(_phase(record) == "prefill" for _, record in self._pairs())

    def decoded_after(self) -> list[int] | None:
        """Tokens decoded after the hang-up, of each who had received some by then."""
        return self._after("decode")

    def prefilled_after(self) -> list[int] | None:
        """Prompt tokens computed after the hang-up, of each who had received no token by then."""
        return self._after("prefill")

    def most_chunks_after(self) -> int | None:
        """Of prompt, computed after one hang-up; None where the target does not tell chunks."""
        chunks = [
            len(account.spans[record.index].chunks_after)
            for account, record in self._pairs()
            if _phase(record) == "prefill" and record.index in account.spans
        ]
        return max(chunks, default=None)

    @property
    def mean_after(self) -> float | None:
        """Tokens decoded after a hang-up, where they are known only all together."""
        means = [run.account.mean_after for run in self.runs]
        known = [mean for mean in means if mean is not None]
        return fmean(known) if known else None

    @property
    def dead_seconds(self) -> float | None:
        if self.no_cancel:
            return sum(_dead_seconds(run) for run in self.runs)
        return _sum([run.account.dead_seconds for run in self.runs])

    @property
    def dead_seconds_each(self) -> float | None:
        return _ratio(self.dead_seconds, self.left)

    @property
    def dead_share(self) -> float | None:
        return _ratio(self.dead_seconds, self.busy_seconds)

    # --- those who stayed ------------------------------------------------------------------------

    @property
    def usable_tokens(self) -> int:
        """Delivered while there was a reader."""
        return sum(record.read for _, record in self._pairs())

    @property
    def tokens_per_second(self) -> float | None:
        return _ratio(self.usable_tokens, sum(run.seconds for run in self.runs))

    @property
    def tokens_per_working_second(self) -> float | None:
        """Without the time for prompts whose reader left before the first token: that was living
        work, but brings no tokens. None where the target does not tell its times."""
        if not all(run.account.spans for run in self.runs):
            return None
        without = sum(run.seconds - _fruitless_seconds(run) for run in self.runs)
        return _ratio(self.usable_tokens, without)

    @property
    def busy_seconds(self) -> float | None:
        return _sum([run.account.busy_seconds for run in self.runs])

    @property
    def cpu_ms_per_token(self) -> float | None:
        cpu = _sum([run.account.cpu_seconds for run in self.runs])
        return None if cpu is None else _ratio(1000 * cpu, self.usable_tokens)

    def queue_waits_ms(self) -> list[float]:
        """Of all who got a slot, from when they were due."""
        return [
            1000 * (account.queue_waits[record.index] + record.sent - record.due)
            for account, record in self._pairs()
            if record.index in account.queue_waits
        ]

    def first_token_ms(self) -> list[float]:
        return [
            1000 * (record.first_at - record.sent)
            for _, record in self._pairs()
            if record.left_at is None and record.first_at is not None
        ]

    def gaps_ms(self) -> list[float]:
        return [
            1000 * gap
            for _, record in self._pairs()
            if record.left_at is None
            for gap in record.gaps
        ]

    # --- arithmetic ------------------------------------------------------------------------------

    def _pairs(self) -> Iterator[tuple[Account, Record]]:
        for run in self.runs:
            for record in run.records:
                yield run.account, record

    def _after(self, phase: Phase) -> list[int] | None:
        found = []
        for account, record in self._pairs():
            if _phase(record) != phase:
                continue
            if phase == "decode" and self.no_cancel:
                found.append(record.read_after)
                continue
            if self.no_cancel:
                tokens = _prompt_read_after(account, record)
            else:
                known = account.decoded_after if phase == "decode" else account.prefilled_after
                tokens = None if known is None else known.get(record.index)
            if tokens is None:
                return None
            found.append(tokens)
        return found


def _phase(record: Record) -> Phase | None:
    """Where its reader left; None: he did not."""
    if record.left_at is None:
        return None
    return "decode" if record.read else "prefill"


def _fruitless_seconds(run: Run) -> float:
    spans = run.account.spans
    parts = {
        record.index: (begin, record.left_at)
        for record in run.records
        if _phase(record) == "prefill"
        and record.left_at is not None
        and record.index in spans
        and (begin := spans[record.index].started_at) is not None
        and begin < record.left_at
    }
    return engine_seconds(spans, parts)


def _dead_seconds(run: Run) -> float:
    """Of readers who left without a word; where times are unknown, by their share of all tokens."""
    account = run.account
    left = {r.index: r.left_at for r in run.records if r.left_at is not None}
    if account.spans:
        parts = {
            index: (moment, account.spans[index].released_at)
            for index, moment in left.items()
            if index in account.spans and account.spans[index].released_at > moment
        }
        return engine_seconds(account.spans, parts)
    dead = sum(record.read_after for record in run.records)
    tokens = dead + sum(record.read for record in run.records)
    return (account.busy_seconds or 0.0) * dead / tokens if tokens else 0.0


def _prompt_read_after(account: Account, record: Record) -> int | None:
    """Of a reader who left without a word: as if his prompt was read at an even pace."""
    span = account.spans.get(record.index)
    if span is None or span.started_at is None or record.first_after_at is None:
        return None
    assert record.left_at is not None
    whole = record.first_after_at - span.started_at
    after = record.first_after_at - max(record.left_at, span.started_at)
    return round(span.prompt_tokens * after / whole) if whole > 0 else 0


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _ratio(value: float | None, of: float | None) -> float | None:
    """None also of nothing, as in a run without requests."""
    return None if value is None or not of else value / of
