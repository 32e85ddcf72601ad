"""The vocoder (iSTFTNet) over a window, with its norms replaced by a given scale and shift.

The package's own forward normalises over whatever it is given, which a window must not; the order
of operations is the package's, its convolutions run as they are. The affine's channels come in the
order of `kokoro_model`. Does NOT know the harmonic source, statistics, or how windows are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.nn.functional import leaky_relu

LEAK = 0.1
LAYERS = 3  # a block has this many pairs of convolutions
BLOCKS_PER_STAGE = 3


class _Half(NamedTuple):
    """norm → snake (x + sin²(a·x)/a) → convolution; `first:last` are its channels of the affine."""

    convolution: Any
    alpha: Any
    inverse_alpha: Any
    first: int
    last: int


class _Stage(NamedTuple):
    upsample: Any
    source: Any
    source_block: list[_Half]
    blocks: list[list[_Half]]


class WindowedGenerator:
    """Wraps `decoder.generator` of a net; the net keeps its parameters and its device."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self._norms: list[Any] = []
        self._channels = 0
        self._stages = [self._stage(number) for number in range(generator.num_upsamples)]

    @property
    def norms(self) -> list[Any]:
        """The AdaIN modules that the affine stands in for, in its order."""
        return self._norms

    def __call__(self, x: Any, har: Any, affine: Any) -> Any:
        """x [1, 512, W], har [1, 22, 60W+1], affine [2, 9216] → [1, 22, 60W+1]."""
        scale, shift = affine[0].view(1, -1, 1), affine[1].view(1, -1, 1)
        for number, stage in enumerate(self._stages):
            source = _run(stage.source_block, stage.source(har), scale, shift)
            x = stage.upsample(leaky_relu(x, LEAK))
            if number == len(self._stages) - 1:
                x = self._generator.reflection_pad(x)
            x = x + source
            total = _run(stage.blocks[0], x, scale, shift)
            for block in stage.blocks[1:]:
                total = total + _run(block, x, scale, shift)
            x = total / len(stage.blocks)
        return self._generator.conv_post(leaky_relu(x))

    def _stage(self, number: int) -> _Stage:
        generator = self._generator
        source_block = self._halves(generator.noise_res[number])
        first = number * BLOCKS_PER_STAGE
        blocks = [
            self._halves(generator.resblocks[index])
            for index in range(first, first + BLOCKS_PER_STAGE)
        ]
        return _Stage(generator.ups[number], generator.noise_convs[number], source_block, blocks)

    def _halves(self, block: Any) -> list[_Half]:
        return list(self._walk(block))

    def _walk(self, block: Any) -> Iterator[_Half]:
        for layer in range(LAYERS):
            for convs, norms, alphas in (
                (block.convs1, block.adain1, block.alpha1),
                (block.convs2, block.adain2, block.alpha2),
            ):
                first = self._channels
                self._channels += norms[layer].norm.num_features
                self._norms.append(norms[layer])
                alpha = alphas[layer]
                yield _Half(convs[layer], alpha, 1 / alpha, first, self._channels)


def _run(block: list[_Half], x: Any, scale: Any, shift: Any) -> Any:
    for first_half, second_half in zip(block[::2], block[1::2], strict=True):
        x = x + _half(second_half, _half(first_half, x, scale, shift), scale, shift)
    return x


def _half(half: _Half, x: Any, scale: Any, shift: Any) -> Any:
    channels = slice(half.first, half.last)
    normed = torch.addcmul(shift[:, channels], x, scale[:, channels])
    wave = (normed * half.alpha).sin_().square_()
    return half.convolution(torch.addcmul(normed, wave, half.inverse_alpha))
