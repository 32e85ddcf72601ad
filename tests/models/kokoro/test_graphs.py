"""Kokoro's graphs: short transforms convolve, and a file that is not the model is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.testing import assert_allclose
from onnx import TensorProto, helper, numpy_helper

from plait.models.errors import ModelDamaged
from plait.models.kokoro.acoustic import redraw_wide_convolutions
from plait.models.kokoro.canvas import Canvas, Floats
from plait.models.kokoro.convolution import Convolutions, tile_transform
from plait.models.kokoro.dequantize import dequantize, live_nodes
from plait.models.kokoro.graphs import build_graphs

random = np.random.default_rng(11)


def run(model: onnx.ModelProto, **inputs: Floats) -> Floats:
    from onnx.reference import ReferenceEvaluator

    (output,) = ReferenceEvaluator(model).run(None, inputs)
    result: Floats = np.asarray(output, np.float32)
    return result


# --- convolutions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "kernel"), [(16, 7), (20, 11), (24, 7), (32, 11), (16, 3), (6, 3), (5, 2)]
)
def test_a_transformed_tile_is_a_convolved_tile(size: int, kernel: int) -> None:
    transform = tile_transform(size, kernel)
    tile, taps = random.standard_normal(size), random.standard_normal(kernel)

    outputs = transform.back @ ((transform.weights @ taps) * (transform.into @ tile))

    assert_allclose(outputs, np.correlate(tile, taps, "valid"), atol=1e-12)


def test_a_transform_takes_fewer_products_than_taps() -> None:
    transform = tile_transform(32, 11)

    products_per_output = len(transform.into) / len(transform.back)

    assert products_per_output < 11 / 5


def convolution(weight: Floats, dilation: int, tile: int | None, **options: Any) -> onnx.ModelProto:
    out, channels, kernel = weight.shape
    canvas = Canvas()
    tiles = {} if tile is None else {(channels, kernel): tile}
    convolutions = Convolutions(canvas, tiles, **options)
    y = convolutions.draw("c", "x", canvas.rows("x"), weight, dilation)
    canvas.op("Identity", y, outputs=["y"])
    return canvas.model("c", {"x": ["L", channels]}, {"y": ["L", out]})


def convolved(x: Floats, weight: Floats, dilation: int) -> Floats:
    """With zeros outside: the sum of its taps."""
    reach = (weight.shape[2] - 1) * dilation // 2
    wide = np.pad(x, ((reach, reach), (0, 0)))
    taps = [wide[tap * dilation :][: len(x)] for tap in range(weight.shape[2])]
    total: Floats = np.sum([row @ weight[:, :, tap].T for tap, row in enumerate(taps)], axis=0)
    return total


@pytest.mark.parametrize("tile", [None, 16, 17])
@pytest.mark.parametrize("dilation", [1, 3, 5])
@pytest.mark.parametrize("rows", [41, 60, 97])
def test_rows_are_convolved_at_any_dilation_and_length(
    tile: int | None, dilation: int, rows: int
) -> None:
    weight = random.standard_normal((4, 3, 7)).astype(np.float32)
    x = random.standard_normal((rows, 3)).astype(np.float32)

    y = run(convolution(weight, dilation, tile), x=x)

    inside = slice(3 * dilation, rows - 3 * dilation)
    assert y.shape == (rows, 4)
    assert_allclose(y[inside], convolved(x, weight, dilation)[inside], atol=2e-5)


@pytest.mark.parametrize("tile", [None, 6])
@pytest.mark.parametrize("packed_from", [5, 6])
@pytest.mark.parametrize("rows", [1, 2, 4, 13])
def test_with_zero_edges_all_rows_are_right(tile: int | None, packed_from: int, rows: int) -> None:
    weight = random.standard_normal((4, 5, 3)).astype(np.float32)
    x = random.standard_normal((rows, 5)).astype(np.float32)

    y = run(convolution(weight, 1, tile, zero_edges=True, packed_from=packed_from), x=x)

    assert_allclose(y, convolved(x, weight, 1), atol=2e-5)


def test_wide_convolutions_are_redrawn_and_give_the_same() -> None:
    weight = random.standard_normal((256, 256, 3)).astype(np.float32) / np.float32(16)
    bias = random.standard_normal(256).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], "conv", kernel_shape=[3], pads=[1, 1])
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 256, "T"]) for n in "xy"]
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph([node], "wide", ports[:1], ports[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    redraw_wide_convolutions(model)

    x = random.standard_normal((1, 256, 11)).astype(np.float32)
    expected = convolved(x[0].T, weight, 1).T + bias[:, None]
    assert "Conv" not in {node.op_type for node in model.graph.node}
    assert_allclose(run(model, x=x)[0], expected, atol=1e-4)


def test_equal_constants_are_stored_once() -> None:
    model = convolution(np.ones((2, 2, 7), np.float32), 1, 16)

    names = [value.name for value in model.graph.initializer]

    assert len(names) == len(set(names))


# --- dequantizing --------------------------------------------------------------------------------


def quantized_product(**replaced: Any) -> onnx.ModelProto:
    """x quantized @ weight quantized + bias, as the carriers hold it."""
    values: dict[str, Any] = {
        "w_quantized": np.array([[1, 2], [3, 250]], np.uint8),
        "w_scale": np.array([0.5, 0.25], np.float32),
        "w_zero_point": np.array([2, 4], np.uint8),
        "b": np.array([10, 20], np.float32),
    } | replaced
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node(
            "MatMulInteger", ["q", "w_quantized", "z", "w_zero_point"], ["i"], "m_quant"
        ),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "w_scale"], ["scale"]),
        helper.make_node("Mul", ["f", "scale"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(v, name) for name, v in values.items() if v is not None],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_a_quantized_product_becomes_a_float_one() -> None:
    model = quantized_product()
    x = np.array([[1.0, -2.0]], np.float32)

    dequantize(model)

    assert {node.op_type for node in model.graph.node} == {"MatMul", "Add"}
    weight = (np.array([[1, 2], [3, 250]]) - [2, 4]) * [0.5, 0.25]
    assert_allclose(run(model, x=x), x @ weight + [10, 20], rtol=1e-6)


def test_a_quantized_product_without_its_scale_is_damaged() -> None:
    with pytest.raises(ModelDamaged, match=r"w_scale is missing"):
        dequantize(quantized_product(w_scale=None))


def test_live_nodes_are_those_the_targets_need() -> None:
    nodes = quantized_product().graph.node

    live = live_nodes(nodes, {"scale"})

    assert [node.op_type for node in live] == ["DynamicQuantizeLinear", "Mul"]


# --- files ---------------------------------------------------------------------------------------


def write_junk(path: Path) -> None:
    path.write_bytes(b"\xff" * 1000)


def write_nothing(path: Path) -> None:
    path.write_bytes(b"")


def write_another_model(path: Path) -> None:
    path.write_bytes(quantized_product().SerializeToString())


@pytest.mark.parametrize("write", [write_junk, write_nothing, write_another_model])
def test_what_is_not_the_model_is_damaged_and_leaves_no_graph(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    write(tmp_path / "model.onnx")
    (tmp_path / "out").mkdir()

    with pytest.raises(ModelDamaged):
        build_graphs(tmp_path / "model.onnx", tmp_path / "out", lambda percent: None)

    assert not list((tmp_path / "out").iterdir())
