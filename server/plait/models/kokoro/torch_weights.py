"""The joined int8 ONNX of Kokoro-82M → the state of the `kokoro` package's model, in safetensors.

Weights are dequantized (float32), LSTM gates put back from ONNX's order (i o f c) into PyTorch's
(i f c o), convolutions split into the two halves of weight norm. The account is strict: every
tensor of `torch_state` is found once and in its shape, and every weight that was found is
one of them; else the file is damaged. What no file can give is named there: identity norms and an
unused head. Imports neither torch nor kokoro. Does NOT know: where models are kept, symbols.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from plait.models.kokoro.dequantize import damaged, dequantize
from plait.models.kokoro.torch_state import (
    CONFIG,
    CONFIG_NAME,
    WEIGHTS_NAME,
    Shapes,
    is_identity_norm,
    is_unused,
    state_shapes,
)

Array = NDArray[np.float32]
Weights = dict[str, Callable[[], Array]]
"""Names → how to get the values: they are 327 MB and wanted one by one."""

_INVERSE_STFT = re.compile(r"istft")  # a constant of the arithmetic, not a weight


def convert(source_onnx: Path, out_dir: Path, progress: Callable[[float], None]) -> None:
    """Write model.safetensors (327 MB) and config.json into `out_dir`; `progress` gets percent.

    Raises ModelDamaged for a file that is no ONNX, breaks off, or holds other tensors than Kokoro.
    """
    progress(0.0)
    try:
        model = onnx.load(source_onnx)
        progress(20.0)
        dequantize(model)
        progress(50.0)
        _write(model.graph, out_dir / WEIGHTS_NAME, progress)
    except (DecodeError, ValueError, IndexError) as error:
        raise damaged("it breaks off or is no ONNX file") from error
    (out_dir / CONFIG_NAME).write_text(json.dumps(CONFIG, indent=1), encoding="utf-8")
    progress(100.0)


def _write(graph: onnx.GraphProto, path: Path, progress: Callable[[float], None]) -> None:
    shapes = state_shapes()
    state = complete(_Graph(graph).weights(), shapes)
    with path.open("wb") as file:
        file.write(_header(shapes))
        for number, (name, shape) in enumerate(shapes.items()):
            array = state[name]()
            if array.size != math.prod(shape):
                raise damaged(f"{name} has the shape {array.shape} instead of {shape}")
            file.write(array.astype("<f4").tobytes())
            progress(50 + 50 * number / len(shapes))


def _header(shapes: Shapes) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape in shapes.items():
        end = offset + 4 * math.prod(shape)
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)  # the data starts aligned
    return struct.pack("<Q", len(text)) + text


def complete(found: Weights, shapes: Shapes) -> Weights:
    """Every name of `shapes` → how to get it; `found` has plain weights, without weight norm.

    Raises ModelDamaged when a tensor is missing, or one was found that no name stands for.
    """
    state: Weights = {}
    used: set[str] = set()
    for name, shape in shapes.items():
        plain, _, half = name.rpartition("_")
        if name in found:
            state[name] = found[name]
            used.add(name)
        elif half in ("g", "v") and plain in found:
            state[name] = _half_of(found[plain], half)
            used.add(plain)
        elif is_identity_norm(name) or is_unused(name):
            state[name] = _filled(shape, 1 if name.endswith("norm.weight") else 0)
    missing, unknown = sorted(shapes.keys() - state.keys()), sorted(found.keys() - used)
    for what, names in (("lacks", missing), ("has in addition", unknown)):
        if names:
            raise damaged(f"it {what} {len(names)} tensors, the first is {names[0]}")
    return state


def _half_of(weight: Callable[[], Array], half: str) -> Callable[[], Array]:
    """Weight norm: weight = g · v / |v| over all axes but the first, v being the weight itself.

    A channel that was quantized to zeros would be 0/0: there g = 0 and v = 1.
    """

    def split() -> Array:
        array = weight()
        norm = np.sqrt((array.astype(np.float64) ** 2).sum(axis=(1, 2), keepdims=True))
        values = norm if half == "g" else np.where(norm == 0, 1, array)
        return values.astype(np.float32)

    return split


def _filled(shape: tuple[int, ...], value: int) -> Callable[[], Array]:
    return lambda: np.full(shape, value, np.float32)


class _Graph:
    """The weights of a float graph by the names of the modules it was traced from."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._nodes = graph.node
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._found: Weights = {}
        self._sources: dict[str, str] = {}

    def weights(self) -> Weights:
        """Raises ModelDamaged for two tensors of one name."""
        for node in self._nodes:
            match node.op_type:
                case "Conv" | "ConvTranspose":
                    self._add(_module(node.name) + ".weight", node.input[1])
                case "MatMul":
                    self._add(_module(node.name) + ".weight", node.input[1], np.transpose)
                case "Gather":
                    self._add(_module(node.name) + ".weight", node.input[0])
                case "LSTM":
                    self._add_lstm(_module(node.name), *node.input[1:4])
                case _:
                    pass
        for name in self._tensors:  # what the export left under the names of its modules
            if name.startswith(("encoder.", "decoder.")) and not name.endswith("_float"):
                self._add(name.split(".", 1)[1], name)
        return self._found

    def _add_lstm(self, module: str, inputs: str, hidden: str, biases: str) -> None:
        for direction, suffix in enumerate(("", "_reverse")):
            for part, source, rows in (
                ("weight_ih_l0", inputs, slice(None)),
                ("weight_hh_l0", hidden, slice(None)),
                ("bias_ih_l0", biases, slice(0, 1024)),
                ("bias_hh_l0", biases, slice(1024, 2048)),
            ):
                turn = _gates_of(direction, rows)
                self._add(f"{module}.{part}{suffix}", source, turn)

    def _add(
        self, name: str, source: str, turn: Callable[[Array], Array] = lambda array: array
    ) -> None:
        """A layer that runs several times was traced several times, over one tensor.

        Floats only: what the graph computes, and integers, are no weights.
        """
        tensor = self._tensors.get(source)
        if tensor is None or tensor.data_type != onnx.TensorProto.FLOAT:
            return
        if _INVERSE_STFT.search(name):
            return
        if self._sources.setdefault(name, source) != source:
            raise damaged(f"{name} is there twice")
        self._found[name] = lambda: turn(onnx.numpy_helper.to_array(tensor))


def _gates_of(direction: int, rows: slice) -> Callable[[Array], Array]:
    """One direction's rows, gates in ONNX's order i o f c → PyTorch's i f c o."""

    def reorder(both: Array) -> Array:
        i, o, f, c = np.split(both[direction][rows], 4, axis=0)
        return np.concatenate([i, f, c, o], axis=0)

    return reorder


def _module(node_name: str) -> str:
    """`/encoder/text_encoder/cnn.0/cnn.0.0/Conv` → `text_encoder.cnn.0.0`.

    A container's name is repeated in its child's; a repeated run has a number after `_`; the pitch
    and energy predictors were traced without the name of the module they belong to.
    """
    parts: list[str] = []
    for part in node_name.strip("/").split("/")[1:-1]:
        part = re.sub(r"_\d+$", "", part)
        if parts and part.startswith(parts[-1] + "."):
            parts[-1] = part
        else:
            parts.append(part)
    name = ".".join(parts)
    belongs = re.match(r"(F0|N)\.\d|(F0|N)_proj$|shared$", name)
    return f"predictor.{name}" if belongs else name
