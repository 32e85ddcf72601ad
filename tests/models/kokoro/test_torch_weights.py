"""ONNX → the kokoro package's checkpoint: every tensor accounted for, or the file is damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors import safe_open

from plait.models import ModelDamaged, ModelStore
from plait.models.kokoro.torch_state import CONFIG, is_identity_norm, state_shapes
from plait.models.kokoro.torch_weights import complete, convert

Array = NDArray[np.float32]
SMALL = {
    "conv.weight_g": (2, 1, 1),
    "conv.weight_v": (2, 3, 1),
    "conv.bias": (2,),
    "norm1.norm.weight": (3,),
    "norm1.norm.bias": (3,),
    "bert.pooler.bias": (4,),
}


def ignore(percent: float) -> None:
    pass


def found(**more: Array) -> dict[str, Callable[[], Array]]:
    weight = np.array([[[3], [0], [4]], [[0], [0], [0]]], np.float32)
    arrays = {"conv.weight": weight, "conv.bias": np.ones(2, np.float32), **more}
    return {name: array.copy for name, array in arrays.items()}


def test_a_convolution_is_split_into_length_and_direction() -> None:
    state = complete(found(), SMALL)

    length, direction = state["conv.weight_g"]()[0], state["conv.weight_v"]()[0]
    assert length.tolist() == [[5]]
    assert direction.ravel().tolist() == [3, 0, 4]


def test_a_channel_of_zeros_stays_one_instead_of_becoming_no_number() -> None:
    state = complete(found(), SMALL)

    assert state["conv.weight_g"]()[1].tolist() == [[0]]
    assert state["conv.weight_v"]()[1].ravel().tolist() == [1, 1, 1]


def test_norms_without_parameters_are_the_identity_and_an_unused_head_is_empty() -> None:
    state = complete(found(), SMALL)

    assert state["norm1.norm.weight"]().tolist() == [1, 1, 1]
    assert state["norm1.norm.bias"]().tolist() == [0, 0, 0]
    assert state["bert.pooler.bias"]().tolist() == [0, 0, 0, 0]


def test_a_missing_tensor_is_named() -> None:
    weights = found()
    del weights["conv.bias"]

    with pytest.raises(ModelDamaged, match=r"lacks 1 tensors, the first is conv\.bias"):
        complete(weights, SMALL)


def test_a_tensor_that_nothing_asks_for_is_named() -> None:
    with pytest.raises(ModelDamaged, match=r"in addition 1 tensors, the first is lstm\.weight"):
        complete(found(**{"lstm.weight": np.ones(1, np.float32)}), SMALL)


def test_the_checkpoint_has_688_tensors_of_82_million_numbers() -> None:
    shapes = state_shapes()

    assert len(shapes) == 688
    assert sum(math.prod(shape) for shape in shapes.values()) == 81_810_022
    assert sum(map(is_identity_norm, shapes)) == 140


@pytest.mark.parametrize("content", [b"", b"not an ONNX file", b"\x08\x07\x12\x99\x99\x99\x99"])
def test_a_file_that_is_no_model_is_damaged(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(content)

    with pytest.raises(ModelDamaged):
        convert(source, tmp_path, ignore)


@pytest.fixture(scope="module")
def joined() -> Path:
    return ModelStore().ensure("kokoro-82m", "kokoro-onnx").directory / "model.onnx"


@pytest.mark.model
@pytest.mark.timeout(180)
def test_the_installed_model_becomes_a_whole_checkpoint(joined: Path, tmp_path: Path) -> None:
    seen: list[float] = []

    convert(joined, tmp_path, seen.append)

    with safe_open(tmp_path / "model.safetensors", "np") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        assert all(np.isfinite(file.get_tensor(name)).all() for name in shapes)
    assert shapes == state_shapes()
    assert json.loads((tmp_path / "config.json").read_text()) == CONFIG
    assert (seen == sorted(seen), seen[-1]) == (True, 100)


@pytest.mark.model
@pytest.mark.timeout(180)
def test_a_model_that_breaks_off_is_damaged(joined: Path, tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(joined.read_bytes()[:50_000_000])

    with pytest.raises(ModelDamaged):
        convert(source, tmp_path, ignore)


@pytest.mark.model
@pytest.mark.timeout(180)
def test_a_model_without_one_of_its_layers_is_damaged(joined: Path, tmp_path: Path) -> None:
    model = onnx.load(joined)
    nodes = model.graph.node
    nodes.remove(next(node for node in nodes if node.name.endswith("conv_post/Conv")))
    source = tmp_path / "model.onnx"
    onnx.save(model, source)

    with pytest.raises(ModelDamaged):
        convert(source, tmp_path, ignore)
