"""Kokoro's generator operator by operator as it was published, but for its norms.

The reference that the fast graph (`generator`) is compared with, and the graph whose norms
can be made to measure (`plait.bench.kokoro_statistics`). Whole convolutions, [1, channels, samples]
tensors, no context: what a convolution reads beyond the edges is zero. Each AdaIN norm is a `Mul`
by `<norm>.scale` and an `Add` of `<norm>.shift`, taken from the input `affine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from plait.models.kokoro.canvas import Canvas, Shape
from plait.models.kokoro.dequantize import dequantize
from plait.models.kokoro.generator_weights import BLOCKS, DILATIONS, NORMS, Block, GeneratorWeights


def load_plain_generator(source_onnx: Path) -> onnx.ModelProto:
    """From the joined int8 file. Raises ModelDamaged."""
    model = onnx.load(source_onnx)
    dequantize(model)
    return build_plain_generator(GeneratorWeights(model))


def build_plain_generator(weights: GeneratorWeights) -> onnx.ModelProto:
    """x [1, 512, W], har [1, 22, H = 60 W + 1], affine [1, 2, 9216] -> spectra [1, 22, H]."""
    drawing = _Drawing(weights, Canvas())
    canvas = drawing.canvas
    stage = canvas.op("LeakyRelu", "x", alpha=0.1)
    stage = drawing.upsampled("ups.0", stage, (512, 256, 20), stride=10)
    source = drawing.convolved("noise_convs.0", "har", (256, 22, 12), stride=6, padding=3)
    stage = drawing.stage(stage, source, BLOCKS[:4])
    stage = canvas.op("LeakyRelu", stage, alpha=0.1)
    stage = drawing.upsampled("ups.1", stage, (256, 128, 12), stride=6)
    # One sample more in front, the mirror image: [x1, x0, x1, x2, ...].
    stage = canvas.op("Pad", stage, canvas.integers([0, 0, 1, 0, 0, 0]), mode="reflect")
    source = drawing.convolved("noise_convs.1", "har", (128, 22, 1))
    stage = drawing.stage(stage, source, BLOCKS[4:])
    stage = canvas.op("LeakyRelu", stage, alpha=0.01)
    drawing.convolved("conv_post", stage, (22, 128, 7), padding=3, outputs=["spectra"])
    ports: dict[str, Shape] = {"x": [1, 512, "W"], "har": [1, 22, "H"], "affine": [1, 2, 9216]}
    return canvas.model("generator", ports, {"spectra": [1, 22, "H"]})


class _Drawing:
    def __init__(self, weights: GeneratorWeights, canvas: Canvas) -> None:
        self.canvas = canvas
        self._weights = weights
        sizes = canvas.integers([channels for _, channels in NORMS])
        canvas.op("Split", "affine", outputs=["scale", "shift"], axis=1, num_outputs=2)
        for kind in ("scale", "shift"):
            flat = canvas.reshape(kind, [1, -1, 1])
            canvas.op("Split", flat, sizes, outputs=[f"{n}.{kind}" for n, _ in NORMS], axis=1)

    def stage(self, x: str, source: str, blocks: Sequence[Block]) -> str:
        """x + noise block(source), then the mean of the three residual blocks."""
        canvas = self.canvas
        x = canvas.op("Add", x, self._block(source, blocks[0]))
        total = self._block(x, blocks[1])
        for block in blocks[2:]:
            total = canvas.op("Add", total, self._block(x, block))
        return canvas.op("Mul", total, canvas.floats("third", 1 / 3))

    def _block(self, x: str, block: Block) -> str:
        shape = (block.channels, block.channels, block.kernel)
        for index, dilation in enumerate(DILATIONS):
            y = x
            for which, step in ((1, dilation), (2, 1)):
                alpha = f"{block.name}.alpha{which}.{index}"
                y = self._snake(y, f"{block.name}.adain{which}.{index}", alpha, block.channels)
                padding = (block.kernel - 1) * step // 2
                name = f"{block.name}.convs{which}.{index}"
                y = self.convolved(name, y, shape, padding=padding, dilation=step)
            x = self.canvas.op("Add", y, x)
        return x

    def _snake(self, x: str, norm: str, name: str, channels: int) -> str:
        """y + sin(alpha y)^2 / alpha, where y = scale x + shift."""
        canvas = self.canvas
        alpha = self._weights.alpha(name, channels).reshape(channels, 1)
        y = canvas.op("Add", canvas.op("Mul", x, f"{norm}.scale"), f"{norm}.shift")
        sine = canvas.op("Sin", canvas.op("Mul", y, canvas.floats(name, alpha)))
        square = canvas.op("Mul", sine, sine)
        return canvas.op("Add", y, canvas.op("Mul", square, canvas.floats(f"1/{name}", 1 / alpha)))

    def convolved(
        self,
        name: str,
        x: str,
        shape: tuple[int, int, int],
        *,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        outputs: Sequence[str] = (),
    ) -> str:
        return self.canvas.op(
            "Conv",
            x,
            *self._module(name, shape),
            outputs=outputs,
            kernel_shape=[shape[2]],
            strides=[stride],
            pads=[padding, padding],
            dilations=[dilation],
        )

    def upsampled(self, name: str, x: str, shape: tuple[int, int, int], stride: int) -> str:
        padding = (shape[2] - stride) // 2
        return self.canvas.op(
            "ConvTranspose",
            x,
            *self._module(name, shape),
            kernel_shape=[shape[2]],
            strides=[stride],
            pads=[padding, padding],
        )

    def _module(self, name: str, shape: tuple[int, int, int]) -> list[str]:
        kernel, bias = self._weights.convolution(name, shape)
        parts = {"weight": kernel, "bias": bias}
        return [self.canvas.floats(f"{name}.{kind}", part) for kind, part in parts.items()]
