"""The acoustic part with its wide convolutions drawn anew, by transforms of short tiles.

Convolutions of three taps over hundreds of channels take most of that part's time; by Winograd they
take half the multiplications. The rest of the graph stays as it was cut. Does NOT know what the
part computes: it finds convolutions by their shape.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import helper, numpy_helper

from plait.models.kokoro.canvas import Canvas, Floats
from plait.models.kokoro.convolution import WINOGRAD, Convolutions
from plait.models.kokoro.dequantize import keep_used_values

WIDE = 256  # channels from which on it pays
KERNEL = 3
SIZE = len(WINOGRAD.into)
_SAME = {"kernel_shape": [3], "strides": [1], "pads": [1, 1], "dilations": [1], "group": 1}


def redraw_wide_convolutions(model: onnx.ModelProto) -> None:
    """Rewrite `model` in place."""
    graph = model.graph
    values = {value.name: value for value in graph.initializer}
    canvas = Canvas()
    for node in list(graph.node):
        weight = _wide_weight(node, values)
        if weight is None:
            canvas.keep(node)
        else:
            _redraw(canvas, node, weight)
    canvas.replace_nodes(graph)
    keep_used_values(graph)


def _wide_weight(node: onnx.NodeProto, values: Mapping[str, onnx.TensorProto]) -> Floats | None:
    """The kernel of a convolution that is to be drawn anew, else None."""
    if node.op_type != "Conv" or len(node.input) != 3 or node.input[1] not in values:
        return None
    found = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    found.pop("auto_pad", None)
    weight = numpy_helper.to_array(values[node.input[1]])
    same = _SAME | found == _SAME and weight.ndim == KERNEL
    return weight if same and min(weight.shape[:2]) >= WIDE else None


def _redraw(canvas: Canvas, node: onnx.NodeProto, weight: Floats) -> None:
    out, channels, kernel = weight.shape
    x = canvas.op("Transpose", canvas.reshape(node.input[0], [channels, -1]), perm=[1, 0])
    tiles = {(channels, kernel): SIZE}
    convolutions = Convolutions(canvas, tiles, zero_edges=True, packed_from=WIDE)
    y = convolutions.draw(node.name, x, canvas.rows(x), weight, dilation=1)
    columns = canvas.op("Transpose", canvas.op("Add", y, node.input[2]), perm=[1, 0])
    shape = canvas.integers([1, out, -1])
    canvas.op("Reshape", columns, shape, outputs=[node.output[0]])
