"""The mlx adapter on the starter model: it talks, stops, pauses and gives its memory back.

On a Linux CPU a step takes 0.1 to 0.3 s, so answers are short here; see test_mlx for the stress.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait.engines.base import Finished
from plait.models import ModelStore
from tests.engines.mlx.tiny import Rig, make_rig

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def loaded() -> Iterator[Rig]:
    model = ModelStore().ensure("smollm2-135m-instruct", "mlx")
    assert model.mlx is not None
    rig = make_rig(model.mlx, tokenizer=str(model.tokenizer), context_tokens=4096)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(loaded: Rig) -> Iterator[Rig]:
    """One engine for all tests of the module; each has to leave it empty."""
    yield loaded
    loaded.finish()
    assert loaded.engine.stats().kv_bytes == 0


def test_an_answer_ends_by_itself_and_shows_no_control_token(rig: Rig) -> None:
    job = rig.start("What is 2+2?", max_tokens=40)
    rig.finish()

    end = rig.ends[job]
    assert isinstance(end, Finished)
    assert end.finish_reason == "stop"
    assert "4" in rig.text(job)
    assert "<|" not in rig.text(job)


def test_three_parallel_answers_equal_the_single_ones_around_a_cancel_and_a_pause(rig: Rig) -> None:
    questions = ["List five fruits.", "Write a poem about the sea.", "Name three colours."]
    alone = [rig.talk(question, max_tokens=5) for question in questions]
    jobs = [rig.start(question, max_tokens=5) for question in questions]
    goes = rig.start("Tell me everything about whales.", max_tokens=100)
    rig.step_to(goes, 2)

    rig.engine.pause(jobs[2])
    rig.click_stop(goes)
    rig.step()
    assert rig.released[goes].wasted <= 1
    rig.step()
    rig.engine.resume(jobs[2])
    rig.finish()

    assert [rig.text(job) for job in jobs] == alone


def test_a_cancel_in_the_prefill_of_a_long_prompt_gives_the_memory_back(rig: Rig) -> None:
    import mlx.core as mx

    rig.finish()
    baseline = mx.get_active_memory()
    job = rig.start("word " * 2000, max_tokens=5)
    rig.step()
    rig.step()
    held = rig.engine.stats().kv_bytes

    rig.click_stop(job)
    rig.step()
    rig.finish()

    assert held > 0
    assert (rig.released[job].wasted, rig.engine.stats().kv_bytes) == (0, 0)
    assert mx.get_active_memory() <= baseline + 65_536
