"""Turns between owners: the order of the line, who gives way, who leaves a full line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given, settings, strategies as st

from plait.scheduling.admission import Candidate, Capacity, decide
from plait.scheduling.fairness import (
    PATIENCE_SECONDS,
    TURN_SECONDS,
    Holder,
    Way,
    crowds,
    in_order,
    make_way,
)

LATE = TURN_SECONDS + 100


def waiting(ticket: int, owner: str = "a", **fields: object) -> Candidate:
    return replace(Candidate(ticket, owner, 0, 0.0), **fields)  # type: ignore[arg-type]


def way(first: Candidate, holders: list[Holder], now: float = LATE) -> Way:
    held: dict[str, int] = {}
    for holder in holders:
        held[holder.owner] = held.get(holder.owner, 0) + 1
    return make_way(first, holders, held, now)


# --- the order of the line ----------------------------------------------------------------------


def test_who_holds_fewer_slots_goes_first() -> None:
    queue = [waiting(1, "a"), waiting(2, "b"), waiting(3, "b")]

    assert [one.ticket for one in in_order(queue, [], {"a": 2})] == [2, 3, 1]


def test_a_starved_stream_goes_before_those_that_want_their_slot_back() -> None:
    queue = [waiting(1, "a", resuming=True), waiting(2, "b")]

    soon = decide(queue, Capacity(1, 10, held={"a": 1}), [], 0.5, 60)
    late = decide(queue, Capacity(1, 10, held={"a": 1}), [], PATIENCE_SECONDS, 60)

    assert (soon.start, soon.look_at, late.start) == ([1], PATIENCE_SECONDS, [2])


def test_where_memory_is_short_those_that_hold_it_go_on() -> None:
    queue = [waiting(1, "a", resuming=True), waiting(2, "b", needed_bytes=20)]

    decision = decide(queue, Capacity(1, 10), [], LATE, 200)

    assert decision.start == [1]


def test_who_had_to_give_way_waits_in_its_owners_turn_and_is_never_timed_out() -> None:
    queue = [waiting(1, "a", resuming=True, displaced=True), waiting(2, "b")]

    decision = decide(queue, Capacity(1, 10, held={"a": 1}), [], 70.0, 60)

    assert (decision.waiting, [ticket for ticket, _ in decision.refuse]) == ([], [2])
    assert decision.start == [1]


# --- who gives way ------------------------------------------------------------------------------


def test_of_an_owner_that_holds_several_the_last_to_come_gives_way() -> None:
    holders = [Holder(1, "a", since=1.0), Holder(2, "a", since=2.0), Holder(3, "b", since=3.0)]

    assert way(waiting(9, "c"), holders).ticket == 2


def test_nobody_gives_way_to_an_owner_that_holds_a_slot_itself() -> None:
    holders = [Holder(1, "a", 0.0), Holder(2, "a", 0.0), Holder(3, "b", 0.0)]

    assert way(waiting(9, "b"), holders) == Way()


def test_the_only_stream_of_an_owner_is_left_alone() -> None:
    assert way(waiting(9, "c"), [Holder(1, "a", 0.0), Holder(2, "b", 0.0)]) == Way()


def test_batch_gives_way_to_interactive_be_it_the_only_one_or_of_the_same_owner() -> None:
    holders = [Holder(1, "a", 0.0, batch=True), Holder(2, "b", 0.0)]

    assert way(waiting(9, "c"), holders).ticket == 1
    assert way(waiting(9, "a"), holders).ticket == 1


def test_interactive_never_gives_way_to_batch() -> None:
    holders = [Holder(1, "a", 0.0), Holder(2, "a", 0.0)]

    assert way(waiting(9, "c", batch=True), holders) == Way()


def test_nobody_is_asked_before_its_turn_is_over_and_that_time_is_told() -> None:
    holders = [Holder(1, "a", 9.0), Holder(2, "a", 9.0)]

    assert way(waiting(9, "c"), holders, now=9.0) == Way(look_at=9.0 + TURN_SECONDS)


def test_who_gave_way_twice_has_four_times_as_long_before_it_is_asked_again() -> None:
    holders = [Holder(1, "a", 9.0, gave_way=2), Holder(2, "a", 9.0, gave_way=3)]

    asked = way(waiting(9, "c"), holders, now=9.0 + 3 * TURN_SECONDS)

    assert asked == Way(look_at=9.0 + 4 * TURN_SECONDS)


def test_nobody_is_asked_by_one_that_has_just_come() -> None:
    holders = [Holder(1, "a", 0.0), Holder(2, "a", 0.0)]

    asked = way(waiting(9, "c", enqueued=LATE), holders)

    assert asked == Way(look_at=LATE + PATIENCE_SECONDS)


# --- a full line --------------------------------------------------------------------------------


def test_the_youngest_of_who_crowds_the_line_leaves_its_place_to_another_owner() -> None:
    queue = [waiting(1, "a"), waiting(2, "a"), waiting(3, "a"), waiting(4, "b")]

    assert crowds(queue, "c") == 3
    assert crowds(queue, "a") is None


def test_batch_leaves_first_and_who_had_a_slot_never() -> None:
    queue = [waiting(1, "a", batch=True), waiting(2, "a"), waiting(3, "a", resuming=True)]

    assert crowds(queue, "b") == 1


def test_an_even_line_stays_as_it_is() -> None:
    assert crowds([waiting(1, "a"), waiting(2, "b")], "c") is None


# --- nobody starves -----------------------------------------------------------------------------

STEP_SECONDS = 0.5
SLOTS = 3


@dataclass
class Job:
    """A stream of so many seconds of work."""

    ticket: int
    owner: str
    batch: bool
    left: float
    came: float
    since: float | None = None
    gave_way: int = 0
    first_slot: float | None = None
    queued: float = field(default=0.0)

    @property
    def candidate(self) -> Candidate:
        resuming = self.first_slot is not None
        return Candidate(
            self.ticket, self.owner, 0, self.queued, self.batch, resuming, displaced=resuming
        )

    @property
    def holder(self) -> Holder:
        assert self.since is not None
        return Holder(self.ticket, self.owner, self.since, self.batch, self.gave_way)


class Model:
    """Slots, a line and a clock: what the scheduler does with the decisions, without anything
    else. `admit` is one look at the line."""

    def __init__(self) -> None:
        self.now = 0.0
        self.jobs: dict[int, Job] = {}
        self.served: list[str] = []

    def come(self, owner: str, seconds: float, *, batch: bool = False) -> Job:
        ticket = len(self.jobs) + 1
        job = self.jobs[ticket] = Job(ticket, owner, batch, seconds, self.now, queued=self.now)
        return job

    def held(self) -> dict[str, int]:
        held: dict[str, int] = {}
        for job in self.running():
            held[job.owner] = held.get(job.owner, 0) + 1
        return held

    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.since is not None]

    def admit(self) -> None:
        queue = [job.candidate for job in self.jobs.values() if job.since is None and job.left > 0]
        capacity = Capacity(SLOTS - len(self.running()), 10**9, held=self.held())
        decision = decide(queue, capacity, self.served, self.now, 1e9)
        for ticket in decision.start:
            self._start(self.jobs[ticket])
        if decision.first is None:
            return
        holders = [job.holder for job in self.running()]
        asked = make_way(decision.first, holders, self.held(), self.now).ticket
        if asked is not None:
            job = self.jobs[asked]
            job.since, job.queued = None, self.now
            job.gave_way += 1
            self.admit()

    def _start(self, job: Job) -> None:
        job.since = self.now
        job.first_slot = self.now if job.first_slot is None else job.first_slot
        self.served = [owner for owner in self.served if owner != job.owner] + [job.owner]

    def go_on(self, seconds: float) -> None:
        for _ in range(int(seconds / STEP_SECONDS)):
            self.admit()
            self.now += STEP_SECONDS
            for job in self.running():
                job.left -= STEP_SECONDS
                if job.left <= 0:
                    job.since = None

    def go_on_until_all_of(self, jobs: list[Job], most_seconds: float) -> None:
        until = self.now + most_seconds
        while self.now < until and any(job.left > 0 for job in jobs):
            self.go_on(STEP_SECONDS)


ENDLESS = 1e6


@settings(deadline=None, max_examples=50)
@given(
    st.integers(SLOTS, 12),
    st.lists(st.tuples(st.sampled_from("bc"), st.floats(0, 9)), min_size=1, max_size=6),
)
def test_an_app_with_endless_streams_on_all_slots_starves_nobody(
    flood: int, visits: list[tuple[str, float]]
) -> None:
    model = Model()
    hogs = [model.come("a", ENDLESS) for _ in range(flood)]
    model.go_on(TURN_SECONDS)
    visitors = []
    for owner, pause in visits:
        model.go_on(pause)
        visitors.append(model.come(owner, 1.0))
    model.go_on_until_all_of(visitors, len(visits) * TURN_SECONDS * 2 ** len(visits))

    assert all(job.left <= 0 for job in visitors)
    assert sum(hog.left < ENDLESS for hog in hogs) >= SLOTS


def test_a_visitor_gets_its_slot_within_a_second_of_a_flood_that_has_run_a_while() -> None:
    model = Model()
    for _ in range(9):
        model.come("a", ENDLESS)
    model.go_on(2 * TURN_SECONDS)
    visitor = model.come("b", 1.0)
    model.go_on(PATIENCE_SECONDS + STEP_SECONDS)

    assert visitor.first_slot is not None
    assert visitor.first_slot - visitor.came <= PATIENCE_SECONDS


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0.5, 20)), max_size=12))
def test_everybody_gets_on_and_ends_however_long_and_whoever_it_belongs_to(
    work: list[tuple[str, bool, float]],
) -> None:
    model = Model()
    for owner, batch, seconds in work:
        model.come(owner, seconds, batch=batch)
        model.go_on(STEP_SECONDS)
    jobs = list(model.jobs.values())
    model.go_on_until_all_of(jobs, sum(seconds + 1 for _, _, seconds in work))

    assert all(job.left <= 0 for job in jobs)
