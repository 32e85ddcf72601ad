"""Which slot a chat gets: its own beginning is found again, nobody else's; little stays."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.llamacpp.seats import Seat, Seats

MANY = 1_000_000


def fill(seats: Seats, job: int, scope: str, tokens: list[int], *, kept: bool = False) -> int:
    seat, _ = seats.take(job, scope, tokens)
    seats.leave(seat, tokens, kept=kept)
    return seat.index


def test_the_longest_prefix_of_ones_own_scope_is_found_again() -> None:
    seats = Seats(3, MANY)
    fill(seats, 1, "a", [1, 2, 3])
    second = fill(seats, 2, "a", [1, 2, 9, 9])
    fill(seats, 3, "b", [1, 2, 9, 9, 9])

    seat, reusable = seats.take(4, "a", [1, 2, 9, 9, 9, 9])

    assert (seat.index, reusable) == (second, True)


def test_another_scopes_content_is_never_offered() -> None:
    seats = Seats(1, MANY)
    fill(seats, 1, "a", [1, 2, 3])

    _, reusable = seats.take(2, "b", [1, 2, 3])

    assert not reusable


def test_a_short_prompt_does_not_cost_a_long_one_its_seat_for_a_few_common_tokens() -> None:
    seats = Seats(2, MANY)
    long = list(range(1000))
    seat = fill(seats, 1, "a", long)

    for job in range(2, 6):
        fill(seats, job, "a", [*long[:20], 7000 + job])

    assert seats.take(9, "a", long)[0].index == seat
    assert seats.kept_tokens == 21


def test_a_seat_nobody_comes_back_for_is_taken_in_the_end() -> None:
    seats = Seats(2, MANY)
    old = fill(seats, 1, "a", [1] * 50)

    taken = [fill(seats, job, "b", [job] * 20) for job in range(2, 30)]

    assert old in taken


def test_a_paused_jobs_seat_is_taken_last_and_found_again_by_the_job() -> None:
    seats = Seats(2)
    paused = fill(seats, 1, "a", [1], kept=True)

    assert [fill(seats, job, "b", [7]) for job in (2, 3)] == [1 - paused, 1 - paused]
    assert seats.occupants == [1]
    assert seats.take(1, "a", [1, 5])[0].index == paused


def test_a_taken_seat_no_longer_counts_for_the_paused_job() -> None:
    seats = Seats(1)
    fill(seats, 1, "a", [1], kept=True)
    fill(seats, 2, "a", [2])

    assert seats.occupants == []
    assert seats.free


def test_beyond_the_cap_the_least_recently_used_is_forgotten() -> None:
    seats = Seats(3, 25)
    for job in range(3):
        fill(seats, job, "a", [job] * 10)
    assert seats.kept_tokens == 20

    _, first = seats.take(5, "a", [0] * 10)
    seat, third = seats.take(6, "a", [2] * 10)

    assert (first, third) == (False, True)
    assert seat.tokens == [2] * 10


def test_what_a_paused_job_held_counts_as_kept_once_it_is_over() -> None:
    seats = Seats(1, 10)
    fill(seats, 1, "a", [1] * 5, kept=True)
    before = seats.kept_tokens

    seats.forget(1)

    assert (before, seats.kept_tokens) == (0, 5)


def test_when_nothing_may_be_kept_nothing_is_offered_any_more() -> None:
    seats = Seats(1, MANY)
    fill(seats, 1, "a", [1] * 5)

    seats.keep_at_most(0)
    seats.keep_at_most(MANY)

    assert seats.kept_tokens == 0
    assert not seats.take(2, "a", [1] * 5)[1]


@dataclass
class Cells:
    """What llama.cpp's slots really hold, and the rules by which their content may be used."""

    seats: Seats
    most: int
    held: dict[int, tuple[Seat, list[int]]] = field(default_factory=dict)
    content: dict[int, tuple[str, list[int]]] = field(default_factory=dict)
    jobs: int = 0

    def begin(self, scope: str, tokens: list[int]) -> None:
        if not self.seats.free:
            return
        self.jobs += 1
        seat, reusable = self.seats.take(self.jobs, scope, tokens)
        assert seat not in [busy for busy, _ in self.held.values()]
        came_from, before = self.content.get(seat.index, (scope, []))
        if reusable:
            assert came_from == scope
            assert before[: len(seat.tokens)] == seat.tokens == tokens[: len(seat.tokens)]
        self.held[self.jobs] = seat, tokens

    def end(self, pick: int, computed: int, *, paused: bool) -> None:
        if not self.held:
            return
        job = list(self.held)[pick % len(self.held)]
        seat, tokens = self.held.pop(job)
        assert seat.scope is not None
        self.content[seat.index] = seat.scope, tokens[: max(computed, len(seat.tokens))]
        self.seats.leave(seat, self.content[seat.index][1], kept=paused)


TOKENS = st.lists(st.integers(0, 1), max_size=8)
STEPS = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from("ab"), TOKENS),
    st.tuples(st.sampled_from(["end", "pause"]), st.integers(0, 3), st.integers(0, 8)),
    st.tuples(st.just("forget"), st.integers(1, 20), st.just(0)),
    st.tuples(st.just("cap"), st.integers(0, 20), st.just(0)),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=40))
def test_no_scope_sees_anothers_cells_and_what_is_kept_stays_within_its_cap(
    steps: list[tuple[str, str | int, list[int] | int]],
) -> None:
    cells = Cells(Seats(3, 12), 12)
    for step in steps:
        match step:
            case ("begin", str(scope), list(tokens)):
                cells.begin(scope, tokens)
            case ("end" | "pause" as how, int(pick), int(computed)):
                cells.end(pick, computed, paused=how == "pause")
            case ("forget", int(job), _):
                cells.seats.forget(job)
            case ("cap", int(most), _):
                cells.most = most
                cells.seats.keep_at_most(most)
        assert cells.seats.kept_tokens <= cells.most
