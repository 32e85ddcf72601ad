"""What the dead cost, from a server's log and from the outside, and what the living got."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from plait.bench.abandon.dead import engine_seconds
from plait.bench.abandon.outcome import Outcome
from plait.bench.abandon.plait_log import PlaitLog
from plait.bench.abandon.running import Record, Run
from plait.bench.abandon.target import Account, HangUp, Span

DECODE = HangUp("decode", "cancel", after_tokens=10)
PREFILL = HangUp("prefill", "close", after_seconds=1.0)


def record(index: int, read: int = 10, **fields: float | int | None) -> Record:
    """Due and sent at 0, its first token at 1."""
    asked = DECODE if fields.get("left_at") is not None else None
    made = Record(index, asked, due=0.0, read=read, first_at=1.0 if read else None)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def outcome(*runs: Run, no_cancel: bool = False) -> Outcome:
    return Outcome("plait", 20.0, no_cancel=no_cancel, runs=list(runs))


# --- engine time -----------------------------------------------------------------------------


def test_engine_time_is_shared_by_those_who_hold_a_slot() -> None:
    spans = {0: Span(0.0, 10.0, 1), 1: Span(4.0, 10.0, 1), 2: Span(None, 9.0, 0)}

    assert engine_seconds(spans, {0: (2.0, 6.0)}) == pytest.approx(2.0 + 2.0 / 2)


def test_outside_the_time_in_a_slot_nothing_is_spent() -> None:
    assert engine_seconds({0: Span(5.0, 6.0, 1)}, {0: (0.0, 5.0), 1: (0.0, 9.0)}) == 0.0


moments = st.floats(0, 100)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(moments, moments).map(sorted), min_size=1, max_size=6))
def test_the_shares_of_all_add_up_to_the_time_in_which_anybody_was_served(
    held: list[list[float]],
) -> None:
    spans = {index: Span(begin, end, 1) for index, (begin, end) in enumerate(held)}
    whole = {index: (begin, end) for index, (begin, end) in enumerate(held)}
    busy, until = 0.0, 0.0
    for begin, end in sorted(held):
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)

    assert engine_seconds(spans, whole) == pytest.approx(busy)


# --- Plait's log -----------------------------------------------------------------------------


def released(session: str, **facts: object) -> str:
    line = {
        "event": "stream.released",
        "session": session,
        "stream": 1,
        "opened_at": 1.0,
        "started_at": 2.0,
        "released_at": 3.0,
        "usage": {"completion_tokens": 7},
        "wasted": 1,
        "wasted_prompt": [4],
    }
    return json.dumps(line | facts) + "\n"


def line(event: str, session: str, **facts: object) -> str:
    return json.dumps({"event": event, "session": session, **facts}) + "\n"


@pytest.mark.anyio
async def test_a_stream_is_settled_when_it_ended_and_its_engine_has_let_go() -> None:
    log = PlaitLog()
    log.take('not JSON at all, with "stream.ended" in it')
    log.take(line("stream.started", "a"))
    log.take(line("stream.ended", "a", wasted={"tokens": 1}))  # its cancel was late
    log.take(line("stream.ended", "b"))  # it never started
    log.take(released("a"))

    entries = await log.settled(["a", "b"])

    assert entries["b"].cost is None
    cost = entries["a"].cost
    assert cost is not None
    assert (cost.wasted, cost.wasted_prompt, cost.usage) == (1, [4], {"completion_tokens": 7})


# --- outcomes --------------------------------------------------------------------------------


def test_those_who_left_are_told_by_where_they_left_and_the_others_are_the_living() -> None:
    records = [record(0, ended_at=5.0), record(1, left_at=4.0), record(2, read=0, left_at=2.0)]
    records[0].gaps = [0.5]
    account = Account("log", {1: 1, 2: 0}, {1: 0, 2: 4}, dead_seconds=0.2, busy_seconds=4.0)

    found = outcome(Run(records, account, 5.0))

    assert (found.left, found.left_in_prefill) == (2, 1)
    assert (found.decoded_after(), found.prefilled_after()) == ([1], [4])
    assert (found.dead_seconds_each, found.dead_share) == (0.1, 0.05)
    assert (found.tokens_per_second, found.first_token_ms(), found.gaps_ms()) == (4, [1000], [500])


def test_slices_add_up() -> None:
    account = Account("log", dead_seconds=1.0, busy_seconds=10.0, cpu_seconds=2.0)
    runs = [Run([record(0, read=10, ended_at=1.0)], account, 5.0) for _ in range(2)]

    found = outcome(*runs)

    assert (found.usable_tokens, found.tokens_per_second) == (20, 2.0)
    assert (found.dead_seconds, found.busy_seconds, found.cpu_ms_per_token) == (2.0, 20.0, 200.0)


def test_what_one_slice_cannot_tell_is_told_of_none() -> None:
    known, unknown = Account("log", {0: 1}, cpu_seconds=1.0), Account("metrics", mean_after=2.0)
    runs = [Run([record(0, left_at=1.0)], account, 1.0) for account in (known, unknown)]

    found = outcome(*runs)

    assert (found.decoded_after(), found.cpu_ms_per_token, found.dead_share) == (None, None, None)
    assert (found.mean_after, found.sources) == (2.0, "log, metrics")


def test_waiting_in_the_queue_counts_from_when_the_request_was_due() -> None:
    late = record(0, due=1.0, sent=1.5, ended_at=3.0)
    account = Account("log", queue_waits={0: 0.25})

    assert outcome(Run([late], account, 1.0)).queue_waits_ms() == [750.0]


def test_the_time_for_prompts_that_were_left_is_not_held_against_those_who_were_answered() -> None:
    spans = {0: Span(0.0, 10.0, 10), 1: Span(2.0, 6.5, 0)}
    records = [record(0, ended_at=10.0), record(1, read=0, left_at=6.0)]

    found = outcome(Run(records, Account("log", spans=spans), 10.0))

    assert found.tokens_per_working_second == pytest.approx(10 / (10 - (6 - 2) / 2))


def test_who_left_without_a_word_is_dead_until_his_answer_ends() -> None:
    spans = {0: Span(0.0, 10.0, 30, prompt_tokens=8), 1: Span(0.0, 10.0, 10, prompt_tokens=8)}
    left = record(0, left_at=4.0, read_after=20, ended_at=10.0)
    prompt = record(1, read=0, left_at=1.0, read_after=10, first_after_at=4.0, ended_at=10.0)

    found = outcome(Run([left, prompt], Account("log", {}, {}, spans=spans), 4.0), no_cancel=True)

    assert (found.decoded_after(), found.prefilled_after()) == ([20], [6])
    assert found.dead_seconds == pytest.approx(3.0 / 2 + 6.0 / 2 + 6.0 / 2)


def test_where_no_times_are_known_the_dead_get_the_share_of_their_tokens() -> None:
    left = record(0, read=10, left_at=4.0, read_after=30, ended_at=10.0)

    found = outcome(Run([left], Account("CPU", busy_seconds=8.0), 4.0), no_cancel=True)

    assert found.dead_seconds == 6.0
