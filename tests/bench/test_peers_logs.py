"""llama-server's log and mlx-lm's steps, read as accounts of their tasks."""

from __future__ import annotations

import itertools
import json
from typing import NamedTuple

import pytest

from plait.bench.abandon.llama_log import LlamaLog
from plait.bench.abandon.mlx_child import watched
from plait.bench.abandon.mlx_steps import MlxSteps
from plait.bench.abandon.served import Span

# --- llama-server's log ------------------------------------------------------------------------

LOG = """\
0.01.000.000 I slot launch_slot_: id  3 | task -1 | sampler chain: logits -> greedy
0.01.000.000 I slot launch_slot_: id  3 | task 0 | processing task, is_child = 0
0.01.000.100 I slot   operator(): id  3 | task 0 | new prompt, n_keep = 0, task.n_tokens = 38
0.01.000.200 I slot   operator(): id  3 | task 0 | cached n_tokens = 0, memory_seq_rm [0, end)
0.02.000.000 I slot print_timing: id  3 | task 0 | prompt eval time =     500.00 ms /    38 tokens
0.02.000.000 I slot print_timing: id  3 | task 0 |        eval time =     500.00 ms /    20 tokens
0.02.000.000 I slot      release: id  3 | task 0 | stop processing: n_tokens = 57, truncated = 0
0.02.100.000 I slot launch_slot_: id  3 | task 21 | processing task, is_child = 0
0.02.100.100 I slot   operator(): id  3 | task 21 | new prompt, n_keep = 0, task.n_tokens = 38
0.02.100.200 I slot   operator(): id  3 | task 21 | cached n_tokens = 37, memory_seq_rm [37, end)
0.02.500.000 W srv          stop: cancel task, id_task = 21
0.02.600.000 I slot      release: id  3 | task 21 | stop processing: n_tokens = 44, truncated = 0
0.02.700.000 W srv          stop: cancel task, id_task = 30
a line of something else
"""


def llama_log(text: str, delays: list[float]) -> LlamaLog:
    """Its second 0 is the client's 100; lines arrive with some delay."""
    log = LlamaLog()
    for line, delay in zip(text.splitlines(), itertools.cycle(delays), strict=False):
        at = float(line[2:8]) if line[:1] == "0" else 0.0
        log.take(line, 100.0 + at + delay)
    return log


def test_a_log_tells_when_each_task_ran_and_what_it_decoded() -> None:
    works, busy = llama_log(LOG, [0.2, 0.0, 0.5]).works()

    assert [(w.order, w.decoded, w.prompt_tokens) for w in works] == [
        (0, 20, 38),
        (21, 7, 1),
        (30, 0, 0),
    ]
    assert [w.launched for w in works] == [pytest.approx(101.0), pytest.approx(102.1), None]
    assert [w.cancelled for w in works] == [None, pytest.approx(102.5), pytest.approx(102.7)]
    (prompt,) = works[0].prefill
    assert [prompt.begin, prompt.end] == pytest.approx([101.0, 101.5])
    assert busy == pytest.approx(1.5)


def test_a_task_without_its_release_is_pending_and_one_before_the_run_is_forgotten() -> None:
    first, rest = LOG.split("0.02.500", 1)
    log = llama_log(first, [0.0])
    assert (log.seen, log.pending) == (2, True)

    log.forget()
    for line in ("0.02.500" + rest).splitlines():
        log.take(line, 100.0)

    assert (log.seen, log.pending) == (2, False)  # both by their cancels
    assert [work.decoded for work in log.works()[0]] == [0, 0]


def test_a_prompt_left_half_read_counts_only_what_was_read() -> None:
    log = llama_log(LOG.replace("n_tokens = 44", "n_tokens = 38").replace("= 37,", "= 8,"), [0.0])
    half = llama_log(LOG.replace("n_tokens = 44", "n_tokens = 16").replace("= 37,", "= 0,"), [0.0])

    assert [(w.prompt_tokens, w.decoded) for w in log.works()[0]][1] == (30, 1)
    assert [(w.prompt_tokens, w.decoded) for w in half.works()[0]][1] == (16, 0)


# --- mlx_lm.server's steps ---------------------------------------------------------------------


def steps(*events: dict[str, object]) -> MlxSteps:
    told = MlxSteps()
    for event in events:
        told.take(json.dumps(event), 0.0)
    return told


TWO_ROWS: list[dict[str, object]] = [
    {"insert": [[0, 11]], "at": 1.0},
    {"insert": [[1, 4]], "at": 1.5},
    {"step": [2.0, 3.0], "read": [[0, 10]], "made": []},
    {"step": [3.0, 4.0], "read": [[0, 11], [1, 3]], "made": []},
    {"step": [4.0, 4.5], "read": [], "made": [[0, False], [1, False]]},
    {"remove": [0], "at": 4.6},
    {"step": [5.0, 5.5], "read": [], "made": [[1, True]]},
    {"remove": [1], "at": 5.6},
]


def test_steps_tell_what_each_row_got_and_a_removed_one_the_token_under_way_too() -> None:
    told = steps(*TWO_ROWS)
    works, busy = told.works()

    assert [(w.launched, w.released, w.cancelled) for w in works] == [
        (2.0, 4.6, 4.6),
        (3.0, 5.5, None),
    ]
    assert [(w.decoded, w.prompt_tokens) for w in works] == [(2, 11), (2, 3)]
    assert works[0].prefill == [Span(2.0, 3.0, 10, 1.0), Span(3.0, 4.0, 1, 0.25)]
    assert [w.decode_seconds for w in works] == [0.5, 0.75]
    assert (busy, told.pending, told.seen) == (3.0, False, 2)


def test_what_leaves_the_queue_is_told_by_its_number_in_the_run() -> None:
    heard: list[int] = []
    told = MlxSteps(heard.append)
    told.take('{"insert": [[0, 4]], "at": 1.0}', 1.0)
    told.forget()

    told.take('{"insert": [[1, 4]], "at": 1.0}', 1.0)
    told.take('{"insert": [[2, 4]], "at": 1.0}', 1.0)
    told.take('{"begin": [1, 2]}', 1.0)

    assert heard == [0, 1]
    assert told.pending


class Made(NamedTuple):
    uid: int
    finish_reason: str | None


class Read(NamedTuple):
    uid: int
    progress: tuple[int, int]


class Generator:
    """In the shape of mlx-lm's: one step reads the whole prompt, each further one makes a token."""

    def __init__(self) -> None:
        self._unprocessed_sequences: list[tuple[int, int]] = []
        self._reading: list[tuple[int, int]] = []
        self._rows: list[int] = []

    def insert_segments(self, segments: list[list[list[int]]]) -> list[int]:
        self._unprocessed_sequences += [(0, len(segments[0][0]))]
        return [0]

    def _make_batch(self, count: int) -> list[tuple[int, int]]:
        return [self._unprocessed_sequences.pop(0) for _ in range(count)]

    def next(self) -> tuple[list[Read], list[Made]]:
        made = [Made(uid, None) for uid in self._rows]
        taken = self._make_batch(len(self._unprocessed_sequences))
        self._rows += [uid for uid, _ in taken]
        return [Read(uid, (length, length)) for uid, length in taken], made

    def remove(self, uids: list[int]) -> None:
        self._rows = [uid for uid in self._rows if uid not in uids]


def test_a_watched_batch_tells_all_that_an_account_needs() -> None:
    begun: list[int] = []
    told = MlxSteps(begun.append)
    batch = watched(Generator, lambda event: told.take(json.dumps(event), 0.0))()

    assert batch.insert_segments([[[5, 6, 7]]]) == [0]
    for _ in range(3):
        batch.next()
    batch.remove([0])
    batch.next()

    (work,), busy = told.works()
    assert (work.prompt_tokens, work.decoded, begun) == (3, 3, [0])  # one was under way
    assert work.launched is not None
    assert work.cancelled is not None
    assert busy > 0
