"""The generator's weights, read by module name, checked, and folded for the graph that is drawn.

Folding moves work from the signal into the weights. A Snake is y + sin(a y)^2 / a, which with
g = 2 a y is (g + 1 - cos g) / 2a: the division goes into the next kernel, the constant into its
bias. Biases of convolutions are not added to the signal either; they are carried along per channel
and end up in the shift of the next norm. So a convolution costs four passes over its input and none
over its output. Order of norm channels: see plait.engines.kokoro.model. Does NOT know onnx's nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from plait.models.kokoro.dequantize import damaged

_NODE = "/decoder/decoder/generator/"
_WEIGHT = "decoder.decoder.generator."
DILATIONS = (1, 3, 5)

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


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
    for index in range(len(DILATIONS))
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

    def alpha(self, name: str, channels: int) -> Doubles:
        return self.array(f"{_WEIGHT}{name}", (1, channels, 1)).ravel().astype(np.float64)

    def style(self, name: str, channels: int) -> tuple[Floats, Floats]:
        """Weight [128, 2, channels] and bias [2, channels]: gamma and beta from the style."""
        weight = self.array(f"{_WEIGHT}{name}.fc.weight_float", (128, 2 * channels))
        bias = self.array(f"{_WEIGHT}{name}.fc.bias", (2 * channels,))
        return weight.reshape(128, 2, channels), bias.reshape(2, channels)

    def array(self, name: str, shape: tuple[int, ...]) -> Floats:
        value = self._values.get(name)
        if value is None:
            raise damaged(f"{name} is missing")
        array: Floats = numpy_helper.to_array(value)
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


@dataclass(frozen=True)
class FoldedBlock:
    """A block's six convolutions in order, and what its signal lacks.

    `doubled_alphas` and `offsets` belong to the six norms; `left` is what the block's output lacks.
    """

    block: Block
    kernels: Sequence[Floats]
    doubled_alphas: Sequence[Doubles]
    offsets: Sequence[Doubles]
    left: Doubles


def fold_block(weights: GeneratorWeights, block: Block, lacking: Doubles) -> FoldedBlock:
    """`lacking` [channels]: what would have to be added to the block's input."""
    kernels, alphas, offsets = [], [], []
    for index in range(len(DILATIONS)):
        inner = lacking
        for which in (1, 2):
            alpha = 2.0 * weights.alpha(f"{block.name}.alpha{which}.{index}", block.channels)
            name = f"{block.name}.convs{which}.{index}"
            shape = (block.channels, block.channels, block.kernel)
            kernel, bias = weights.convolution(name, shape)
            scaled = kernel / alpha[None, :, None]
            kernels.append(scaled.astype(np.float32))
            alphas.append(alpha)
            offsets.append(inner)
            inner = bias + scaled.sum(axis=(1, 2))
        lacking = lacking + inner
    return FoldedBlock(block, kernels, alphas, offsets, lacking)
