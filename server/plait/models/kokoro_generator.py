"""Kokoro's generator (iSTFTNet up to its last convolution) built anew around the model's weights.

Built rather than cut, because the export normalises over whatever it is given: here each AdaIN norm
is one scale and one shift per channel that come in from outside, so that a window of frames equals
the same frames of the whole utterance. The harmonic source and the iSTFT are outside as well.
Order of norm channels: see plait.engines.kokoro_model. Architecture: `kokoro` 0.9.4, istftnet.py.
Does NOT know statistics, windows or sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from .kokoro_dequantize import damaged

_NODE = "/decoder/decoder/generator/"
_WEIGHT = "decoder.decoder.generator."
_DILATIONS = (1, 3, 5)

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Block:
    """A residual block of six convolutions, as the architecture fixes it."""

    name: str
    channels: int
    kernel: int


BLOCKS = (
    Block("noise_res.0", 256, 7),
    Block("resblocks.0", 256, 3),
    Block("resblocks.1", 256, 7),
    Block("resblocks.2", 256, 11),
    Block("noise_res.1", 128, 11),
    Block("resblocks.3", 128, 3),
    Block("resblocks.4", 128, 7),
    Block("resblocks.5", 128, 11),
)
NORMS = tuple(
    (f"{block.name}.adain{which}.{index}", block.channels)
    for block in BLOCKS
    for index in range(3)
    for which in (1, 2)
)


class GeneratorWeights:
    """Reads the generator's weights out of the dequantized joined graph, by module name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._values = {value.name: value for value in model.graph.initializer}
        self._nodes = {node.name: node for node in model.graph.node}

    def convolution(self, name: str, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Kernel and bias of module `name`; the kernel must have `shape`."""
        transposed = name.startswith("ups.")
        path = name.replace(".convs", "/convs")  # "resblocks.0.convs1.2" is two modules deep
        node = self._nodes.get(f"{_NODE}{path}/{'ConvTranspose' if transposed else 'Conv'}")
        if node is None or len(node.input) != 3:
            raise damaged(f"the generator has no {name} with a bias")
        bias_size = shape[1] if transposed else shape[0]
        return self.array(node.input[1], shape), self.array(node.input[2], (bias_size,))

    def alpha(self, name: str, channels: int) -> Floats:
        return self.array(f"{_WEIGHT}{name}", (1, channels, 1)).reshape(channels, 1)

    def style(self, name: str, channels: int) -> tuple[Floats, Floats]:
        """Weight [128, 2, channels] and bias [2, channels]: gamma and beta from the style."""
        weight = self.array(f"{_WEIGHT}{name}.fc.weight_float", (128, 2 * channels))
        bias = self.array(f"{_WEIGHT}{name}.fc.bias", (2 * channels,))
        return weight.reshape(128, 2, channels), bias.reshape(2, channels)

    def array(self, name: str, shape: tuple[int, ...]) -> Floats:
        value = self._values.get(name)
        if value is None:
            raise damaged(f"{name} is missing")
        array = numpy_helper.to_array(value)
        if array.shape != shape or array.dtype != np.float32:
            raise damaged(f"{name} is {array.dtype} {array.shape}, not float32 {shape}")
        if not np.isfinite(array).all():
            raise damaged(f"{name} holds values that are not finite")
        return array


def norm_style(weights: GeneratorWeights) -> dict[str, Floats]:
    """weight [128, 2, 9216], bias [2, 9216]: style[:128] @ weight + bias = gamma, beta."""
    parts = [weights.style(name, channels) for name, channels in NORMS]
    return {
        "weight": np.concatenate([weight for weight, _ in parts], axis=2),
        "bias": np.concatenate([bias for _, bias in parts], axis=1),
    }


def build_generator(weights: GeneratorWeights) -> onnx.ModelProto:
    """x [1, 512, W], har [1, 22, H = 60 W + 1], affine [1, 2, 9216] -> spectra [1, 22, H]."""
    drawing = _Drawing(weights)
    drawing.split_affine()
    stage = drawing.activate("x", 0.1)
    stage = drawing.upsampled("ups.0", stage, (512, 256, 20), stride=10)
    source = drawing.convolved("noise_convs.0", "har", (256, 22, 12), stride=6, padding=3)
    stage = drawing.stage(stage, source, BLOCKS[:4])
    stage = drawing.activate(stage, 0.1)
    stage = drawing.upsampled("ups.1", stage, (256, 128, 12), stride=6)
    stage = drawing.reflected(stage)
    source = drawing.convolved("noise_convs.1", "har", (128, 22, 1))
    stage = drawing.stage(stage, source, BLOCKS[4:])
    stage = drawing.activate(stage, 0.01)
    drawing.convolved("conv_post", stage, (22, 128, 7), padding=3, output="spectra")
    return drawing.model()


class _Drawing:
    """A graph under construction; methods return the name of the tensor they made."""

    def __init__(self, weights: GeneratorWeights) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def split_affine(self) -> None:
        """affine [1, 2, 9216] -> a scale and a shift [1, C, 1] per norm."""
        scale, shift = "affine.scale", "affine.shift"
        self._op("Split", ["affine"], [scale, shift], axis=1, num_outputs=2)
        sizes = self._constant("norm_sizes", np.array([c for _, c in NORMS], np.int64))
        column = self._constant("column", np.array([1, -1, 1], np.int64))
        for tensor, kind in ((scale, "scale"), (shift, "shift")):
            flat = self._op("Reshape", [tensor, column], [f"{kind}s"])
            self._op("Split", [flat, sizes], [f"{name}.{kind}" for name, _ in NORMS], axis=1)

    def stage(self, x: str, source: str, blocks: Sequence[Block]) -> str:
        """x + noise block(source), then the mean of the three residual blocks."""
        x = self._op("Add", [x, self.block(source, blocks[0])])
        total = self.block(x, blocks[1])
        for block in blocks[2:]:
            total = self._op("Add", [total, self.block(x, block)])
        third = self._constant("third", np.float32(1 / 3))
        return self._op("Mul", [total, third])

    def block(self, x: str, block: Block) -> str:
        shape = (block.channels, block.channels, block.kernel)
        for index, dilation in enumerate(_DILATIONS):
            y = x
            for which, step in ((1, dilation), (2, 1)):
                alpha = self._weights.alpha(f"{block.name}.alpha{which}.{index}", block.channels)
                y = self.snake(y, f"{block.name}.adain{which}.{index}", alpha)
                y = self.convolved(
                    f"{block.name}.convs{which}.{index}",
                    y,
                    shape,
                    padding=(block.kernel - 1) * step // 2,
                    dilation=step,
                )
            x = self._op("Add", [y, x])
        return x

    def snake(self, x: str, norm: str, alpha: Floats) -> str:
        """y + sin(alpha y)^2 / alpha, where y = scale x + shift."""
        y = self._op("Add", [self._op("Mul", [x, f"{norm}.scale"]), f"{norm}.shift"])
        angle = self._op("Mul", [y, self._constant(f"{norm}.alpha", alpha)])
        sine = self._op("Sin", [angle])
        square = self._op("Mul", [sine, sine])
        part = self._op("Mul", [square, self._constant(f"{norm}.inverse", 1 / alpha)])
        return self._op("Add", [y, part])

    def convolved(
        self,
        name: str,
        x: str,
        shape: tuple[int, int, int],
        *,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        output: str | None = None,
    ) -> str:
        return self._op(
            "Conv",
            [x, *self._module(name, shape)],
            [output] if output else None,
            kernel_shape=[shape[2]],
            strides=[stride],
            pads=[padding, padding],
            dilations=[dilation],
        )

    def upsampled(self, name: str, x: str, shape: tuple[int, int, int], stride: int) -> str:
        padding = (shape[2] - stride) // 2
        return self._op(
            "ConvTranspose",
            [x, *self._module(name, shape)],
            kernel_shape=[shape[2]],
            strides=[stride],
            pads=[padding, padding],
        )

    def reflected(self, x: str) -> str:
        """One sample more in front, the mirror image: [x1, x0, x1, x2, ...]."""
        pads = self._constant("one_in_front", np.array([0, 0, 1, 0, 0, 0], np.int64))
        return self._op("Pad", [x, pads], mode="reflect")

    def activate(self, x: str, slope: float) -> str:
        return self._op("LeakyRelu", [x], alpha=slope)

    def model(self) -> onnx.ModelProto:
        """The finished graph, checked by onnx."""
        ports = {
            "x": [1, 512, "W"], "har": [1, 22, "H"], "affine": [1, 2, 9216],
            "spectra": [1, 22, "H"],
        }  # fmt: skip
        infos = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in ports.items()
        ]
        values = list(self._constants.values())
        graph = helper.make_graph(self._nodes, "generator", infos[:3], infos[3:], values)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 20)],
            ir_version=9,
            producer_name="plait",
        )
        onnx.checker.check_model(model)
        return model

    def _module(self, name: str, shape: tuple[int, int, int]) -> list[str]:
        kernel, bias = self._weights.convolution(name, shape)
        return [self._constant(f"{name}.weight", kernel), self._constant(f"{name}.bias", bias)]

    def _constant(self, name: str, value: NDArray[np.generic] | np.generic) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def _op(
        self,
        op: str,
        inputs: list[str],
        outputs: list[str] | None = None,
        **attributes: object,
    ) -> str:
        outputs = outputs or [f"{op}_{len(self._nodes)}"]
        self._nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs[0]
