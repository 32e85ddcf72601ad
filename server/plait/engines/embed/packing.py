"""Which texts go into the next micro-batch, and how large it may be.

The policy. Jobs take turns in a ring: the batch begins with the first unanswered text of the job
whose turn it is, so every job gets on, and answers leave in order. It is filled with texts of
about that length, one of each job in turn, so a job with one text shares a batch with the one that
has a thousand; shorter and longer ones follow as far as little of the batch is padding. `Pace`
learns from measured times how many tokens fill a step. Does NOT know how a batch is run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from plait.engines.embed.job import BUCKET_TOKENS, EmbedJob, Text

# Of a step; the worker's contract asks for 50 ms, and times vary.
TARGET_SECONDS = 0.04
MAX_TEXTS = 64
# Smaller ones cost more a token than they save anybody: a batch can be cut short at any time.
MIN_TOKENS, MAX_TOKENS = 128, 16_384
# Of a batch one part of so many may be padding, and a few tokens anyway: a run costs as much as
# that by itself.
PADDING_PART = 5
PADDING_TOKENS = 32


@dataclass(slots=True)
class Pace:
    """How many tokens, padding included, a batch may have to take about TARGET_SECONDS."""

    tokens: int = 128

    def took(self, tokens: int, seconds: float) -> None:
        """A batch of so many took so long. One that was much smaller says nothing."""
        if tokens * 2 < self.tokens or seconds <= 0:
            return
        fitting = tokens * TARGET_SECONDS / seconds
        # A single slow batch, on a busy machine, must not make the next ones tiny.
        bounded = min(max(fitting, self.tokens / 2), self.tokens * 1.25)
        self.tokens = round(min(max(bounded, MIN_TOKENS), MAX_TOKENS))


@dataclass(slots=True)
class Batch:
    """Texts in order of their rows, each with its job."""

    entries: list[tuple[EmbedJob, Text]] = field(default_factory=list)

    @property
    def jobs(self) -> set[int]:
        return {job.id for job, _ in self.entries}

    @property
    def texts(self) -> list[list[int]]:
        return [text.ids for _, text in self.entries]

    @property
    def tokens(self) -> int:
        """Padding included."""
        return len(self.entries) * max(len(text.ids) for _, text in self.entries)

    def texts_of(self, job: EmbedJob) -> list[Text]:
        return [text for owner, text in self.entries if owner is job]


class Packer:
    """The ring. Holds the jobs that were started and not removed."""

    def __init__(self) -> None:
        self._ring: deque[EmbedJob] = deque()  # at most one entry per started job

    def join(self, job: EmbedJob) -> None:
        self._ring.append(job)

    def leave(self, job: EmbedJob) -> None:
        self._ring.remove(job)

    def pack(self, tokens: int) -> Batch | None:
        """Of at most so many tokens, or one text. None: nothing waits."""
        jobs = [job for job in self._ring if job.active and job.waiting]
        if not jobs:
            return None
        head = jobs[0]
        self._ring.remove(head)
        self._ring.append(head)
        first = head.first
        assert first is not None
        batch = Batch([(head, head.take(first))])
        if not first.alone:
            self._fill(batch, [*jobs[1:], head], first.bucket, tokens)
        return batch

    def _fill(self, batch: Batch, jobs: list[EmbedJob], begin: int, tokens: int) -> None:
        found = {bucket for job in jobs for bucket in job.buckets}
        longest, used = begin, begin  # tokens a row has, and those that are no padding
        for bucket in sorted(found, key=lambda bucket: (abs(bucket - begin), -bucket)):
            longest = max(longest, bucket)
            for job, text in _in_turn(jobs, bucket):
                rows = len(batch.entries) + 1
                size = rows * longest
                padding = size - used - bucket
                most = max(PADDING_TOKENS, size // PADDING_PART)
                if rows > MAX_TEXTS or size > tokens or padding > most:
                    return
                used += bucket
                batch.entries.append((job, job.take(text)))


def _in_turn(jobs: list[EmbedJob], bucket: int) -> list[tuple[EmbedJob, Text]]:
    """Texts of that bucket: the first of each job, then the second of each, and so on."""
    queues = [(job, list(job.buckets.get(bucket, ()))[:MAX_TEXTS]) for job in jobs]
    longest = max(len(queue) for _, queue in queues)
    return [
        (job, queue[turn]) for turn in range(longest) for job, queue in queues if turn < len(queue)
    ]


assert MIN_TOKENS >= BUCKET_TOKENS
