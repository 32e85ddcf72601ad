"""Two of Kokoro's three parts, cut out of the joined graph: text and acoustic.

The cut follows the tensors between the parts, which keep their names across exports of this model.
Between text and acoustic the features are repeated by the rounded durations, which is left to the
caller; so the speed input is gone. Inputs and outputs get the names of `KokoroModel`, each with a
leading batch axis of 1. Does NOT change any weight.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import TensorProto, helper

from plait.models.kokoro.dequantize import damaged, keep_used_values, live_nodes

_D = "/encoder/predictor/text_encoder/Concat_4_output_0"
_T = "/encoder/text_encoder/Transpose_2_output_0"
_DURATIONS = "/encoder/predictor/ReduceSum_output_0"
_REPEATED_D = "/encoder/MatMul_output_0"
_REPEATED_T = "/encoder/MatMul_1_output_0"
_X = "/decoder/decoder/decode.3/Div_4_output_0"
_F0 = "/encoder/F0_proj/Conv_output_0"

Shape = list[int | str]
Ports = Mapping[str, tuple[str, int, Shape]]  # tensor in the joined graph -> name, type, shape


def cut_text(model: onnx.ModelProto) -> onnx.ModelProto:
    """tokens [1, N] int64, style [1, 256] -> durations [1, N], d [1, N, 640], t [1, 512, N]."""
    return _cut(
        model,
        "text",
        {
            "tokens": ("tokens", TensorProto.INT64, [1, "N"]),
            "style": ("style", TensorProto.FLOAT, [1, 256]),
        },
        {
            _DURATIONS: ("durations", TensorProto.FLOAT, [1, "N"]),
            _D: ("d", TensorProto.FLOAT, [1, "N", 640]),
            _T: ("t", TensorProto.FLOAT, [1, 512, "N"]),
        },
    )


def cut_acoustic(model: onnx.ModelProto) -> onnx.ModelProto:
    """d [1, 640, T], t [1, 512, T], style [1, 256] -> x [1, 512, 2T], f0 [1, 1, 2T]."""
    return _cut(
        model,
        "acoustic",
        {
            _REPEATED_D: ("d", TensorProto.FLOAT, [1, 640, "T"]),
            _REPEATED_T: ("t", TensorProto.FLOAT, [1, 512, "T"]),
            "style": ("style", TensorProto.FLOAT, [1, 256]),
        },
        {
            _X: ("x", TensorProto.FLOAT, [1, 512, "W"]),
            _F0: ("f0", TensorProto.FLOAT, [1, 1, "W"]),
        },
    )


def _cut(model: onnx.ModelProto, name: str, inputs: Ports, outputs: Ports) -> onnx.ModelProto:
    made = {tensor for node in model.graph.node for tensor in node.output}
    given = {tensor.name for tensor in model.graph.input}
    missing = (set(outputs) | set(inputs)) - made - given
    if missing:
        raise damaged(f"it has no tensor {min(missing)}")
    nodes = live_nodes(model.graph.node, set(outputs), frozenset(inputs))
    graph = helper.make_graph(
        [_renamed(node, {**inputs, **outputs}) for node in nodes],
        name,
        [helper.make_tensor_value_info(*port) for port in inputs.values()],
        [helper.make_tensor_value_info(*port) for port in outputs.values()],
        list(model.graph.initializer),
    )
    keep_used_values(graph)
    _check_closed(graph)
    opset = max(entry.version for entry in model.opset_import if not entry.domain)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=model.ir_version, producer_name="plait"
    )


def _renamed(node: onnx.NodeProto, ports: Ports) -> onnx.NodeProto:
    new = onnx.NodeProto()
    new.CopyFrom(node)
    for names in (new.input, new.output):
        for index, tensor in enumerate(names):
            if tensor in ports:
                names[index] = ports[tensor][0]
    return new


def _check_closed(graph: onnx.GraphProto) -> None:
    """Nothing may be read that is not made inside: else the cut leaks into another part."""
    known = {value.name for value in graph.initializer} | {port.name for port in graph.input}
    known |= {tensor for node in graph.node for tensor in node.output}
    leaks = {tensor for node in graph.node for tensor in node.input if tensor} - known
    if leaks:
        raise damaged(f"the part {graph.name} needs {min(leaks)} from outside")
