"""The llama.cpp adapter on the starter model: it talks, stops, pauses and gives everything back."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from plait.engines.base import Finished, Prepare
from plait.models import InstalledModel, ModelStore
from tests.engines.llamacpp.rig import Rig
from tests.proofs.sizes import FULL

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

QUESTIONS = ["What is 2+2?", "List five fruits.", "Name three colours.", "Count to twenty."]
CANCELS = 100 if FULL else 25
WARM = 30 if FULL else 8  # caches fill with the first use
LONG = "The quick brown fox jumps over the lazy dog. " * 150


@pytest.fixture(scope="module")
def model() -> InstalledModel:
    return ModelStore().ensure("smollm2-135m-instruct", "llamacpp")


@pytest.fixture(scope="module")
def loaded(model: InstalledModel) -> Iterator[Rig]:
    assert model.gguf is not None
    rig = Rig(model.gguf, model.tokenizer)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    """One engine for all tests of the module; each has to leave it empty."""
    yield loaded
    for job in loaded.items:
        loaded.engine.cancel(job)
    loaded.finish()
    assert loaded.engine.idle
    assert loaded.engine.stats().slots_used == 0
    assert loaded.engine.stats().kv_bytes == 0


def ended(rig: Rig, job: int) -> Finished:
    end = rig.ends[job]
    assert isinstance(end, Finished)
    return end


# --- answers -------------------------------------------------------------------------------------


def test_an_answer_ends_by_itself_and_shows_no_control_token(rig: Rig) -> None:
    job = rig.start("What is 2+2?", max_tokens=60)
    rig.finish(job)

    assert ended(rig, job).finish_reason == "stop"
    assert "4" in rig.text(job)
    assert "<|" not in rig.text(job)
    assert ended(rig, job).usage["completion_tokens"] == len(rig.items[job])


def test_a_typed_end_of_turn_does_not_end_the_prompt(rig: Rig) -> None:
    plain = rig.engine.prepare(_prepare(9001, "Say hi"))
    typed = rig.engine.prepare(_prepare(9002, "Say hi<|im_end|>"))
    for job in (9001, 9002):
        rig.engine.cancel(job)

    assert typed.prompt_tokens - plain.prompt_tokens > 1


def test_parallel_greedy_answers_equal_the_single_ones(rig: Rig) -> None:
    alone = [rig.talk(question, max_tokens=10) for question in QUESTIONS]
    jobs = [rig.start(question, max_tokens=10) for question in QUESTIONS]
    rig.finish(*jobs)

    assert [rig.text(job) for job in jobs] == alone


def test_the_token_bound_ends_with_length(rig: Rig) -> None:
    job = rig.start("Tell me a long story.", max_tokens=7)
    rig.finish(job)

    assert ended(rig, job).finish_reason == "length"
    assert ended(rig, job).usage["completion_tokens"] == 7


def test_a_stop_string_over_several_tokens_cuts_exactly_and_frees_the_slot(rig: Rig) -> None:
    whole = rig.talk("Count to twenty.", max_tokens=20)
    stop = whole[11:17]
    job = rig.start("Count to twenty.", max_tokens=40, stop=[stop])
    rig.finish(job)

    assert rig.text(job) == whole[: whole.index(stop)]
    assert ended(rig, job).finish_reason == "stop"
    assert rig.released[job].wasted == 0


def test_characters_of_several_tokens_arrive_whole(rig: Rig) -> None:
    job = rig.start("Repeat exactly: 漢字 👩‍👩‍👧‍👦 שלום é", max_tokens=24)
    rig.finish(job)

    assert any(ord(char) > 0x7FF for char in rig.text(job))
    assert "\ufffd" not in rig.text(job)
    assert ended(rig, job).usage["completion_tokens"] > len(rig.items[job])


def test_logprobs_name_the_token_and_its_likeliest_rivals(rig: Rig) -> None:
    job = rig.start("What is 2+2?", max_tokens=3, logprobs=2)
    rig.finish(job)

    for item in rig.items[job]:
        (entry,) = item["logprobs"]
        assert entry["token"] == item["content"]
        assert entry["top"][0]["token"] == entry["token"]
        assert entry["logprob"] >= entry["top"][1]["logprob"]


def test_the_same_seed_gives_the_same_text_and_another_seed_another(rig: Rig) -> None:
    sampled: dict[str, Any] = {"temperature": 1.0, "max_tokens": 8}
    texts = [rig.talk("Write a poem.", seed=seed, **sampled) for seed in (7, 7, 8)]

    assert texts[0] == texts[1] != texts[2]


def test_an_unset_seed_draws_a_new_one_each_time(rig: Rig) -> None:
    texts = {rig.talk("Write a poem.", temperature=1.0, max_tokens=8) for _ in range(3)}

    assert len(texts) > 1


def test_a_repetition_penalty_changes_a_repeating_answer(rig: Rig) -> None:
    plain = rig.talk("Say ha ten times.", max_tokens=20)

    assert rig.talk("Say ha ten times.", max_tokens=20, repetition_penalty=1.8) != plain


# --- scopes --------------------------------------------------------------------------------------


def test_a_cached_prefix_is_reused_within_its_scope_and_never_across(rig: Rig) -> None:
    cached = []
    for scope in ("mine", "yours", "mine"):
        job = rig.start("word " * 30, scope=scope, max_tokens=1)
        rig.finish(job)
        cached.append(ended(rig, job).usage["cached_tokens"])

    assert cached[:2] == [0, 0]
    assert cached[2] > 30


# --- cancel --------------------------------------------------------------------------------------


def test_a_cancel_in_decode_stops_within_a_step_and_leaves_the_others_unharmed(rig: Rig) -> None:
    alone = [rig.talk(question, max_tokens=9) for question in QUESTIONS]
    lengths = (9, 200, 9, 9)  # the one to cancel must not end before
    jobs = [
        rig.start(question, max_tokens=most)
        for question, most in zip(QUESTIONS, lengths, strict=True)
    ]
    rig.step_to(jobs[1], 2)

    stamp = rig.cancel(jobs[1])
    rig.finish(jobs[1])

    assert rig.released[jobs[1]].at - stamp < 5  # a whole answer takes longer on a busy machine
    assert 1 <= rig.released[jobs[1]].wasted <= 3
    assert jobs[1] not in rig.ends
    rig.finish()
    assert [rig.text(jobs[i]) for i in (0, 2, 3)] == [alone[i] for i in (0, 2, 3)]


def test_a_cancel_in_prefill_ends_the_computing_and_not_only_the_job(rig: Rig) -> None:
    job = rig.start(LONG)
    rig.step_until(lambda: rig.engine.stats().kv_bytes > 0)

    stamp = rig.cancel(job)
    rig.finish(job)
    assert rig.released[job].at - stamp < 5
    assert rig.items[job] == []

    process = psutil.Process()
    before = sum(process.cpu_times()[:2])
    time.sleep(0.5)  # the measurement itself: how much is computed in half a second
    assert sum(process.cpu_times()[:2]) - before < 0.1


def test_a_flagged_job_is_told_to_stop_before_the_loop_gets_to_it(rig: Rig) -> None:
    job = rig.start("Tell me a long story.", max_tokens=200)
    rig.step_to(job, 2)

    rig.flags.stamps[job] = time.monotonic()
    rig.engine.interrupt()
    rig.finish(job)

    assert job not in rig.ends
    assert len(rig.items[job]) < 20


def test_cancels_of_prepared_unknown_and_finished_jobs_do_nothing(rig: Rig) -> None:
    rig.engine.prepare(_prepare(9003, "Hi"))
    done = rig.start("Hi", max_tokens=1)
    rig.finish(done)

    for job in (9003, done, 123456):
        rig.engine.cancel(job)

    assert rig.engine.idle
    assert rig.engine.step() == []


def test_after_many_random_cancels_four_chats_complete_and_memory_is_flat(rig: Rig) -> None:
    draw = random.Random(1)
    memory = []
    for index in range(CANCELS):
        long = "word " * draw.choice([1, 1, 120])
        job = rig.start(f"{index} {long}", scope=str(index % 3), max_tokens=50)
        rig.step_times(draw.randrange(8))
        rig.cancel(job)
        rig.finish(job)
        memory.append(psutil.Process().memory_info().rss)

    jobs = [rig.start("What is 2+2?", max_tokens=20) for _ in range(4)]
    rig.finish(*jobs)
    assert {ended(rig, job).finish_reason for job in jobs} == {"stop"}
    assert memory[-1] - memory[WARM] < 8 * 2**20


# --- pause ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_pauses_leave_a_greedy_answer_and_its_neighbour_as_they_were(
    rig: Rig, penalty: float
) -> None:
    params: dict[str, Any] = {"max_tokens": 16, "repetition_penalty": penalty}
    alone = [rig.talk(question, **params) for question in QUESTIONS[1:3]]
    first, second = [rig.start(question, **params) for question in QUESTIONS[1:3]]

    for at in (2, 5, 8):
        rig.step_to(first, at)
        rig.engine.pause(first)
        rig.step_to(second, len(rig.items[second]) + 2)
        rig.engine.resume(first)
    rig.finish()

    assert [rig.text(first), rig.text(second)] == alone
    assert "reseeded" not in ended(rig, first).usage


def test_a_paused_job_computes_nothing_and_keeps_its_cache(rig: Rig) -> None:
    job = rig.start("Tell me a long story.", max_tokens=10)
    rig.step_to(job, 3)
    rig.engine.pause(job)
    rig.step_until(lambda: rig.engine.idle)

    assert job not in rig.released
    assert rig.engine.stats().slots_used == 0
    assert rig.engine.stats().kv_bytes > 0
    rig.engine.resume(job)
    rig.finish(job)
    assert ended(rig, job).usage["completion_tokens"] == 10


def test_a_job_whose_seat_was_taken_meanwhile_recomputes_and_goes_on_the_same(rig: Rig) -> None:
    alone = rig.talk("List five fruits.", max_tokens=12)
    job = rig.start("List five fruits.", max_tokens=12)
    rig.step_to(job, 5)
    rig.engine.pause(job)
    others = [rig.start(f"Say {i}", scope="other", max_tokens=2) for i in range(4)]
    rig.finish(*others)

    rig.engine.resume(job)
    rig.finish(job)

    assert rig.text(job) == alone


def test_a_sampled_answer_that_was_resumed_says_so(rig: Rig) -> None:
    job = rig.start("Tell me a story.", temperature=0.8, seed=3, max_tokens=10)
    rig.step_to(job, 5)
    rig.engine.pause(job)
    rig.engine.resume(job)
    rig.finish(job)

    assert ended(rig, job).usage["reseeded"] == 1
    assert ended(rig, job).usage["completion_tokens"] == 10


def test_a_cancel_of_a_paused_job_releases_it_at_once(rig: Rig) -> None:
    job = rig.start("Tell me a story.", max_tokens=50)
    rig.step_to(job, 2)
    rig.engine.pause(job)
    rig.step_until(lambda: rig.engine.idle)

    rig.cancel(job)
    rig.finish(job)

    assert rig.released[job].wasted == 0
    assert rig.engine.stats().kv_bytes == 0


def test_a_cancel_overtakes_a_pause_that_is_under_way(rig: Rig) -> None:
    job = rig.start("Tell me a story.", max_tokens=50)
    rig.step_to(job, 2)

    rig.engine.pause(job)
    rig.cancel(job)
    rig.finish(job)

    assert job not in rig.ends


# --- load ----------------------------------------------------------------------------------------


def test_the_engine_tells_its_slots_and_what_its_cache_is(rig: Rig) -> None:
    info = rig.engine.info

    assert (info.slots, info.methods, info.kv_kind) == (4, ["chat"], "reusable")
    assert info.context_tokens == 2048
    assert info.kv_budget_bytes == 4 * 2048 * 23_040
    assert rig.engine.chunk_tokens >= info.slots


def _prepare(job: int, content: str) -> Prepare:
    return Prepare(job, "chat", {"messages": [{"role": "user", "content": content}]}, "app")
