"""Kept prefixes of the llama.cpp adapter: what is saved, that nothing else changes, who sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plait.models import ModelStore
from tests.engines.llamacpp.rig import Rig

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

LONG = "The quick brown fox jumps over the lazy dog. " * 12
SHORT = "Name three colours."
BYTES_PER_TOKEN = 23_040
CAP_BYTES = 10_000 * BYTES_PER_TOKEN


@pytest.fixture(scope="module")
def loaded() -> Iterator[Rig]:
    model = ModelStore().ensure("smollm2-135m-instruct", "llamacpp")
    assert model.gguf is not None
    rig = Rig(model.gguf, model.tokenizer, slots=3, context_tokens=1024)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    """One engine for all tests; each begins with nothing kept and has to leave it empty."""
    loaded.engine.keep_prefixes(0)
    loaded.engine.keep_prefixes(CAP_BYTES)
    yield loaded
    for job in loaded.items:
        loaded.engine.cancel(job)
    loaded.finish()
    assert (loaded.engine.stats().slots_used, loaded.engine.stats().kv_bytes) == (0, 0)


def chat(rig: Rig, text: str, **params: Any) -> int:
    job = rig.start(text, **params)
    rig.finish(job)
    return job


def cached(rig: Rig, job: int) -> int:
    return rig.released[job].usage["cached_tokens"]


def kept_tokens(rig: Rig) -> int:
    return rig.engine.stats().cache_bytes // BYTES_PER_TOKEN


def test_a_prompt_sent_again_is_not_read_again_and_answered_the_same(rig: Rig) -> None:
    jobs = [chat(rig, SHORT, max_tokens=12) for _ in range(3)]

    all_but_one = rig.released[jobs[0]].usage["prompt_tokens"] - 1
    assert {rig.text(job) for job in jobs} == {rig.text(jobs[0])}
    assert [cached(rig, job) for job in jobs] == [0, all_but_one, all_but_one]


def test_a_long_prompt_cancelled_while_it_is_read_goes_on_where_it_stopped(rig: Rig) -> None:
    expected = rig.text(chat(rig, LONG, scope="alone", max_tokens=8))
    first = rig.start(LONG, max_tokens=8)
    rig.step_until(lambda: rig.engine.stats().kv_bytes > 20 * BYTES_PER_TOKEN)
    before = kept_tokens(rig)
    rig.cancel(first)
    rig.finish(first)
    read = kept_tokens(rig) - before

    again = chat(rig, LONG, max_tokens=8)

    assert rig.items[first] == []
    assert 20 < read <= cached(rig, again) < rig.released[first].usage["prompt_tokens"]
    assert rig.text(again) == expected


def test_a_cancel_in_the_middle_of_an_answer_keeps_what_was_said(rig: Rig) -> None:
    expected = rig.text(chat(rig, SHORT, scope="alone", max_tokens=20))
    job = rig.start(SHORT, max_tokens=20)
    rig.step_to(job, 4)
    rig.cancel(job)
    rig.finish(job)

    again = chat(rig, SHORT, max_tokens=20)

    assert cached(rig, again) == rig.released[job].usage["prompt_tokens"] - 1
    assert rig.text(again) == expected


def test_a_short_chat_meanwhile_does_not_cost_a_long_prompt_its_cache(rig: Rig) -> None:
    long = chat(rig, LONG, max_tokens=2)
    chat(rig, SHORT, max_tokens=2)

    assert cached(rig, chat(rig, LONG, max_tokens=2)) > 100
    assert cached(rig, long) == 0


def test_what_must_not_be_kept_is_neither_counted_nor_used_again(rig: Rig) -> None:
    chat(rig, SHORT, max_tokens=5)
    kept = kept_tokens(rig)

    rig.engine.keep_prefixes(0)
    after = kept_tokens(rig)
    again = chat(rig, SHORT, max_tokens=5)

    assert (kept > 30, after, cached(rig, again)) == (True, 0, 0)
    assert kept_tokens(rig) == 0


def test_neighbours_of_a_chat_with_a_kept_prefix_say_what_they_say_alone(rig: Rig) -> None:
    texts = [SHORT, "List five fruits.", "Count to twenty."]
    alone = [rig.text(chat(rig, text, scope="alone", max_tokens=10)) for text in texts]
    chat(rig, SHORT, max_tokens=10)

    jobs = [rig.start(text, max_tokens=10) for text in texts]
    rig.finish(*jobs)

    assert [rig.text(job) for job in jobs] == alone
    assert cached(rig, jobs[0]) > 30
