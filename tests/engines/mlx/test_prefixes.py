"""Kept prefixes of the mlx adapter: what is saved, that nothing else changes, what it may take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.mlx.tiny import Rig, build_tiny_model, make_rig

pytestmark = pytest.mark.model

# keys and values x 2 layers x 2 heads x 16 numbers of 4 bytes
BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 4
CAP_BYTES = 8192 * BYTES_PER_TOKEN
LONG = "word " * 300  # 1,500 tokens: many prefill chunks
SHORT = "a short question, twice"
MARKUP = len("<user\n>\n<assistant\n") - 1  # tokens around a message: three special ones


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))


@pytest.fixture(scope="module")
def plain(tiny_model: Path) -> Iterator[Rig]:
    """It keeps nothing: what its chats say is what the others have to say."""
    rig = make_rig(tiny_model)
    yield rig
    rig.engine.close()


@pytest.fixture
def rig(tiny_model: Path) -> Iterator[Rig]:
    rig = make_rig(tiny_model, prefix_cache_bytes=CAP_BYTES)
    yield rig
    rig.finish()
    assert (rig.engine.stats().slots_used, rig.engine.stats().kv_bytes) == (0, 0)
    rig.engine.close()


def cached(rig: Rig, job: int) -> int:
    return rig.released[job].usage["cached_tokens"]


@pytest.mark.parametrize("text", [SHORT, LONG], ids=["short", "long"])
def test_a_prompt_sent_again_is_not_read_again_and_answered_the_same(
    rig: Rig, plain: Rig, text: str
) -> None:
    expected = plain.talk(text, max_tokens=20)

    answers = [rig.talk(text, max_tokens=20) for _ in range(3)]

    assert answers == [expected] * 3
    assert cached(rig, 1) == 0
    for job in (2, 3):  # all but the last token
        assert cached(rig, job) == rig.released[job].usage["prompt_tokens"] - 1
