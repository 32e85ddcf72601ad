"""Which CPUs each model gets: a pure function, for any models and any history."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from plait.scheduling.core_budget import Cpus, assign

BUDGET = [0, 1, 4, 5, 9, 10, 11, 12]
budgets = st.integers(1, len(BUDGET)).map(lambda count: BUDGET[:count])
wants = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(1, 10), max_size=10)
histories = st.dictionaries(
    st.sampled_from("abcdefghij"), st.frozensets(st.integers(0, 15), min_size=1)
)


def test_models_that_fit_beside_each_other_get_all_they_want() -> None:
    given = assign(BUDGET, {"chat": 4, "speech": 3}, {})

    assert {model: len(cpus) for model, cpus in given.items()} == {"chat": 4, "speech": 3}


def test_what_one_cannot_use_is_the_others() -> None:
    given = assign(BUDGET, {"embed": 8, "listening": 1, "chat": 4}, {})

    assert {model: len(cpus) for model, cpus in given.items()} == {
        "embed": 4,
        "listening": 1,
        "chat": 3,
    }


def test_with_more_models_than_cpus_each_has_one() -> None:
    given = assign([0, 1], {"chat": 1, "speech": 2, "listening": 2, "embed": 2}, {})

    assert Counter(given.values()) == {frozenset({0}): 2, frozenset({1}): 2}


@given(budgets, wants, histories)
def test_everybody_computes_and_nobody_outside_of_the_budget(
    budget: list[int], wants: dict[str, int], before: dict[str, Cpus]
) -> None:
    given = assign(budget, wants, before)

    assert given.keys() == wants.keys()
    assert all(cpus and cpus <= set(budget) for cpus in given.values())


@given(budgets, wants, histories)
def test_nobody_shares_while_there_are_cpus_for_all_and_parts_are_even(
    budget: list[int], wants: dict[str, int], before: dict[str, Cpus]
) -> None:
    given = assign(budget, wants, before)
    sizes = {model: len(cpus) for model, cpus in given.items()}

    if len(wants) > len(budget):
        loads = Counter(cpu for cpus in given.values() for cpu in cpus)
        assert set(sizes.values()) == {1}
        assert max(loads.values()) - min(loads[cpu] for cpu in budget) <= 1
        return
    assert sum(sizes.values()) == len(frozenset[int]().union(*given.values()))
    assert sum(sizes.values()) == min(len(budget), sum(wants.values()))
    for model, size in sizes.items():
        assert size == wants[model] or size >= max(sizes.values()) - 1
        assert size <= wants[model]


@given(budgets, wants, histories)
def test_the_same_again_moves_nobody(
    budget: list[int], wants: dict[str, int], before: dict[str, Cpus]
) -> None:
    given = assign(budget, wants, before)

    assert assign(budget, wants, given) == given


@given(budgets, wants, wants, histories)
def test_who_stays_keeps_what_it_had_as_far_as_its_part_goes(
    budget: list[int], first: dict[str, int], second: dict[str, int], before: dict[str, Cpus]
) -> None:
    old = assign(budget, first, before)
    new = assign(budget, second, old)

    if len(first) <= len(budget) and len(second) <= len(budget):
        for model in first.keys() & second.keys():
            kept = min(len(old[model]), len(new[model]))
            assert len(old[model] & new[model]) == kept


@given(budgets, wants, histories, st.sampled_from("xyz"))
def test_of_those_that_share_few_move_when_another_one_comes(
    budget: list[int], wants: dict[str, int], before: dict[str, Cpus], newcomer: str
) -> None:
    old = assign(budget, wants, before)
    new = assign(budget, wants | {newcomer: 1}, old)

    if len(wants) > len(budget):
        assert {model: new[model] for model in old} == old
