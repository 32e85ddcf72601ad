"""GGUF → mlx: names, row order and values as in the checkpoint the GGUF was made from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from plait.models import ModelDamaged, UnsupportedModel
from plait.models.gguf_file import read_gguf
from plait.models.mlx_weights import Dtype, convert

from . import tiny


def converted(gguf: Path, directory: Path, dtype: Dtype = "float32") -> dict[str, Any]:
    convert(read_gguf(gguf), directory, dtype, lambda percent: None)
    return dict(load_file(directory / "model.safetensors"))


def test_query_and_key_rows_are_back_in_checkpoint_order(tiny_gguf: Path, tmp_path: Path) -> None:
    original = tiny.weights(len(tiny.vocabulary()[0]))

    arrays = converted(tiny_gguf, tmp_path)

    for letter in "qkv":
        array = arrays[f"model.layers.0.self_attn.{letter}_proj.weight"]
        np.testing.assert_allclose(array, original[f"blk.0.attn_{letter}.weight"], atol=2e-3)


def test_every_tensor_is_there_in_one_dtype(tiny_gguf: Path, tmp_path: Path) -> None:
    arrays = converted(tiny_gguf, tmp_path, "float16")

    assert len(arrays) == len(tiny.weights(8))
    assert {array.dtype for array in arrays.values()} == {np.dtype("float16")}
    assert arrays["model.norm.weight"].shape == (tiny.HIDDEN,)


def test_the_configuration_names_every_end_of_turn(tiny_gguf: Path, tmp_path: Path) -> None:
    converted(tiny_gguf, tmp_path)

    config = json.loads((tmp_path / "config.json").read_text())
    assert config["eos_token_id"] == [2, 0]
    assert config["tie_word_embeddings"] is True
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (4, 2)


def test_progress_rises_to_a_hundred(tiny_gguf: Path, tmp_path: Path) -> None:
    seen: list[float] = []

    convert(read_gguf(tiny_gguf), tmp_path, "float32", seen.append)

    assert seen == sorted(seen)
    assert seen[-1] == 100


@pytest.mark.parametrize(
    "extra", [{"general.architecture": "gemma"}, {"llama.rope.scaling.type": "yarn"}]
)
def test_another_architecture_is_refused_with_a_way_out(
    tiny_gguf: Path, tmp_path: Path, extra: dict[str, str]
) -> None:
    gguf = read_gguf(tiny_gguf)
    other = replace(gguf, metadata={**gguf.metadata, **extra})

    with pytest.raises(UnsupportedModel, match="--chat-engine llamacpp"):
        convert(other, tmp_path, "float32", lambda percent: None)


def test_missing_tensor_data_is_a_damaged_file(tiny_gguf: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_gguf.read_bytes()[:-1000])

    with pytest.raises(ModelDamaged, match="breaks off"):
        converted(cut, tmp_path)
