"""Kokoro's generator (iSTFTNet up to its last convolution) built anew around the model's weights.

Built rather than cut, because the export normalises over whatever it is given: here each AdaIN norm
is one scale and one shift per channel that come in from outside, so that a window of frames equals
the same frames of the whole utterance. The first and last CONTEXT frames are only looked at, and
each stage computes no more of them than it needs. The harmonic source and the inverse STFT are
outside. Architecture: `kokoro` 0.9.4, istftnet.py. Does NOT know statistics or sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from plait.models.kokoro.canvas import Canvas, Shape
from plait.models.kokoro.convolution import Convolutions
from plait.models.kokoro.generator_weights import (
    BLOCKS,
    DILATIONS,
    Block,
    Floats,
    FoldedBlock,
    GeneratorWeights,
    fold_block,
)

CONTEXT = 8  # frames on each side that a window's spectra depend on (80 dB; 12 would be all)
# Of these, rows of the first stage that the second one does not look at.
CROP = 60

Shaped = tuple[str, tuple[int, int, int]]  # a module and the shape of its kernel
UPS_0: Shaped = ("ups.0", (512, 256, 20))
UPS_1: Shaped = ("ups.1", (256, 128, 12))
SOURCE_0: Shaped = ("noise_convs.0", (256, 22, 12))
SOURCE_1: Shaped = ("noise_convs.1", (128, 22, 1))
LAST: Shaped = ("conv_post", (22, 128, 7))

# Which convolutions pay for a transform, and its size: measured on a CPU with AVX2. The wider ones
# have few tiles in a window and are bound by reading their weights, so theirs are small.
TILES = {(256, 7): 16, (256, 11): 20, (128, 7): 24, (128, 11): 32}


def build_generator(weights: GeneratorWeights) -> onnx.ModelProto:
    """x [1, 512, W], har [1, 22, 60 W + 1], affine [1, 2, 9216] -> spectra [1, 22, S].

    S = 60 (W - 16) + 5: those of the frames between the contexts, and two more on each side, which
    reach into these frames. The first one is the one at har's place 60 * 8 - 2.
    """
    canvas = Canvas()
    first = _fold_stage(weights, UPS_0, SOURCE_0, BLOCKS[:4])
    second = _fold_stage(weights, UPS_1, SOURCE_1, BLOCKS[4:])
    drawing = _Drawing(weights, canvas, [*first, *second])
    x = canvas.op("Transpose", canvas.reshape("x", [512, -1]), perm=[1, 0])
    har = canvas.op("Transpose", canvas.reshape("har", [22, -1]), perm=[1, 0])
    # Rows of the first stage: ten per frame, from the fifth of the window to the fifth-last.
    x = drawing.upsampled(UPS_0, canvas.op("LeakyRelu", x, alpha=0.1), 1.0)
    source = drawing.strided(SOURCE_0, canvas.slice_rows(har, 27, -28))
    x = drawing.stage(x, source, first)
    # Rows of the second stage are spectra; the first one is har's `begin`th.
    begin = 6 * CROP + 34
    margin = 60 * CONTEXT - 5 - begin
    x = canvas.op("LeakyRelu", canvas.slice_rows(x, CROP, -CROP), alpha=0.1)
    x = drawing.upsampled(UPS_1, x, 1 / 3)
    source = drawing.pointwise(SOURCE_1, canvas.slice_rows(har, begin, 1 - begin))
    x = drawing.stage(x, source, second)
    x = canvas.op("LeakyRelu", canvas.slice_rows(x, margin, -1 - margin), alpha=0.01)
    drawing.last(LAST, x, 1 / 3, "spectra")
    ports: dict[str, Shape] = {"x": [1, 512, "W"], "har": [1, 22, "H"], "affine": [1, 2, 9216]}
    return canvas.model("generator", ports, {"spectra": [1, 22, "S"]})


def _fold_stage(
    weights: GeneratorWeights, upsampling: Shaped, source: Shaped, blocks: Sequence[Block]
) -> list[FoldedBlock]:
    """The noise block, whose output joins the upsampled signal, then the three that read both."""
    noise = fold_block(weights, blocks[0], weights.convolution(*source)[1].astype(np.float64))
    lacking = weights.convolution(*upsampling)[1] + noise.left
    return [noise, *(fold_block(weights, block, lacking) for block in blocks[1:])]


class _Drawing:
    """Draws modules onto a canvas; methods take and give names of tensors of rows."""

    def __init__(
        self, weights: GeneratorWeights, canvas: Canvas, blocks: Sequence[FoldedBlock]
    ) -> None:
        self._weights = weights
        self._canvas = canvas
        self._convolutions = Convolutions(canvas, TILES, packed_from=256)
        self._norms = self._fold_affine(blocks)

    def _fold_affine(self, blocks: Sequence[FoldedBlock]) -> Iterator[tuple[str, str]]:
        """affine -> scale and shift [C] of each norm, for what Snake's cosine is taken of: with the
        signal's missing offset and twice Snake's alpha in them."""
        canvas = self._canvas
        alphas = canvas.floats(
            "doubled_alphas", np.concatenate([a for b in blocks for a in b.doubled_alphas])
        )
        offsets = canvas.floats("offsets", np.concatenate([o for b in blocks for o in b.offsets]))
        both = canvas.op("Mul", canvas.reshape("affine", [2, -1]), alphas)
        scale = canvas.op("Gather", both, canvas.integers(0), axis=0)
        shift = canvas.op("Gather", both, canvas.integers(1), axis=0)
        shift = canvas.op("Add", shift, canvas.op("Mul", scale, offsets))
        sizes = canvas.integers([len(a) for b in blocks for a in b.doubled_alphas])
        names = [f"{b.block.name}.{i}" for b in blocks for i in range(len(b.kernels))]
        for tensor, kind in ((scale, "scale"), (shift, "shift")):
            canvas.op("Split", tensor, sizes, outputs=[f"{name}.{kind}" for name in names], axis=0)
        return iter([(f"{name}.scale", f"{name}.shift") for name in names])

    def stage(self, x: str, source: str, blocks: Sequence[FoldedBlock]) -> str:
        """x + noise block(source), then three times the mean of the three residual blocks."""
        canvas = self._canvas
        rows = canvas.rows(x)
        x = canvas.op("Add", x, self._block(source, rows, blocks[0]))
        total = ""
        for block in blocks[1:]:
            part = self._block(x, rows, block)
            total = canvas.op("Add", total, part) if total else part
        lacking = sum((block.left for block in blocks[1:]), np.zeros(1))
        return canvas.op("Add", total, canvas.floats(f"{blocks[0].block.name}.left", lacking))

    def _block(self, x: str, rows: str, folded: FoldedBlock) -> str:
        kernels = iter(folded.kernels)
        for index, dilation in enumerate(DILATIONS):
            y = x
            for which, step in ((1, dilation), (2, 1)):
                y = self._snake(y)
                name = f"{folded.block.name}.convs{which}.{index}"
                y = self._convolutions.draw(name, y, rows, next(kernels), step)
            x = self._canvas.op("Add", x, y)
        return x

    def _snake(self, x: str) -> str:
        """g - cos g, where g is the norm of x; the rest of Snake is folded into the kernels."""
        scale, shift = next(self._norms)
        g = self._canvas.op("Add", self._canvas.op("Mul", x, scale), shift)
        return self._canvas.op("Sub", g, self._canvas.op("Cos", g))

    def upsampled(self, module: Shaped, x: str, gain: float) -> str:
        """A transposed convolution whose kernel is two strides long: each row gives two strides of
        samples, and the second one is added to what the next row gives. One row is lost."""
        name, shape = module
        kernel, _ = self._weights.convolution(name, shape)
        channels, out, taps = shape
        matrix = kernel.transpose(0, 2, 1).reshape(channels, taps * out) * np.float32(gain)
        return self._summed(name, x, matrix, later=0, out=out)

    def strided(self, module: Shaped, x: str) -> str:
        """A convolution whose kernel is two strides long, over the rows of `x` in strides."""
        name, shape = module
        kernel, _ = self._weights.convolution(name, shape)
        out, channels, taps = shape
        stride = taps // 2
        halves = [kernel[:, :, :stride], kernel[:, :, stride:]]
        matrix = np.concatenate([h.transpose(2, 1, 0).reshape(-1, out) for h in halves], axis=1)
        rows = self._canvas.reshape(x, [-1, stride * channels])
        return self._summed(name, rows, matrix, later=1, out=out)

    def pointwise(self, module: Shaped, x: str) -> str:
        name, shape = module
        kernel, _ = self._weights.convolution(name, shape)
        return self._canvas.op(
            "MatMul", x, self._canvas.floats(f"{name}.matrix", kernel[:, :, 0].T)
        )

    def last(self, module: Shaped, x: str, gain: float, output: str) -> None:
        """Over rows of `x` with their neighbours only: [rows, in] -> [1, out, rows - taps + 1]."""
        name, shape = module
        kernel, bias = self._weights.convolution(name, shape)
        canvas = self._canvas
        columns = canvas.reshape(canvas.op("Transpose", x, perm=[1, 0]), [1, shape[1], -1])
        values = kernel * np.float32(gain), bias
        constants = [canvas.floats(f"{name}.{i}", value) for i, value in enumerate(values)]
        canvas.op("Conv", columns, *constants, outputs=[output], kernel_shape=[shape[2]])

    def _summed(self, name: str, x: str, matrix: Floats, later: int, out: int) -> str:
        """x @ matrix in two halves of columns; half `later` is taken one row later than the other
        one, and their sum is rows of `out`."""
        canvas = self._canvas
        halves = [f"{name}.first", f"{name}.second"]
        product = canvas.op("MatMul", x, canvas.floats(f"{name}.matrix", matrix))
        canvas.op("Split", product, outputs=halves, axis=1, num_outputs=2)
        ends = np.iinfo(np.int64).max
        shifted = canvas.slice_rows(halves[later], 1, ends)
        total = canvas.op("Add", shifted, canvas.slice_rows(halves[1 - later], 0, -1))
        return canvas.reshape(total, [-1, out])
