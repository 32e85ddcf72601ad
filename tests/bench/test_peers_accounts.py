"""From what foreign servers tell to what they did for readers who had left: pure values."""

from __future__ import annotations

import itertools
import os
import socket

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

    assert reading(VLLM) == Reading("vLLM", 120.0, 3.0)
    assert reading(llama) == Reading("llama-server", 5.0, 1.0)
    assert reading("python_gc 1\n") is None
    assert reading("<html>") is None


def test_metrics_know_hang_ups_only_on_average() -> None:
    sent = [whole(0, 0.0, 1.0), left(1, 0.0, 1.0), left(2, 0.0, 1.0)]
    sent[0].completion_tokens = 6
    before, after = Reading("vLLM", 100, 0), Reading("vLLM", 120, 0)

    assert account_of(before, after, sent).mean_after == 4.0
    assert account_of(before, before, sent).mean_after == 0.0
    assert account_of(before, after, sent[:1]).mean_after is None
