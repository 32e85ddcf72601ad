"""Admission with values only: slots, memory, order, fairness and time-outs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from plait.scheduling.admission import Candidate, Capacity, Decision, decide, next_timeout

PLENTY = Capacity(free_slots=99, available_bytes=10**9)


def candidate(ticket: int, owner: str = "a", size: int = 10, **fields: object) -> Candidate:
    base = Candidate(ticket, owner, size, 0.0)
    return replace(base, **fields)  # type: ignore[arg-type]


def run(queue: list[Candidate], capacity: Capacity = PLENTY, now: float = 0.0) -> Decision:
    return decide(queue, capacity, [], now, timeout_seconds=60)


def test_what_fits_starts_and_the_rest_waits_in_order() -> None:
    decision = run([candidate(i) for i in (1, 2, 3)], Capacity(2, 1000))
    assert decision.start == [1, 2]
    assert decision.waiting == [3]


def test_nobody_overtakes_the_first_in_line_that_does_not_fit() -> None:
    decision = run([candidate(1, size=500), candidate(2, size=1)], Capacity(2, 100))
    assert decision.start == []
    assert decision.waiting == [1, 2]


def test_owners_take_turns() -> None:
    queue = [candidate(1), candidate(2), candidate(3), candidate(4, owner="b")]
    assert run(queue).start == [1, 4, 2, 3]


def test_the_owner_served_last_goes_after_the_others() -> None:
    queue = [candidate(1, owner="a"), candidate(2, owner="b")]
    assert decide(queue, Capacity(1, 100), ["a"], 0, 60).start == [2]


def test_interactive_goes_before_batch() -> None:
    queue = [candidate(1, batch=True), candidate(2)]
    assert run(queue).start == [2, 1]


def test_a_resuming_stream_goes_first() -> None:
    queue = [candidate(1), candidate(2, size=0, resuming=True)]
    assert run(queue, Capacity(1, 0)).start == [2]


def test_of_resuming_streams_those_that_kept_their_memory_go_first() -> None:
    queue = [candidate(1, resuming=True), candidate(2, size=0, resuming=True), candidate(3)]
    decision = run(queue, Capacity(9, 5))
    assert (decision.start, decision.waiting) == ([2], [1, 3])


def test_waiting_too_long_is_refused_and_resuming_never_is() -> None:
    queue = [candidate(1), candidate(2, resuming=True)]
    decision = run(queue, Capacity(0, 0), now=60)
    assert [(ticket, error.code) for ticket, error in decision.refuse] == [(1, "queue_timeout")]
    assert decision.waiting == [2]


def test_the_next_timeout_is_the_earliest_and_none_for_an_empty_queue() -> None:
    assert next_timeout([candidate(1, enqueued=5.0), candidate(2, enqueued=3.0)], 60) == 63
    assert next_timeout([], 60) is None


def test_an_app_at_its_limit_waits_alone_and_its_later_ones_behind_it() -> None:
    queue = [candidate(1, "a", 50), candidate(2, "a", 1), candidate(3, "b"), candidate(4, "b")]
    decision = run(queue, replace(PLENTY, apps={"a": 40}))
    assert (decision.start, decision.waiting) == ([3, 4], [1, 2])
    assert decision.short_apps


def test_buffers_and_kv_that_is_taken_as_streams_run_are_the_machines() -> None:
    queue = [candidate(1, size=50, buffer_bytes=10)]
    for freed, needs in ((True, 60), (False, 10)):
        room = replace(PLENTY, machine_bytes=needs, kv_freed=freed)
        assert run(queue, room).start == [1]
        decision = run(queue, replace(room, machine_bytes=needs - 1))
        assert (decision.waiting, decision.needs_bytes, decision.blocked) == ([1], needs, 1)


def test_nobody_overtakes_the_first_that_waits_for_the_machines_memory() -> None:
    queue = [candidate(1, size=500), candidate(2, size=1)]
    assert run(queue, replace(PLENTY, machine_bytes=100)).start == []


def test_who_takes_nothing_goes_on_however_short_the_others_are_of_memory() -> None:
    back = candidate(1, size=0, resuming=True)
    displaced = candidate(3, size=0, resuming=True, displaced=True)
    decision = run([back, candidate(2, "b", size=500), displaced], Capacity(9, 100, -7))
    assert (decision.start, decision.waiting) == ([1, 3], [2])
    assert (decision.blocked, decision.needs_bytes) == (2, 500)


def test_who_takes_nothing_does_not_wait_for_its_app() -> None:
    displaced = candidate(2, size=0, resuming=True, displaced=True)
    decision = run([candidate(1, size=50), displaced], Capacity(9, 100, apps={"a": 20}))
    assert (decision.start, decision.waiting) == ([2], [1])


def test_on_a_machine_that_is_short_only_those_go_on_who_take_nothing() -> None:
    queue = [candidate(1), candidate(2, size=0, resuming=True), candidate(3, size=0)]
    assert run(queue, replace(PLENTY, halted=True)).start == [2]


@pytest.mark.parametrize(
    ("capacity", "data"),
    [
        (Capacity(1, 5, model="m"), (10, 5)),
        (Capacity(1, 50, machine_bytes=7, model="m"), (10, 7)),
        (Capacity(1, 50, apps={"a": 9}, model="m"), (10, 9)),
    ],
)
def test_who_waited_for_memory_until_the_time_out_is_told_the_numbers(
    capacity: Capacity, data: tuple[int, int]
) -> None:
    ((_, error),) = run([candidate(1)], capacity, now=60).refuse
    required, available = data
    assert error.code == "resource_not_available"
    assert error.data == {"model": "m", "required_bytes": required, "available_bytes": available}


def test_who_waited_while_no_slot_was_free_is_told_of_slots() -> None:
    ((_, error),) = run([candidate(1)], Capacity(0, 5), now=60).refuse
    assert error.code == "queue_timeout"


candidates = st.builds(
    Candidate,
    ticket=st.integers(1, 10**6),
    owner=st.sampled_from("abc"),
    needed_bytes=st.integers(0, 100),
    enqueued=st.floats(0, 100),
    batch=st.booleans(),
    resuming=st.booleans(),
    buffer_bytes=st.integers(0, 20),
)
queues = st.lists(candidates, max_size=20, unique_by=lambda c: c.ticket)


@given(queues, st.integers(0, 5), st.integers(0, 300), st.floats(0, 200))
def test_everyone_is_started_refused_or_waiting_and_capacity_holds(
    queue: list[Candidate], slots: int, available: int, now: float
) -> None:
    decision = run(queue, Capacity(slots, available), now)
    placed = decision.start + [t for t, _ in decision.refuse] + decision.waiting
    assert sorted(placed) == sorted(c.ticket for c in queue)
    started = [c for c in queue if c.ticket in decision.start]
    assert len(started) <= slots
    assert sum(c.needed_bytes for c in started) <= available


@given(queues, st.integers(0, 400), st.integers(0, 200), st.booleans())
def test_what_starts_fits_the_machine_and_its_app(
    queue: list[Candidate], machine: int, app: int, freed: bool
) -> None:
    capacity = replace(PLENTY, machine_bytes=machine, apps={"a": app}, kv_freed=freed)
    decision = run(queue, capacity)
    started = [c for c in queue if c.ticket in decision.start]
    assert sum(c.machine_bytes(capacity) for c in started) <= machine
    assert sum(c.app_bytes for c in started if c.owner == "a") <= app


@given(queues, st.integers(0, 5), st.integers(0, 300))
def test_the_order_of_the_queue_given_does_not_matter(
    queue: list[Candidate], slots: int, available: int
) -> None:
    shuffled = random.Random(0).sample(queue, len(queue))
    assert run(queue, Capacity(slots, available)) == run(shuffled, Capacity(slots, available))
