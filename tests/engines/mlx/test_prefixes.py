"""Kept prefixes of the mlx adapter: what is saved, that nothing else changes, what it may take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.mlx.tiny import POISON, Rig, build_tiny_model, make_rig
from tests.proofs.sizes import FULL, TEST_SECONDS

pytestmark = pytest.mark.model

# keys and values x 2 layers x 2 heads x 16 numbers of 4 bytes
BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 4
CAP_BYTES = 8192 * BYTES_PER_TOKEN
LONG = "word " * 300  # 1,500 tokens: many prefill chunks
SHORT = "a short question, twice"


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))


@pytest.fixture(scope="module")
def plain(tiny_model: Path) -> Iterator[Rig]:
    """It keeps nothing: what its chats say is what the others have to say."""
    rig = make_rig(tiny_model)
    yield rig
    rig.engine.close()


@pytest.fixture(scope="module")
def loaded(tiny_model: Path) -> Iterator[Rig]:
    rig = make_rig(tiny_model)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    """One engine for all tests; each begins with nothing kept and has to leave it empty."""
    loaded.engine.keep_prefixes(0)
    loaded.engine.keep_prefixes(CAP_BYTES)
    yield loaded
    loaded.finish()
    assert (loaded.engine.stats().slots_used, loaded.engine.stats().kv_bytes) == (0, 0)


def chat(rig: Rig, text: str, **params: Any) -> int:
    job = rig.start(text, **params)
    rig.finish()
    return job


def cached(rig: Rig, job: int) -> int:
    return rig.released[job].usage["cached_tokens"]


@pytest.mark.parametrize("text", [SHORT, LONG], ids=["short", "long"])
def test_a_prompt_sent_again_is_not_read_again_and_answered_the_same(
    rig: Rig, plain: Rig, text: str
) -> None:
    expected = plain.talk(text, max_tokens=20)

    jobs = [chat(rig, text, max_tokens=20) for _ in range(3)]

    all_but_one = rig.released[jobs[0]].usage["prompt_tokens"] - 1
    assert [rig.text(job) for job in jobs] == [expected] * 3
    assert [cached(rig, job) for job in jobs] == [0, all_but_one, all_but_one]


def test_a_long_prompt_cancelled_while_it_is_read_goes_on_where_it_stopped(
    rig: Rig, plain: Rig
) -> None:
    expected = plain.talk(LONG, max_tokens=20)
    first = rig.start(LONG, max_tokens=20)
    rig.step_until(lambda: rig.engine.stats().kv_bytes > 0)
    rig.click_stop(first)
    rig.step()
    kept = rig.engine.stats().cache_bytes // BYTES_PER_TOKEN

    again = chat(rig, LONG, max_tokens=20)

    assert 0 < cached(rig, again) < rig.released[first].usage["prompt_tokens"]
    assert cached(rig, again) <= kept < cached(rig, again) + 256
    assert rig.text(again) == expected


def test_a_prompt_sent_again_is_answered_after_fewer_steps(rig: Rig) -> None:
    def steps_to_first_item(job: int) -> int:
        steps = 0
        while not rig.items.get(job):
            assert rig.step() or not rig.engine.idle
            steps += 1
        return steps

    first = steps_to_first_item(rig.start(LONG, max_tokens=20))
    rig.finish()

    assert steps_to_first_item(rig.start(LONG, max_tokens=20)) < first


def test_a_cancel_in_the_middle_of_an_answer_keeps_what_was_said(rig: Rig, plain: Rig) -> None:
    expected = plain.talk(SHORT, max_tokens=40)
    job = rig.start(SHORT, max_tokens=40)
    rig.step_to(job, 10)
    rig.click_stop(job)
    rig.step()

    jobs = [chat(rig, SHORT, max_tokens=40), chat(rig, SHORT + " more", max_tokens=10)]

    assert [rig.text(job) for job in jobs] == [expected, plain.talk(SHORT + " more", max_tokens=10)]
    assert cached(rig, jobs[0]) == rig.released[jobs[0]].usage["prompt_tokens"] - 1
    assert cached(rig, jobs[1]) == len("<user\n") + len(SHORT)


def test_what_one_scope_has_sent_is_read_anew_for_another(rig: Rig, plain: Rig) -> None:
    chat(rig, LONG, scope="one", max_tokens=5)

    job = chat(rig, LONG, scope="other", max_tokens=5)

    assert cached(rig, job) == 0
    assert rig.text(job) == plain.talk(LONG, max_tokens=5)


def test_neighbours_of_a_row_that_begins_with_a_kept_prefix_say_what_they_say_alone(
    rig: Rig, plain: Rig
) -> None:
    texts = [LONG + "a", "short", LONG + "b", LONG[:700] + "c"]
    expected = [plain.talk(text, max_tokens=30) for text in texts]
    rig.talk(LONG, max_tokens=5)
    jobs = [rig.start(text, max_tokens=30) for text in texts]
    rig.finish()

    assert [rig.text(job) for job in jobs] == expected
    assert cached(rig, jobs[0]) > 1500


@pytest.mark.parametrize(
    "params",
    [{"temperature": 1.0, "seed": 5}, {"temperature": 0.8, "seed": 6, "repetition_penalty": 1.3}],
    ids=["sampled", "penalized"],
)
def test_a_seed_gives_the_same_text_with_a_kept_prefix_as_without(
    rig: Rig, plain: Rig, params: dict[str, float]
) -> None:
    answers = [rig.talk(SHORT, max_tokens=30, **params) for _ in range(2)]

    assert answers == [plain.talk(SHORT, max_tokens=30, **params)] * 2


def test_a_paused_chat_that_is_cancelled_leaves_what_it_had(rig: Rig) -> None:
    job = rig.start(SHORT, max_tokens=40)
    rig.step_to(job, 5)
    rig.engine.pause(job)
    rig.click_stop(job)
    rig.finish()

    assert cached(rig, chat(rig, SHORT, max_tokens=5)) > 30


def test_nothing_is_kept_of_a_chat_that_failed(rig: Rig) -> None:
    job = rig.start(SHORT + POISON, max_tokens=5)
    rig.finish()

    assert job in rig.ends
    assert rig.engine.stats().cache_bytes == 0


def test_the_bytes_told_are_those_taken_and_come_back_when_nothing_may_be_kept(rig: Rig) -> None:
    import mlx.core as mx

    rig.finish()
    before = mx.get_active_memory()
    jobs = [chat(rig, f"{number} {LONG}", max_tokens=5) for number in range(3)]
    told, taken = rig.engine.stats().cache_bytes, mx.get_active_memory() - before

    rig.engine.keep_prefixes(0)
    rig.finish()

    usages = [rig.released[job].usage for job in jobs]
    tokens = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)
    assert told == tokens * BYTES_PER_TOKEN
    assert told <= taken <= told + 65_536
    assert rig.engine.stats().cache_bytes == 0
    assert mx.get_active_memory() <= before + 65_536
    assert mx.get_cache_memory() == 0


def test_of_a_prompt_too_long_to_be_kept_its_beginning_is(tiny_model: Path, plain: Rig) -> None:
    rig = make_rig(tiny_model, prefix_cache_bytes=500 * BYTES_PER_TOKEN)
    jobs = [chat(rig, LONG, max_tokens=10) for _ in range(2)]

    assert [rig.text(job) for job in jobs] == [plain.talk(LONG, max_tokens=10)] * 2
    assert cached(rig, jobs[1]) == 500
    assert rig.engine.stats().cache_bytes == 500 * BYTES_PER_TOKEN
    rig.engine.close()


def test_what_is_kept_makes_way_for_live_chats_before_they_compute(tiny_model: Path) -> None:
    budget = 2048 * BYTES_PER_TOKEN
    rig = make_rig(tiny_model, kv_budget_bytes=budget, prefix_cache_bytes=CAP_BYTES)
    rig.talk(LONG, max_tokens=5)
    kept = rig.engine.stats().cache_bytes

    job, prepared = rig.prepare("other " * 100, max_tokens=50)
    rig.engine.start(job)

    stats = rig.engine.stats()
    assert kept > budget - prepared.reserve_bytes >= stats.cache_bytes
    while not rig.engine.idle:
        rig.step()
        stats = rig.engine.stats()
        assert stats.kv_bytes + stats.cache_bytes <= budget
    rig.engine.close()


@pytest.mark.timeout(TEST_SECONDS)
def test_of_many_prompts_a_third_cancelled_memory_stays_below_the_cap(tiny_model: Path) -> None:
    import mlx.core as mx

    prompts, repeats = (300, 800) if FULL else (60, 50)
    cap = 5 * 5 * repeats * BYTES_PER_TOKEN
    rig = make_rig(tiny_model, prefix_cache_bytes=cap, context_tokens=8192)
    chat(rig, "warm", max_tokens=5)
    before, peaks, kept = mx.get_active_memory(), [], []
    for number in range(prompts):
        job = rig.start(f"{number} {'word ' * repeats}", max_tokens=3)
        if number % 3 == 0:
            for _ in range(number % 7):
                rig.step()
            rig.click_stop(job)
        rig.finish()
        kept.append(rig.engine.stats().cache_bytes)
        peaks.append(mx.get_active_memory() - before)

    assert cap // 2 < min(kept[20:])  # it is used, and goes on being used
    assert max(kept) <= cap
    assert max(peaks) <= cap + 2**17
    rig.engine.close()
