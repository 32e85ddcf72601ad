"""Prompts are read in turns: no short request, and no end of one, waits for a long prompt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait.models import ModelStore
from tests.engines.llamacpp.rig import Rig

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

SENTENCE = "The quick brown fox jumps over the lazy dog. "
SENTENCE_TOKENS = 10
LONG_CHUNKS = 30
MOST_SENTENCES = 80  # twice as many still fit the context


@pytest.fixture(scope="module")
def loaded() -> Iterator[Rig]:
    model = ModelStore().ensure("smollm2-135m-instruct", "llamacpp")
    assert model.gguf is not None
    rig = Rig(model.gguf, model.tokenizer)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    yield loaded
    for job in loaded.items:
        loaded.engine.cancel(job)
    loaded.finish()
    assert loaded.engine.stats().slots_used == 0


@pytest.fixture
def long_text(loaded: Rig) -> str:
    """Read in many chunks, however many tokens a chunk has on this machine, and in no more."""
    sentences = LONG_CHUNKS * loaded.engine.chunk_tokens // SENTENCE_TOKENS
    return SENTENCE * min(sentences, MOST_SENTENCES)


def test_a_short_prompt_overtakes_a_long_one_that_was_first(rig: Rig, long_text: str) -> None:
    long = rig.start(long_text, scope="one", max_tokens=2)
    short = rig.start("Hi", scope="two", max_tokens=2)

    rig.step_to(short, 1)

    assert rig.items[long] == []


def test_a_prompt_read_in_turns_is_answered_as_if_read_at_once(rig: Rig, long_text: str) -> None:
    alone = rig.talk(long_text + "Why?", scope="alone", max_tokens=6)
    long = rig.start(long_text + "Why?", scope="turns", max_tokens=6)
    others = [rig.start(f"Say {n}", scope=str(n), max_tokens=3) for n in range(3)]
    rig.finish(long, *others)

    assert rig.text(long) == alone


def test_a_cancel_is_confirmed_while_a_long_prompt_is_read(rig: Rig, long_text: str) -> None:
    decoding = rig.start("Tell me a long story.", scope="one", max_tokens=200)
    rig.step_to(decoding, 2)
    long = rig.start(long_text, scope="two", max_tokens=2)
    rig.step_times(3)

    rig.cancel(decoding)
    rig.finish(decoding)

    assert rig.items[long] == []


def test_a_cancel_before_its_turn_releases_at_once(rig: Rig, long_text: str) -> None:
    rig.start(long_text, scope="one", max_tokens=2)
    waiting = rig.start("Hi", scope="two", max_tokens=2)

    rig.cancel(waiting)
    rig.step_times(1)

    assert waiting in rig.released


def test_two_long_prompts_do_not_take_turns_at_each_others_cost(rig: Rig, long_text: str) -> None:
    first = rig.start(long_text, scope="one", max_tokens=100)
    second = rig.start(long_text + long_text, scope="two", max_tokens=2)

    rig.step_to(first, 1)

    assert rig.engine.stats().slots_used == 2
    assert rig.items[second] == []
