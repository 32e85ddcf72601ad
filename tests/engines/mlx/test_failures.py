"""What breaks one mlx chat breaks no other: poisoned rows, failing steps, wrong directories."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plait.engines.base import Failed, Finished
from plait.engines.chat.prompt import ChatTokenizer
from plait.engines.mlx.engine import build, load
from plait.errors import ModelLoadFailed
from tests.engines.mlx.tiny import (
    POISON,
    Flags,
    Rig,
    build_tiny_model,
    make_rig,
    say_nothing,
    tiny_spec,
)

pytestmark = pytest.mark.model

MARKED = "~"  # a byte that the models below cannot stand


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))


class FailingModel:
    """The tiny model, but a forward pass over a prompt with `MARKED` in it raises `error`."""

    def __init__(self, model: Any, marked: int, error: Exception) -> None:
        self._model = model
        self._marked = marked
        self._error = error

    def __call__(self, tokens: Any, **caches: Any) -> Any:
        if tokens.shape[1] > 1 and (tokens == self._marked).any().item():
            raise self._error
        return self._model(tokens, **caches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def failing_rig(directory: Path, error: Exception) -> Rig:
    from mlx_lm.utils import load_model

    model, _ = load_model(directory)
    tokenizer = ChatTokenizer.load(directory)
    failing = FailingModel(model, tokenizer.vocabulary.pieces.index(MARKED.encode()), error)
    flags = Flags()
    return Rig(build(tiny_spec(directory), flags, failing, tokenizer, say_nothing), flags)


def failure(rig: Rig, job: int) -> Failed:
    end = rig.ends[job]
    assert isinstance(end, Failed)
    return end


def test_a_row_without_valid_probabilities_fails_alone(tiny_model: Path) -> None:
    rig = make_rig(tiny_model)
    alone = [rig.talk(text, max_tokens=20) for text in ("one", "two")]

    one, poisoned = rig.start("one", max_tokens=20), rig.start(f"po{POISON}ison")
    two = rig.start("two", max_tokens=20)
    rig.finish()

    assert failure(rig, poisoned).fault.code == "generation_failed"
    assert poisoned in rig.released
    assert [rig.text(one), rig.text(two)] == alone


def test_a_prompt_that_breaks_the_step_fails_alone(tiny_model: Path) -> None:
    rig = failing_rig(tiny_model, RuntimeError("kernel of doom"))
    good = [rig.start(f"good {number}", max_tokens=30) for number in range(3)]
    rig.step_to(good[-1], 5)

    bad = rig.start(f"bad {MARKED}", max_tokens=30)
    rig.finish()

    fault = failure(rig, bad).fault
    assert fault.code == "generation_failed"
    assert "doom" not in fault.message
    assert [rig.text(job) for job in good] == [
        rig.talk(f"good {number}", max_tokens=30) for number in range(3)
    ]
    assert rig.engine.stats().kv_bytes == 0


def test_memory_that_runs_out_is_that_chats_failure(tiny_model: Path) -> None:
    rig = failing_rig(tiny_model, RuntimeError("[malloc] Unable to allocate 99 bytes."))

    bad = rig.start(f"bad {MARKED}")
    rig.finish()
    after = [rig.talk(f"ok {number}", max_tokens=5) for number in range(10)]

    assert failure(rig, bad).fault.code == "out_of_memory"
    assert failure(rig, bad).fault.retry_after_ms is not None
    assert all(after)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[malloc] Unable to allocate 99 bytes."),
        RuntimeError(
            "[metal::malloc] Attempting to allocate 99 bytes which is greater than "
            "the maximum allowed buffer size of 9 bytes."
        ),
        RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory"),
    ],
)
def test_every_way_mlx_says_out_of_memory_is_recognized(error: Exception) -> None:
    from plait.engines.mlx.job import failure_of  # after tiny_mlx has loaded the BLAS

    assert failure_of(error).code == "out_of_memory"


def test_an_answer_at_its_end_is_not_touched_by_a_later_failure(tiny_model: Path) -> None:
    rig = failing_rig(tiny_model, RuntimeError("kernel of doom"))
    done = rig.start("done", max_tokens=3)
    rig.finish()

    rig.start(MARKED)
    rig.finish()

    assert isinstance(rig.ends[done], Finished)


def remove_weights(directory: Path) -> None:
    (directory / "model.safetensors").unlink()


def cut_weights(directory: Path) -> None:
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def name_unknown_kind(directory: Path) -> None:
    config = directory / "config.json"
    config.write_text(config.read_text().replace('"llama"', '"perpetuum"'))


def remove_tokenizer(directory: Path) -> None:
    (directory / "tokenizer.json").unlink()


def lose_a_tensor(directory: Path) -> None:
    config = directory / "config.json"
    config.write_text(
        config.read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3')
    )


@pytest.mark.parametrize(
    "damage",
    [
        remove_weights,
        cut_weights,
        name_unknown_kind,
        remove_tokenizer,
        lose_a_tensor,
        shutil.rmtree,
    ],
)
def test_a_wrong_directory_is_a_typed_failure_without_its_path(
    tiny_model: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    directory = tmp_path / "model"
    shutil.copytree(tiny_model, directory)
    damage(directory)

    with pytest.raises(ModelLoadFailed) as caught:
        load(tiny_spec(directory), Flags(), say_nothing)

    assert str(tmp_path) not in caught.value.message


def test_without_mlx_the_load_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['mlx'] = None\n"
        "from plait.engines.mlx.engine import load\n"
        "from plait.engines.base import LoadSpec\n"
        "load(LoadSpec('mlx', 'tiny', 1, 64, 64), None, lambda phase, percent: None)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip

    assert "ModelLoadFailed" in run.stderr
    assert "install plait[mlx]" in run.stderr
