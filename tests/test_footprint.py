"""The guess at a model's memory, beside what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.engines.base import LoadSpec
from plait.engines.worker import ADAPTERS
from plait.footprint import GROWTH, footprint_bytes
from plait.models import ModelStore


def spec(engine: str, weights: Path | None = None) -> LoadSpec:
    return LoadSpec(engine, "m", 4, 4096, 1024, weights=str(weights or ""))


def test_every_engine_has_its_figures() -> None:
    assert GROWTH.keys() == ADAPTERS.keys()


def test_a_directory_counts_with_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(bytes(1000))
    (tmp_path / "two").write_bytes(bytes(500))

    assert footprint_bytes(spec("mlx", tmp_path)) == 1500 + GROWTH["mlx"].base_bytes


def test_a_damaged_file_is_guessed_by_its_size_alone(tmp_path: Path) -> None:
    weights = tmp_path / "broken.gguf"
    weights.write_bytes(bytes(1000))

    assert footprint_bytes(spec("llamacpp", weights)) == 1000 + GROWTH["llamacpp"].base_bytes


@pytest.mark.model
def test_the_preallocated_kv_of_llama_cpp_counts() -> None:
    model = ModelStore().find("smollm2-135m-instruct")
    assert model is not None
    weights = model.form("llamacpp")
    assert weights is not None

    guessed = footprint_bytes(spec("llamacpp", weights))

    assert guessed - footprint_bytes(spec("whisper", weights)) == pytest.approx(377e6, rel=0.01)
