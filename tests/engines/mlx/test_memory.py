"""KV memory of the mlx adapter: what is reserved, what is held, and what padding adds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.errors import ResourceNotAvailable
from tests.engines.mlx.tiny import Rig, build_tiny_model, make_rig

pytestmark = pytest.mark.model

# keys and values x 2 layers x 2 heads x 16 numbers of 4 bytes
BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 4


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))


@pytest.fixture
def rig(tiny_model: Path) -> Iterator[Rig]:
    """A budget for one long row, or for a few short ones."""
    rig = make_rig(tiny_model, kv_budget_bytes=2048 * BYTES_PER_TOKEN)
    yield rig
    rig.engine.close()


def test_the_budget_defaults_to_every_slot_full(tiny_model: Path) -> None:
    from plait.engines.mlx.batch import cells  # after tiny_mlx has loaded the BLAS

    info = make_rig(tiny_model).engine.info

    assert (info.kv_kind, info.kv_budget_bytes) == ("freed", 4 * cells(2048) * BYTES_PER_TOKEN)


def test_a_reservation_covers_prompt_and_answer_in_allocation_steps(rig: Rig) -> None:
    job, prepared = rig.prepare("x" * 300, max_tokens=100)  # 318 + 100 tokens
    rig.engine.cancel(job)

    assert prepared.reserve_bytes == 768 * BYTES_PER_TOKEN


@pytest.mark.parametrize("prompt", [1, 200, 236, 237, 238, 490, 700])
def test_a_chat_never_holds_more_than_it_reserved(rig: Rig, prompt: int) -> None:
    job, prepared = rig.prepare("x" * prompt, max_tokens=300)
    rig.engine.start(job)
    most = 0
    while not rig.engine.idle:
        rig.step()
        most = max(most, rig.engine.stats().kv_bytes)

    assert 0 < most <= prepared.reserve_bytes


def test_a_chat_that_padding_would_take_over_the_budget_waits(rig: Rig) -> None:
    alone = rig.talk("short", max_tokens=10)
    longest = rig.start("x" * 1200, max_tokens=50)
    short = rig.start("short", max_tokens=10)  # two rows as long as the longest do not fit
    most = 0
    while not rig.engine.idle:
        rig.step()
        most = max(most, rig.engine.stats().kv_bytes)
        assert longest in rig.ends or short not in rig.items

    assert most <= rig.engine.info.kv_budget_bytes
    assert rig.text(short) == alone


def test_a_chat_that_waits_for_memory_can_be_cancelled_at_once(rig: Rig) -> None:
    rig.start("x" * 1200, max_tokens=50)
    short = rig.start("short", max_tokens=10)
    rig.step()

    rig.click_stop(short)
    rig.step()

    assert rig.released[short].wasted == 0
    rig.finish()


def test_a_chat_that_can_never_fit_is_refused_with_the_numbers(rig: Rig) -> None:
    with pytest.raises(ResourceNotAvailable) as caught:
        rig.prepare("x" * 1800, max_tokens=200)

    assert caught.value.data == {
        "model": "tiny",
        "required_bytes": 2304 * BYTES_PER_TOKEN,
        "available_bytes": 2048 * BYTES_PER_TOKEN,
    }
