"""The joined int8 Kokoro file as plain float32: what was quantized at run time computes in float.

The carriers hold weights of eight bits with activations quantized on the fly, which is slower on a
CPU than float32 and noisier. Each integer product (with its int32 bias, cast and scale), each
quantized LSTM and each quantized embedding becomes the float node it came from; names of nodes and
outputs stay those of the export. Does NOT know the model's parts; a pattern it does not know is a
`ModelDamaged`, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, helper, numpy_helper

from plait.models.errors import ModelDamaged

_PRODUCTS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
_QUANTIZED = {
    *_PRODUCTS, "DynamicQuantizeLSTM", "DynamicQuantizeLinear", "DequantizeLinear",
}  # fmt: skip
_BIAS_SUFFIX = "_quantizedbias_add"

Array = NDArray[np.generic]


def damaged(what: str) -> ModelDamaged:
    return ModelDamaged(
        f"The Kokoro model file is not the one Plait knows: {what}.",
        "Install kokoro-82m again; if it happens twice, the source changed and is not supported.",
    )


def dequantize(model: onnx.ModelProto) -> None:
    """Rewrite `model` in place. Raises ModelDamaged for any quantized node left over."""
    rewriting = _Rewriting(model.graph)
    for index in range(len(model.graph.node)):
        rewriting.replace(index)
    nodes = live_nodes(rewriting.nodes(), {output.name for output in model.graph.output})
    left = {node.op_type for node in nodes} & _QUANTIZED
    if left:
        raise damaged(f"{', '.join(sorted(left))} in an unknown place")
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(rewriting.new_values)
    keep_used_values(model.graph)


def live_nodes(
    nodes: Iterable[NodeProto], targets: set[str], given: frozenset[str] = frozenset()
) -> list[NodeProto]:
    """Those of `nodes` (in order) that `targets` depend on; tensors in `given` need no producer."""
    needed = set(targets) - given
    live = []
    for node in reversed(list(nodes)):
        if needed.intersection(node.output):
            live.append(node)
            needed.update(name for name in node.input if name and name not in given)
    return live[::-1]


def keep_used_values(graph: onnx.GraphProto) -> None:
    """Drop initializers that no node reads, and shape notes of tensors that may be gone."""
    used = {name for node in graph.node for name in node.input}
    kept = [value for value in graph.initializer if value.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.value_info[:]


class _Rewriting:
    """One pass over a graph. `_instead` maps a node's index to what stands there now, or None."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._nodes = list(graph.node)
        self._values = {value.name: value for value in graph.initializer}
        self._producers = {name: node for node in self._nodes for name in node.output if name}
        self._readers: dict[str, list[int]] = {}
        for index, node in enumerate(self._nodes):
            for name in node.input:
                self._readers.setdefault(name, []).append(index)
        self._instead: dict[int, NodeProto] = {}
        self._added: dict[str, onnx.TensorProto] = {}

    @property
    def new_values(self) -> list[onnx.TensorProto]:
        return list(self._added.values())

    def nodes(self) -> list[NodeProto]:
        return [self._instead.get(index, node) for index, node in enumerate(self._nodes)]

    def replace(self, index: int) -> None:
        node = self._nodes[index]
        if node.op_type in _PRODUCTS:
            self._replace_product(node)
        elif node.op_type == "DynamicQuantizeLSTM":
            self._replace_lstm(index, node)
        elif node.op_type == "DequantizeLinear":
            self._replace_embedding(index, node)

    def _replace_product(self, node: NodeProto) -> None:
        """x quantized, product, [+ int32 bias], cast, scale -> one float product with its bias."""
        source = self._producer(node.input[0], "DynamicQuantizeLinear")
        weight, base = self._integers(node.input[1])
        zero_point, scale = self._array(node.input[3]), self._array(f"{base}_scale")
        axis = weight.ndim - 1 if node.op_type == "MatMulInteger" else 0
        inputs = [source.input[0], self._add(base, _floats(weight, scale, zero_point, axis))]
        last = self._only_reader(node.output[0])
        if self._nodes[last].op_type == "Add":
            name = self._nodes[last].name
            if not name.endswith(_BIAS_SUFFIX):
                raise damaged(f"the sum {name} is no bias")
            inputs.append(name.removesuffix(_BIAS_SUFFIX))
            self._array(inputs[-1])
            last = self._only_reader(self._nodes[last].output[0])
        last = self._only_reader(self._nodes[last].output[0])
        scaling = self._nodes[last]
        if scaling.op_type != "Mul":
            raise damaged(f"{node.name} is not scaled back")
        self._put(last, _PRODUCTS[node.op_type], inputs, list(scaling.output), node)

    def _replace_lstm(self, index: int, node: NodeProto) -> None:
        inputs = [node.input[0]]
        for position, scale, zero_point in ((1, 8, 9), (2, 10, 11)):
            weight, base = self._integers(node.input[position])
            floats = _floats(
                weight, self._array(node.input[scale]), self._array(node.input[zero_point]), 0
            )
            inputs.append(self._add(base, floats.transpose(0, 2, 1)))
        inputs.extend(node.input[3:8])
        self._put(index, "LSTM", inputs, list(node.output), node)

    def _replace_embedding(self, index: int, node: NodeProto) -> None:
        lookup = self._producer(node.input[0], "Gather")
        table, base = self._integers(lookup.input[0])
        scale, zero_point = self._array(node.input[1]), self._array(node.input[2])
        rows = self._add(base, _floats(table, scale, zero_point, 0))
        self._put(index, "Gather", [rows, lookup.input[1]], list(node.output), lookup)

    def _put(
        self, index: int, op: str, inputs: list[str], outputs: list[str], like: NodeProto
    ) -> None:
        name = like.name.removesuffix("_quant")
        new = helper.make_node(op, inputs, outputs, name=name)
        new.attribute.extend(like.attribute)
        self._instead[index] = new

    def _integers(self, name: str) -> tuple[Array, str]:
        if not name.endswith("_quantized"):
            raise damaged(f"{name} is not a quantized weight")
        return self._array(name), name.removesuffix("_quantized")

    def _array(self, name: str) -> Array:
        value = self._values.get(name)
        if value is None:
            raise damaged(f"{name} is missing")
        array: Array = numpy_helper.to_array(value)
        return array

    def _add(self, base: str, values: NDArray[np.float32]) -> str:
        name = f"{base}_float"
        self._added[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def _producer(self, name: str, op: str) -> NodeProto:
        node: NodeProto | None = self._producers.get(name)
        if node is None or node.op_type != op:
            raise damaged(f"{name} does not come from {op}")
        return node

    def _only_reader(self, name: str) -> int:
        readers = self._readers.get(name, [])
        if len(readers) != 1:
            raise damaged(f"{name} is read {len(readers)} times instead of once")
        return readers[0]


def _floats(integers: Array, scale: Array, zero_point: Array, axis: int) -> NDArray[np.float32]:
    """(integers - zero point) * scale, per tensor or along `axis`."""
    shape = [1] * integers.ndim
    shape[axis] = -1
    scales = scale.astype(np.float32).reshape(shape if scale.size > 1 else [1] * integers.ndim)
    zeros = zero_point.astype(np.float32)
    zeros = zeros.reshape(shape if zero_point.size > 1 else [1] * integers.ndim)
    floats: NDArray[np.float32] = (integers.astype(np.float32) - zeros) * scales
    return floats
