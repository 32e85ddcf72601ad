"""The vocoder (iSTFTNet) over a window, with its norms replaced by a given scale and shift.

The package's own forward normalises over whatever it is given, which a window must not; order and
parameters are the package's. Its one-dimensional convolutions run as two-dimensional ones of height
1, because these can keep the channels of a sample together in memory: a sixth faster on a CPU.
There long ones are also cut into tiles, for free, so that a cancel need not wait for a whole one.
bfloat16 was tried and is 25 times slower on a CPU without instructions for it: all is float32. The
affine's channels come in the order of `model`. Does NOT know the harmonic source, how
statistics come about, or which windows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.nn.functional import conv2d, conv_transpose2d, leaky_relu, pad

from plait.engines.kokoro.model import SPECTRA_PER_FRAME
from plait.engines.kokoro.windows import CONTEXT

LEAK = 0.1
LAYERS = 3  # a block has this many pairs of convolutions
BLOCKS_PER_STAGE = 3
# Of the context the second stage needs two frames; the first one has done with the rest.
CROP_FRAMES = CONTEXT - 2
SILENT = -30.0  # log magnitude
CPU_TILE = 2048  # samples of a layer: about 12 ms of the largest convolution on one core

Check = Callable[[], None]


class _Convolution(NamedTuple):
    """Over [1, C, 1, L], with the weights of one over [1, C, L]."""

    weight: Any
    bias: Any
    padding: int
    dilation: int
    stride: int
    output_padding: int

    def __call__(self, x: Any) -> Any:
        return conv2d(
            x, self.weight, self.bias, (1, self.stride), (0, self.padding), (1, self.dilation)
        )

    def unpadded(self, x: Any) -> Any:
        return conv2d(x, self.weight, self.bias, dilation=(1, self.dilation))

    def transposed(self, x: Any) -> Any:
        stride, padding = (1, self.stride), (0, self.padding)
        return conv_transpose2d(
            x, self.weight, self.bias, stride, padding, (0, self.output_padding)
        )


class _Half(NamedTuple):
    """norm → snake (x + sin²(a·x)/a) → convolution; `first:last` are its channels of the affine."""

    convolution: _Convolution
    alpha: Any
    inverse_alpha: Any
    first: int
    last: int

    def activated(self, x: Any, affine: Any) -> Any:
        scale, shift = affine[:, :, self.first : self.last]
        normed = torch.addcmul(shift, x, scale)
        wave = (normed * self.alpha).sin_().square_()
        return torch.addcmul(normed, wave, self.inverse_alpha)


class _Stage(NamedTuple):
    upsample: _Convolution
    source: _Convolution
    source_block: list[_Half]
    blocks: list[list[_Half]]

    def upsampled(self, x: Any) -> Any:
        return self.upsample.transposed(leaky_relu(x, LEAK))


class WindowedGenerator:
    """Takes over the parameters of `decoder.generator`, which is not to be called any more.

    `check` runs before every convolution and may raise.
    """

    def __init__(self, generator: Any, check: Check) -> None:
        self._check = check
        self._norms: list[Any] = []
        self._channels = 0
        on_cpu = generator.conv_post.weight.device.type == "cpu"
        self._format = torch.channels_last if on_cpu else torch.contiguous_format
        self._tile = CPU_TILE if on_cpu else None
        self._stages = self._stage(generator, 0), self._stage(generator, 1)
        self._last = self._wide(generator.conv_post)

    @property
    def norms(self) -> list[Any]:
        """The AdaIN modules that the affine stands in for, in its order."""
        return self._norms

    def __call__(self, x: Any, har: Any, affine: Any) -> Any:
        """x [1, 512, W], har [1, 22, 60W+1], affine [2, 9216] → [1, 22, 60W+1].

        The first and last CONTEXT frames are only looked at: their spectra mean nothing.
        """
        affine = affine.view(2, 1, -1, 1, 1)
        first, second = self._stages
        crop = CROP_FRAMES * SPECTRA_PER_FRAME
        har = self._widened(har)
        rows = self._sum(first, first.upsampled(self._widened(x)), har, affine)
        rows = second.upsampled(_cropped(rows, crop // second.upsample.stride))
        rows = torch.cat([rows[..., 1:2], rows], dim=-1)  # the package's reflection pad
        rows = self._sum(second, rows, _cropped(har, crop), affine)
        spectra = self._last(leaky_relu(rows))
        return pad(spectra.squeeze(2), (crop, crop), value=SILENT)

    def _sum(self, stage: _Stage, x: Any, har: Any, affine: Any) -> Any:
        self._check()
        x = x + self._run(stage.source_block, stage.source(har), affine)
        total = self._run(stage.blocks[0], x, affine)
        for block in stage.blocks[1:]:
            total += self._run(block, x, affine)
        return total / len(stage.blocks)

    def _run(self, block: list[_Half], x: Any, affine: Any) -> Any:
        for first_half, second_half in zip(block[::2], block[1::2], strict=True):
            x = x + self._half(second_half, self._half(first_half, x, affine), affine)
        return x

    def _half(self, half: _Half, x: Any, affine: Any) -> Any:
        self._check()
        length = x.shape[-1]
        if self._tile is None or length <= self._tile:
            return half.convolution(half.activated(x, affine))
        result = torch.empty_like(x)
        reach = half.convolution.padding
        for start in range(0, length, self._tile):
            self._check()
            stop = min(length, start + self._tile)
            left, right = max(0, start - reach), min(length, stop + reach)
            tile = half.activated(x[..., left:right], affine)
            # Outside of the window the convolution reads zeros, as it would untiled.
            tile = pad(tile, (left - start + reach, stop + reach - right))
            result[..., start:stop] = half.convolution.unpadded(tile)
        return result

    def _widened(self, array: Any) -> Any:
        return array.unsqueeze(2).contiguous(memory_format=self._format)

    def _stage(self, generator: Any, number: int) -> _Stage:
        source_block = list(self._halves(generator.noise_res[number]))
        first = number * BLOCKS_PER_STAGE
        blocks = [
            list(self._halves(generator.resblocks[index]))
            for index in range(first, first + BLOCKS_PER_STAGE)
        ]
        upsample, source = generator.ups[number], generator.noise_convs[number]
        return _Stage(self._wide(upsample), self._wide(source), source_block, blocks)

    def _halves(self, block: Any) -> Iterator[_Half]:
        for layer in range(LAYERS):
            for convs, norms, alphas in (
                (block.convs1, block.adain1, block.alpha1),
                (block.convs2, block.adain2, block.alpha2),
            ):
                first = self._channels
                self._channels += norms[layer].norm.num_features
                self._norms.append(norms[layer])
                alpha = alphas[layer].unsqueeze(2)
                convolution = self._wide(convs[layer])
                yield _Half(convolution, alpha, 1 / alpha, first, self._channels)

    def _wide(self, narrow: Any) -> _Convolution:
        return _Convolution(
            self._widened(narrow.weight),
            narrow.bias,
            narrow.padding[0],
            narrow.dilation[0],
            narrow.stride[0],
            narrow.output_padding[0],
        )


def _cropped(x: Any, margin: int) -> Any:
    return x[..., margin:-margin]
