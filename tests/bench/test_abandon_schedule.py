"""The schedule differs between two runs in nothing but what is compared."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings, strategies as st

from plait.bench.abandon.schedule import Plan, ended_there, schedule, slices
from plait.bench.abandon.target import Request

PLAN = Plan(40, 120, seed=1, prefill_words=300, prefill_seconds=2.0)

plans = st.builds(
    Plan,
    requests=st.integers(1, 40),
    tokens=st.integers(1, 600),
    seed=st.integers(),
    prefill_words=st.just(20),
    prefill_seconds=st.floats(0.001, 100),
    load=st.none() | st.floats(0.01, 1000),
    engine=st.sampled_from(["", "scripted"]),
)
percents = st.floats(0, 100)
bounded = settings(deadline=None, max_examples=30)


def leaving(requests: list[Request]) -> dict[int, object]:
    return {r.index: r.hang_up for r in requests if r.hang_up is not None}


@bounded
@given(plans, percents)
def test_the_same_seed_gives_the_same_schedule(plan: Plan, percent: float) -> None:
    assert schedule(plan, percent) == schedule(plan, percent)


@bounded
@given(plans, percents, percents)
def test_who_leaves_at_a_lower_share_leaves_in_the_same_place_at_a_higher_one(
    plan: Plan, one: float, other: float
) -> None:
    fewer, more = (leaving(schedule(plan, percent)) for percent in sorted((one, other)))

    assert fewer.items() <= more.items()


@bounded
@given(plans, percents)
def test_the_requests_are_the_same_at_every_share(plan: Plan, percent: float) -> None:
    stayed = [replace(request, hang_up=None) for request in schedule(plan, percent)]

    assert stayed == schedule(plan, 0)


@bounded
@given(plans, percents)
def test_so_many_leave_and_within_the_answer_or_the_prompt(plan: Plan, percent: float) -> None:
    requests = schedule(plan, percent)
    leaves = [request.hang_up for request in requests if request.hang_up is not None]

    assert len(leaves) == round(plan.requests * percent / 100)
    for leave in leaves:
        if leave.phase == "decode":
            assert 1 <= leave.after_tokens <= max(1, plan.tokens - 1)
        else:
            assert 0 < leave.after_seconds < plan.prefill_seconds


@bounded
@given(plans)
def test_arrivals_never_go_back_and_are_all_at_once_without_a_load(plan: Plan) -> None:
    moments = [request.at for request in schedule(plan, 0)]

    assert moments == sorted(moments)
    assert plan.load is not None or set(moments) == {0.0}


@bounded
@given(plans, percents, st.integers(1, 9))
def test_slices_hold_every_request_once_and_begin_at_0(
    plan: Plan, percent: float, count: int
) -> None:
    requests = schedule(plan, percent)

    parts = slices(requests, count)

    assert [r.index for part in parts for r in part] == list(range(plan.requests))
    assert {part[0].at for part in parts} == {0.0}
    assert len(parts) <= count


@bounded
@given(plans, percents)
def test_in_the_control_nobody_leaves_and_nobody_is_answered_beyond_where_he_would_have(
    plan: Plan, percent: float
) -> None:
    requests = {request.index: request for request in schedule(plan, percent)}

    for kept in ended_there(list(requests.values())):
        leave = requests[kept.index].hang_up
        assert kept.hang_up is None
        assert kept.max_tokens == (plan.tokens if leave is None else leave.after_tokens)


def test_a_fifth_of_those_who_leave_leave_a_long_prompt_and_each_kind_of_leaving_comes() -> None:
    leaves = [r.hang_up for r in schedule(PLAN, 50) if r.hang_up is not None]

    assert sum(leave.phase == "prefill" for leave in leaves) == len(leaves) // 5
    assert {leave.how for leave in leaves} == {"cancel", "close", "reset"}


def test_the_load_is_the_mean_rate_of_arrivals() -> None:
    requests = schedule(replace(PLAN, requests=4000, load=5.0, prefill_words=1), 0)

    assert 700 < requests[-1].at < 900
