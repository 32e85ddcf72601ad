"""Kokoro's generator as it was trained: AdaIN norms take their statistics from what they are given.

The product's generators get scale and shift from outside. Here the plain one is rewritten so that
each norm measures mean and standard deviation over the whole utterance, normalises with them and
reports them. That is the truth which `plait.engines.kokoro.norms` predicts, and the reference
that windows are compared with. Does NOT know how the statistics are predicted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from plait.engines.kokoro.model import NORM_CHANNELS, Floats
from plait.engines.kokoro.norms import EPSILON
from plait.models.kokoro.generator_weights import NORMS
from plait.models.kokoro.plain_generator import load_plain_generator


class WholeUtterance:
    """The generator over whole utterances: with the statistics of its own input, or with given
    ones. Two onnxruntime sessions over a joined `model.onnx`."""

    def __init__(self, source: Path, threads: int = 1) -> None:
        """Raises ModelDamaged."""
        generator = load_plain_generator(source)
        self._given = _session(generator, threads)
        self._measuring = _session(build_statistics_graph(generator), threads)

    def measure(self, x: Floats, har: Floats, norm_style: Floats) -> tuple[Floats, Floats, Floats]:
        """x [512, T], har [22, 60T+1], norm_style [2, 9216] (gamma, beta) -> spectra [22, 60T+1],
        mean [9216], std [9216] (the root of variance + 1e-5, by which a norm divides)."""
        gains = norm_style + np.array([[1], [0]], np.float32)
        inputs = {"x": x[None], "har": har[None], "affine": gains[None]}
        spectra, mean, std = self._measuring.run(None, inputs)
        return spectra[0], mean.ravel(), std.ravel()

    def generate(self, x: Floats, har: Floats, affine: Floats) -> Floats:
        """x [512, T], har [22, 60T+1], affine [2, 9216] -> spectra [22, 60T+1]."""
        inputs = {"x": x[None], "har": har[None], "affine": affine[None]}
        spectra: Floats = self._given.run(None, inputs)[0][0]
        return spectra


def _session(graph: onnx.ModelProto, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=providers)


def build_statistics_graph(generator: onnx.ModelProto) -> onnx.ModelProto:
    """The plain generator, changed to norms that measure. Its input `affine` holds 1 + gamma and
    beta; outputs are spectra [1, 22, H], mean [1, 9216, 1] and std [1, 9216, 1]."""
    graph = generator.graph
    scales = {f"{name}.scale": name for name, _ in NORMS}
    nodes = []
    for node in graph.node:
        name = scales.pop(node.input[1], None) if node.op_type == "Mul" else None
        if name is not None:
            nodes.extend(_measured(name, node.input[0]))
            node.input[0] = f"{name}.normalised"
        nodes.append(node)
    assert not scales, f"{len(scales)} norms are scaled in another way"
    for kind in ("mean", "std"):
        parts = [f"{name}.{kind}" for name, _ in NORMS]
        nodes.append(helper.make_node("Concat", parts, [kind], axis=1))
        graph.output.append(
            helper.make_tensor_value_info(kind, TensorProto.FLOAT, [1, NORM_CHANNELS, 1])
        )
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "time"))
    graph.initializer.append(numpy_helper.from_array(np.array(EPSILON, np.float32), "epsilon"))
    onnx.checker.check_model(generator)
    return generator


def _measured(name: str, x: str) -> list[onnx.NodeProto]:
    """(x - mean) / sqrt(variance + epsilon), as `<name>.normalised`."""
    steps = (
        ("ReduceMean", [x, "time"], "mean"),
        ("Sub", [x, f"{name}.mean"], "centred"),
        ("Mul", [f"{name}.centred", f"{name}.centred"], "square"),
        ("ReduceMean", [f"{name}.square", "time"], "variance"),
        ("Add", [f"{name}.variance", "epsilon"], "safe"),
        ("Sqrt", [f"{name}.safe"], "std"),
        ("Div", [f"{name}.centred", f"{name}.std"], "normalised"),
    )
    return [helper.make_node(op, inputs, [f"{name}.{output}"]) for op, inputs, output in steps]
