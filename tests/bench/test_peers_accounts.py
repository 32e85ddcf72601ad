"""From what foreign servers tell to what they did for readers who had left: pure values."""

from __future__ import annotations

import itertools
import json
import os
import socket
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from plait.bench.abandon.cpu_account import (
    Costs,
    Probes,
    Whole,
    account_of as by_cpu,
    costs,
    local_pid,
)
from plait.bench.abandon.gauges import Reading, reading
from plait.bench.abandon.http_exchange import Address
from plait.bench.abandon.llama_log import LlamaLog
from plait.bench.abandon.mlx_child import watched
from plait.bench.abandon.mlx_steps import MlxSteps
from plait.bench.abandon.served import Sent, Span, Work, account, charged_dead_seconds, matched
from plait.bench.abandon.somebodys import account_of
from plait.bench.abandon.sse import LINE_BYTES, EventLines
from plait.bench.serving import BenchError

STREAM = (
    b'data: {"a": 1}\n\n: ping\r\n\r\ndata: x\rdata:y\r\revent: e\nerror: {}\n\ndata: [DONE]\n\n'
)
EVENTS = [b'{"a": 1}', b"x\ny", b"{}", b"[DONE]"]


# --- events ------------------------------------------------------------------------------------


def test_events_are_the_same_wherever_their_bytes_are_cut_once() -> None:
    for cut in range(len(STREAM) + 1):
        lines = EventLines()
        assert lines.feed(STREAM[:cut]) + lines.feed(STREAM[cut:]) == EVENTS, cut


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_events_are_the_same_however_often_their_bytes_are_cut(cuts: list[int]) -> None:
    lines = EventLines()
    edges = [0, *sorted(cuts), len(STREAM)]

    events = [e for a, b in itertools.pairwise(edges) for e in lines.feed(STREAM[a:b])]

    assert events == EVENTS


def test_a_line_without_an_end_is_given_up() -> None:
    lines = EventLines()
    lines.feed(b"x" * LINE_BYTES)

    with pytest.raises(ValueError, match="bytes"):
        lines.feed(b"x")


# --- whose task is whose request ---------------------------------------------------------------


def whole(index: int, at: float, ended: float) -> Sent:
    return Sent(index, at, received=5, first=ended - 0.5, ended=ended)


def left(index: int, at: float, hung_up: float, received: int = 3) -> Sent:
    return Sent(index, at, received=received, hung_up=hung_up)


def done(order: int, launched: float, released: float) -> Work:
    return Work(order, launched, released, decoded=5)


def numbers(pairs: list[tuple[Sent, Work]]) -> dict[int, int]:
    return {sent.index: work.order for sent, work in pairs}


def test_tasks_are_paired_with_requests_in_order_of_arrival() -> None:
    sent = [whole(0, 1.0, 3.0), left(1, 2.0, 2.5), whole(2, 4.0, 6.0)]
    works = [done(10, 1.0, 3.0), Work(14, 2.0, 2.6, cancelled=2.55, decoded=4), done(20, 4.0, 6.0)]

    assert numbers(matched(reversed(sent), reversed(works))) == {0: 10, 1: 14, 2: 20}


def test_requests_sent_at_once_that_changed_places_are_told_by_how_they_ended() -> None:
    sent = [whole(0, 1.0, 9.0), left(1, 1.001, 2.0), whole(2, 1.002, 5.0)]
    works = [
        done(1, 1.01, 5.0),
        done(2, 1.01, 9.0),
        Work(3, 1.02, 2.2, cancelled=2.1, decoded=3),
    ]

    assert numbers(matched(sent, works)) == {0: 2, 1: 3, 2: 1}


def test_a_request_the_server_never_took_up_has_cost_it_nothing() -> None:
    sent = [whole(0, 1.0, 3.0), left(1, 1.1, 1.2, received=0), whole(2, 2.0, 4.0)]

    told = account(matched(sent, [done(1, 1.0, 3.0), done(2, 2.0, 4.0)]), "log", 3.0, None)

    assert told.decoded_after == {1: 0}
    assert told.prefilled_after == {1: 0}
    assert set(told.queue_waits) == {0, 2}


def test_a_hang_up_costs_what_came_beyond_the_tokens_received() -> None:
    decode = Work(1, 0.5, 3.0, cancelled=2.5, decoded=9, prefill=[Span(0.5, 1.0, 40)])
    prefill = Work(2, 2.0, 6.0, cancelled=3.5, decoded=1, prefill=[Span(2.0, 6.0, 400)])
    pairs = [(left(0, 0.0, 2.0, received=7), decode), (left(1, 1.0, 3.0, received=0), prefill)]

    told = account(pairs, "log", 5.5, 4.0)

    assert told.decoded_after == {0: 2, 1: 1}
    assert told.prefilled_after == {0: 0, 1: 300}
    assert told.queue_waits == {0: 0.5, 1: 1.0}
    assert told.spans[1].chunks_after == (300,)
    # Both held a slot from 2 to 3, when the first was dead; then the second one, alone.
    assert told.dead_seconds == pytest.approx(0.5 + 3.0)
    assert told.mean_after == 1.5


def test_steps_that_tell_their_time_are_charged_by_what_they_computed() -> None:
    work = Work(1, 0.0, 4.0, decoded=4, decode_seconds=2.0, prefill=[Span(0.0, 1.0, 10, 1.0)])

    assert charged_dead_seconds([(left(0, 0.0, 3.0, received=3), work)]) == pytest.approx(0.5)
    assert charged_dead_seconds([(left(0, 0.0, 0.5, received=0), work)]) == pytest.approx(2.5)
    assert charged_dead_seconds([(whole(0, 0.0, 4.0), work)]) == 0


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


# --- CPU time ---------------------------------------------------------------------------------


def test_the_cost_of_a_token_is_told_apart_by_two_requests_read_alone() -> None:
    each = costs(Whole(4.0, 400, 1), Whole(1.4, 40, 20))

    assert [each.prompt, each.decoded] == pytest.approx([0.01, 0.05])


@pytest.mark.parametrize("answer", [Whole(0.2, 40, 20), Whole(1.4, 40, 0)])
def test_cpu_time_that_says_nothing_of_tokens_is_no_account(answer: Whole) -> None:
    with pytest.raises(BenchError, match="/metrics"):
        costs(Whole(4.0, 400, 1), answer)


def test_each_hang_up_is_taken_at_the_mean_of_the_probes() -> None:
    probes = Probes([2.0, 4.0, 3.0], [100.0, 300.0], Costs(0.01, 0.05))
    sent = [whole(0, 0.0, 1.0), left(1, 0.0, 1.0), left(2, 0.0, 1.0, received=0)]

    told = by_cpu(probes, sent, 9.0)

    assert (told.mean_after, told.cpu_seconds) == (3.0, 9.0)
    assert told.dead_seconds == pytest.approx(3 * 0.05 + 200 * 0.01)
    assert "3.0 tokens (at most 4.0)" in told.source
    assert told.decoded_after is None
    assert by_cpu(probes, sent[:1], 9.0).mean_after is None


def test_the_process_that_listens_on_a_port_of_this_machine_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert local_pid(Address("127.0.0.1", port)) == os.getpid()
        assert local_pid(Address("192.0.2.1", port)) is None


# --- metrics -----------------------------------------------------------------------------------

VLLM = """\
vllm:generation_tokens_total{model_name="m"} 120.0
vllm:prompt_tokens_total{model_name="m"} 40.0
vllm:num_requests_running{model_name="m"} 1.0
vllm:num_requests_waiting{model_name="m"} 2.0
"""


def test_pages_of_known_servers_are_read_and_others_are_not() -> None:
    llama = "llamacpp:tokens_predicted_total 5\nllamacpp:requests_processing 1\n"

    assert reading(VLLM) == Reading("vLLM", 120.0, 40.0, 3.0)
    assert reading(llama) == Reading("llama-server", 5.0, 0.0, 1.0)
    assert reading("python_gc 1\n") is None
    assert reading("<html>") is None


def test_metrics_know_hang_ups_only_on_average() -> None:
    sent = [whole(0, 0.0, 1.0), left(1, 0.0, 1.0), left(2, 0.0, 1.0)]
    sent[0].completion_tokens = 6
    before, after = Reading("vLLM", 100, 0, 0), Reading("vLLM", 120, 0, 0)

    assert account_of(before, after, sent).mean_after == 4.0
    assert account_of(before, before, sent).mean_after == 0.0
    assert account_of(before, after, sent[:1]).mean_after is None
