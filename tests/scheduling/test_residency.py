"""Whom to load, to evict and to refuse, with values only."""

from __future__ import annotations

from hypothesis import given, strategies as st

from plait.scheduling.residency import ModelState, Plan, Want, plan

OUT, IN, LEAVING, COMING = "out", "in", "leaving", "coming"


def idle(name: str, size: int, used: float = 0.0) -> ModelState:
    return ModelState(name, size, "in", in_use=False, used=used)


def busy(name: str, size: int) -> ModelState:
    return ModelState(name, size, "in", in_use=True)


def wanted(name: str, size: int) -> ModelState:
    return ModelState(name, size, "out", in_use=True)


def run(models: list[ModelState], *wants: Want, limit: int = 1000, **how: bool) -> Plan:
    used = sum(model.size_bytes for model in models if model.place != "out")
    return plan(models, wants, limit - used, limit, **how)


def test_what_fits_is_loaded_and_evicts_nobody() -> None:
    result = run([idle("a", 300), wanted("b", 700)], Want("b", 700, 1.0))
    assert (result.load, result.evict) == (["b"], [])


def test_the_least_recently_used_go_first_and_no_more_than_needed() -> None:
    models = [idle("new", 300, used=2), idle("old", 300, used=1), wanted("b", 600)]
    result = run(models, Want("b", 600, 1.0))
    assert (result.load, result.evict) == ([], ["old"])


def test_nobody_is_evicted_in_vain() -> None:
    result = run([idle("a", 300), busy("b", 600), wanted("c", 700)], Want("c", 700, 1.0))
    assert result == Plan()


def test_what_can_never_fit_is_refused_and_evicts_nobody() -> None:
    result = run([idle("a", 300), wanted("c", 1001)], Want("c", 1001, 1.0))
    assert (result.refuse, result.evict) == (["c"], [])


def test_memory_on_its_way_back_is_waited_for_and_not_given_twice() -> None:
    models = [ModelState("a", 600, "leaving"), idle("b", 400), wanted("c", 600), wanted("d", 400)]
    result = run(models, Want("c", 600, 1.0), Want("d", 400, 2.0))
    assert (result.load, result.evict) == ([], ["b"])


def test_a_load_that_waits_for_others_to_end_keeps_nothing_from_later_ones() -> None:
    models = [busy("a", 600), wanted("large", 600), wanted("small", 300)]
    result = run(models, Want("large", 600, 1.0), Want("small", 300, 2.0))
    assert result.load == ["small"]


def test_a_stream_that_waits_for_others_to_end_does() -> None:
    models = [busy("a", 600), wanted("small", 300)]
    # 100 of streams are in use beside the models.
    result = plan(models, [Want("a", 350, 1.0, load=False), Want("small", 300, 2.0)], 300, 1000)
    assert (result.load, result.holds) == ([], {"a": 350})


def test_a_stream_that_waits_for_another_model_to_become_idle_holds_nothing() -> None:
    models = [busy("a", 500), busy("b", 400)]
    result = run(models, Want("a", 200, 1.0, load=False))
    assert result == Plan()


def test_a_load_nobody_waits_for_is_stopped_unless_it_is_meant_to_stay() -> None:
    models = [ModelState("a", 100, "coming", kept=False), ModelState("b", 100, "coming")]
    assert run(models).evict == ["a"]


def test_under_pressure_nothing_is_loaded_and_one_idle_model_goes_a_reading() -> None:
    models = [idle("a", 100, used=2), idle("b", 100, used=1), wanted("c", 10)]
    assert run(models, Want("c", 10, 1.0), pressed=True, relieve=True) == Plan(evict=["b"])
    assert run(models, Want("c", 10, 1.0), pressed=True) == Plan()


def test_an_overdrawn_account_is_paid_by_the_idle() -> None:
    result = run([idle("a", 300), busy("b", 900)])
    assert result.evict == ["a"]


def test_where_no_stream_of_any_model_fits_the_last_in_line_is_stuck() -> None:
    models = [busy("a", 500), busy("b", 500)]
    wants = [Want("a", 10, 1.0, load=False), Want("b", 10, 2.0, load=False)]
    assert run(models, *wants).stuck == "b"
    models[0] = ModelState("a", 500, "in", in_use=True, holds=True)
    assert run(models, *wants).stuck is None


def test_a_load_leaves_room_for_its_streams_as_far_as_that_is_known() -> None:
    want = Want("b", 500, 1.0, beside_bytes=50)
    assert run([busy("a", 450), wanted("b", 500)], want).load == ["b"]
    assert run([busy("a", 451), wanted("b", 500)], want).load == []


places = st.sampled_from([OUT, COMING, IN, LEAVING])
states = st.builds(
    ModelState,
    name=st.sampled_from("abcdef"),
    size_bytes=st.integers(0, 500),
    place=places,
    in_use=st.booleans(),
    used=st.floats(0, 9),
    kept=st.booleans(),
)
fleets = st.lists(states, max_size=6, unique_by=lambda model: model.name)


@given(fleets, st.integers(0, 400), st.integers(1, 1500), st.data())
def test_no_plan_is_over_budget_or_evicts_what_is_in_use(
    models: list[ModelState], streams: int, limit: int, data: st.DataObject
) -> None:
    wants = [
        Want(model.name, model.size_bytes, data.draw(st.floats(0, 9)), load=model.place == "out")
        for model in models
        if model.place in ("out", "in") and data.draw(st.booleans())
    ]
    used = streams + sum(model.size_bytes for model in models if model.place != "out")
    result = plan(models, wants, limit - used, limit)
    by_name = {model.name: model for model in models}
    loads = sum(by_name[name].size_bytes for name in result.load)
    assert not result.load or used + loads <= limit
    assert all(by_name[name].evictable for name in result.evict)
    assert len(set(result.evict)) == len(result.evict)
    assert not set(result.load) & set(result.evict)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.integers(1, 600))
def test_with_nothing_in_use_the_first_want_that_can_fit_is_served_or_has_room_made(
    sizes: list[int], size: int
) -> None:
    models = [idle(f"m{index}", each, used=index) for index, each in enumerate(sizes)]
    limit = max(size, sum(sizes))
    result = run([*models, wanted("w", size)], Want("w", size, 1.0), limit=limit)
    freed = sum(m.size_bytes for m in models if m.name in result.evict)
    assert (result.load == ["w"]) == (not result.evict)
    assert limit - sum(sizes) + freed >= size
