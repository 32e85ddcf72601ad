"""A graph under construction: operators, constants, and the finished onnx model.

Methods return the name of the tensor they made. Tensors of a stage are rows: [samples, channels],
which makes each tap of a convolution a copy of whole rows and each product a plain matrix product.
Does NOT know Kokoro.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
IR_VERSION = 9

Floats = NDArray[np.float32]
Shape = Sequence[int | str]


class Canvas:
    """Collects nodes and initializers in the order of the calls."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def op(
        self,
        kind: str,
        *inputs: str,
        outputs: Sequence[str] = (),
        **attributes: Any,
    ) -> str:
        """One operator; its first output. Outputs without names are made up."""
        names = list(outputs) or [f"{kind}_{len(self._nodes)}"]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0]

    def keep(self, node: onnx.NodeProto) -> None:
        """A node that was made elsewhere."""
        self._nodes.append(node)

    def floats(self, name: str, value: NDArray[np.floating] | float) -> str:
        return self._constant(name, np.asarray(value, np.float32))

    def integers(self, value: Sequence[int] | NDArray[np.integer] | int, name: str = "") -> str:
        """Without a name, equal integers are one constant."""
        array = np.asarray(value, np.int64)
        text = str(array.tolist()).replace(" ", "")
        return self._constant(name or f"int{text}", array)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        return self.op("Reshape", x, self.integers(shape))

    def rows(self, x: str) -> str:
        """The number of rows of `x`, a scalar."""
        return self.reshape(self.op("Shape", x, start=0, end=1), [])

    def slice_rows(self, x: str, start: int, end: int) -> str:
        """Rows `[start:end]` of `x`, as Python counts them."""
        return self.op("Slice", x, *(self.integers([n]) for n in (start, end, 0)))

    def model(
        self, name: str, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape]
    ) -> onnx.ModelProto:
        """The finished model; all ports are float32."""
        graph = helper.make_graph(
            self._nodes, name, _ports(inputs), _ports(outputs), list(self._constants.values())
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="plait"
        )
        onnx.checker.check_model(model)
        return model

    def replace_nodes(self, graph: onnx.GraphProto) -> None:
        """Put the drawn nodes in the place of the graph's own, and add the constants."""
        del graph.node[:]
        graph.node.extend(self._nodes)
        graph.initializer.extend(self._constants.values())

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(value, name)
        return name


def _ports(shapes: Mapping[str, Shape]) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
