"""The mlx adapter's life of a job, on a tiny random model: compute, cancel, pause, end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.engines.base import Finished
from plait.errors import ContextOverflow, InvalidRequest, UnsupportedMethod
from tests.engines.mlx.tiny import Rig, build_tiny_model, make_rig

pytestmark = pytest.mark.model

LONG = "word " * 300  # 1,500 tokens: many prefill chunks


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))


@pytest.fixture(scope="module")
def loaded(tiny_model: Path) -> Iterator[Rig]:
    rig = make_rig(tiny_model)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    """One engine for all tests of the module; each has to leave it empty."""
    yield loaded
    loaded.finish()
    stats = loaded.engine.stats()
    assert (stats.slots_used, stats.kv_bytes) == (0, 0)


def test_parallel_chats_say_what_each_says_alone(rig: Rig) -> None:
    texts = ["one", "and two", "three of them"]
    alone = [rig.talk(text, max_tokens=40) for text in texts]

    jobs = [rig.start(text, max_tokens=40) for text in texts]
    rig.finish()

    assert [rig.text(job) for job in jobs] == alone


def test_an_answer_ends_at_its_bound_with_its_usage(rig: Rig) -> None:
    job, prepared = rig.prepare("hello", max_tokens=20)
    rig.engine.start(job)
    rig.finish()

    usage = {"prompt_tokens": 23, "cached_tokens": 0, "completion_tokens": 20}
    assert (prepared.prompt_tokens, prepared.max_tokens) == (23, 20)
    assert rig.ends[job] == Finished(job, "length", usage)
    assert (rig.released[job].wasted, rig.released[job].usage) == (0, usage)


def test_a_stop_string_ends_the_answer_right_before_it(rig: Rig) -> None:
    whole = rig.talk("hello", max_tokens=40)
    stop = whole[20:23]

    job = rig.start("hello", max_tokens=40, stop=[stop])
    rig.finish()

    end = rig.ends[job]
    assert isinstance(end, Finished)
    assert end.finish_reason == "stop"
    assert rig.text(job) == whole[: whole.index(stop)]


def test_items_are_never_empty_and_account_for_every_token(rig: Rig) -> None:
    job = rig.start("say something", max_tokens=40, logprobs=True)
    rig.finish()

    items = rig.items[job]
    assert all(item["content"] for item in items)
    assert sum(len(item["logprobs"]) for item in items) in (39, 40)  # half a character may be left


def test_logprobs_name_the_token_among_its_likeliest_rivals(rig: Rig) -> None:
    job = rig.start("say something", max_tokens=5, logprobs=3)
    rig.finish()

    entries = [entry for item in rig.items[job] for entry in item["logprobs"]]
    for entry in entries:
        values = [other["logprob"] for other in entry["top"]]
        assert values == sorted(values, reverse=True)
        assert entry["top"][0] == {"token": entry["token"], "logprob": entry["logprob"]}


def test_the_same_seed_gives_the_same_text_and_another_seed_another(rig: Rig) -> None:
    warm = {"temperature": 1.0, "top_k": 50, "max_tokens": 30}

    texts = [rig.talk("dice", seed=seed, **warm) for seed in (7, 7, 8)]

    assert texts[0] == texts[1] != texts[2]


def test_a_cancel_in_decode_is_released_by_the_next_step(rig: Rig) -> None:
    alone = rig.talk("stays", max_tokens=40)
    stays = rig.start("stays", max_tokens=40)
    goes = rig.start("goes", max_tokens=400)
    rig.step_to(goes, 5)
    before = rig.engine.stats()

    rig.click_stop(goes)
    rig.step()

    after = rig.engine.stats()
    assert rig.released[goes].wasted == 1  # the step that was under way
    assert (before.slots_used, after.slots_used) == (2, 1)
    assert after.kv_bytes < before.kv_bytes
    rig.finish()
    assert rig.text(stays) == alone


def test_a_cancel_in_the_prefill_of_a_long_prompt_is_released_by_the_next_step(rig: Rig) -> None:
    job = rig.start(LONG)
    rig.step()
    held = rig.engine.stats().kv_bytes

    rig.click_stop(job)
    rig.step()

    assert held > 0
    assert rig.released[job].wasted == 0
    assert rig.released[job].usage["completion_tokens"] == 0
    assert rig.engine.stats().kv_bytes == 0


def test_one_of_two_prompts_prefilled_together_can_be_cancelled(rig: Rig) -> None:
    alone = rig.talk(LONG + "a", max_tokens=10)
    stays, goes = rig.start(LONG + "a", max_tokens=10), rig.start(LONG[5:] + "b")
    rig.step()
    rig.step()

    rig.click_stop(goes)
    rig.step()
    assert goes in rig.released
    rig.finish()

    assert rig.text(stays) == alone


def test_a_chat_that_waits_for_its_prefill_can_be_cancelled(rig: Rig) -> None:
    jobs = [rig.start(LONG + str(number), max_tokens=1) for number in range(4)]
    rig.step()

    for job in reversed(jobs):
        rig.click_stop(job)
    rig.step()

    assert set(jobs) <= rig.released.keys()


def test_nothing_is_said_once_the_cancels_flag_is_set(rig: Rig) -> None:
    job = rig.start("hello", max_tokens=400)
    rig.step_to(job, 3)
    said = len(rig.items[job])

    rig.flags.stamps[job] = 0.0  # the command itself is still on its way
    rig.step()
    rig.engine.cancel(job)
    rig.finish()

    assert len(rig.items[job]) == said
    assert job not in rig.ends
    assert rig.released[job].wasted <= 2


def test_a_cancel_of_a_merely_prepared_chat_yields_no_event(rig: Rig) -> None:
    job, _ = rig.prepare("never started")

    rig.engine.cancel(job)
    rig.engine.cancel(job)
    rig.engine.cancel(9999)

    assert rig.step() == []
    assert rig.engine.idle


def test_two_cancels_give_one_release(rig: Rig) -> None:
    job = rig.start("hello", max_tokens=400)
    rig.step_to(job, 1)

    rig.click_stop(job)
    rig.click_stop(job)
    rig.finish()

    assert job in rig.released


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 0},
        {"temperature": 1.0, "seed": 5, "top_p": 0.9},
        {"temperature": 0.8, "seed": 6, "min_p": 0.001, "repetition_penalty": 1.3},
    ],
    ids=["greedy", "sampled", "penalized"],
)
def test_a_paused_chat_goes_on_with_the_same_text(rig: Rig, params: dict[str, float]) -> None:
    alone = rig.talk("pause me", max_tokens=40, **params)
    neighbour_alone = rig.talk("neighbour", max_tokens=60)
    job = rig.start("pause me", max_tokens=40, **params)
    neighbour = rig.start("neighbour", max_tokens=60)
    rig.step_to(job, 4)

    rig.engine.pause(job)
    for _ in range(10):
        rig.step()
    rig.engine.resume(job)
    rig.finish()

    assert rig.text(job) == alone
    assert rig.text(neighbour) == neighbour_alone


def test_a_chat_paused_in_its_prefill_keeps_what_it_has(rig: Rig) -> None:
    alone = rig.talk(LONG, max_tokens=10)
    job = rig.start(LONG, max_tokens=10)
    rig.step()

    rig.engine.pause(job)
    held = rig.engine.stats().kv_bytes
    rig.engine.resume(job)
    rig.finish()

    assert held > 0
    assert rig.text(job) == alone


def test_a_paused_chat_computes_nothing_and_frees_its_cache_when_cancelled(rig: Rig) -> None:
    job = rig.start("hello", max_tokens=400)
    rig.step_to(job, 3)
    rig.engine.pause(job)
    rig.finish()  # idle: only paused work is left
    held = rig.engine.stats().kv_bytes

    rig.click_stop(job)
    rig.step()

    assert held > 0
    assert rig.released[job].wasted == 0
    assert rig.engine.stats().kv_bytes == 0


def test_paused_chats_leave_their_slots_to_others(rig: Rig) -> None:
    paused = [rig.start(f"paused {number}", max_tokens=100) for number in range(4)]
    rig.step_to(paused[-1], 1)
    for job in paused:
        rig.engine.pause(job)

    others = [rig.start(f"other {number}", max_tokens=10) for number in range(4)]
    rig.finish()

    assert set(others) <= rig.ends.keys()
    for job in paused:
        rig.engine.resume(job)


def test_a_chat_can_be_paused_before_it_computes_anything(rig: Rig) -> None:
    alone = rig.talk("early", max_tokens=10)
    job = rig.start("early", max_tokens=10)

    rig.engine.pause(job)
    idle = rig.engine.idle
    rig.engine.resume(job)
    rig.finish()

    assert idle
    assert rig.text(job) == alone


def test_after_a_hundred_random_cancels_everything_is_back(rig: Rig) -> None:
    import mlx.core as mx

    dice = random.Random(1)
    rig.talk("warm", max_tokens=5)
    baseline = mx.get_active_memory()
    live: list[int] = []
    for number in range(100):
        live.append(rig.start(LONG[: dice.randrange(1, 600)] + str(number), max_tokens=100))
        for _ in range(dice.randrange(8)):
            rig.step()
        if dice.random() < 0.3:
            rig.engine.pause(live[-1])
        while len(live) > dice.randrange(4):
            rig.click_stop(live.pop(dice.randrange(len(live))))
        rig.step()
    for job in live:
        rig.click_stop(job)
    rig.finish()

    jobs = [rig.start(f"alive {number}", max_tokens=20) for number in range(4)]
    rig.finish()

    assert set(jobs) <= rig.ends.keys()
    assert mx.get_active_memory() <= baseline + 65_536
    assert mx.get_cache_memory() == 0  # nothing stays pooled in an idle engine


def test_a_prompt_beyond_the_context_is_refused_with_the_numbers(rig: Rig) -> None:
    with pytest.raises(ContextOverflow) as caught:
        rig.prepare("x" * 2048)

    assert caught.value.data == {"prompt_tokens": 2066, "limit": 2048}


def test_the_answers_bound_is_the_least_of_asked_cap_and_room(rig: Rig) -> None:
    asked = [rig.prepare("x", max_tokens=7), rig.prepare("x"), rig.prepare("x" * 2000)]

    assert [prepared.max_tokens for _, prepared in asked] == [7, 512, 30]
    for job, _ in asked:
        rig.engine.cancel(job)


def test_other_methods_and_input_are_refused(rig: Rig) -> None:
    from plait.engines.base import Feed, Prepare

    with pytest.raises(UnsupportedMethod):
        rig.engine.prepare(Prepare(500, "embed", {"texts": ["x"]}, "s"))
    with pytest.raises(InvalidRequest):
        rig.engine.feed(Feed(500, texts=["x"]))
