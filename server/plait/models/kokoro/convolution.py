"""Convolutions of rows with fewer multiplications than taps: by transforms of short tiles.

A tile of `size` samples gives `size - kernel + 1` outputs. Transformed along time, a convolution is
one product of channels per frequency (or point), and all of it is three matrix products: into the
tile's spectrum, times the weights' spectra, back. By Fourier, where a complex product costs three
real ones (Gauss): for eleven taps and tiles of 32 that is 2.1 products per output and channel pair
instead of 11. For three taps by Winograd: 1.5. The error is float32's own (relative 4e-7; 2e-6).
Does NOT know the models.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.models.kokoro.canvas import Canvas, Floats

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class TileTransform:
    """outputs = back @ ((weights @ taps) * (into @ tile)), `*` per product."""

    into: Doubles  # [products, size]
    weights: Doubles  # [products, kernel]
    back: Doubles  # [outputs, products]


# Winograd's F(4, 3), on the points 0, 1, -1, 2, -2 and infinity (Lavin and Gray, 2015).
WINOGRAD = TileTransform(
    np.array(
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        np.float64,
    ),
    np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24,
    np.array(
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
        np.float64,
    ),
)


def tile_transform(size: int, kernel: int) -> TileTransform:
    """Correlation of a tile of `size` samples with `kernel` taps."""
    if (size, kernel) == (6, 3):
        return WINOGRAD
    return _fourier(size, kernel)


def _fourier(size: int, kernel: int) -> TileTransform:
    """By a real Fourier transform."""
    places, taps = np.arange(size), np.arange(kernel)
    outputs = np.arange(size - kernel + 1)
    into, weights, back = [], [], []
    for frequency in range(size // 2 + 1):
        turn = 2 * np.pi * frequency / size
        real, imaginary = np.cos(turn * places), -np.sin(turn * places)
        weight_real, weight_imaginary = np.cos(turn * taps), np.sin(turn * taps)
        out_real, out_imaginary = np.cos(turn * outputs) / size, np.sin(turn * outputs) / size
        if frequency in (0, size / 2):
            into.append(real)
            weights.append(weight_real)
            back.append(out_real)
            continue
        into += [real + imaginary, real, imaginary]
        weights += [weight_real, weight_imaginary - weight_real, weight_real + weight_imaginary]
        back += [2 * (out_real - out_imaginary), -2 * out_imaginary, -2 * out_real]
    return TileTransform(np.array(into), np.array(weights), np.array(back).T)


class Convolutions:
    """Draws convolutions whose output has the rows of their input.

    `tiles`: size by (input channels, kernel); a kernel without one is computed directly. What a tap
    would read outside of the rows is the nearest row, so that the first and last outputs are only
    good for throwing away; with `zero_edges` it is zero. From `packed_from` input channels on,
    products are separate matrix products, whose weights onnxruntime lays out for its kernels when
    it loads them: worth it where tiles are few and weights are large.
    """

    def __init__(
        self,
        canvas: Canvas,
        tiles: dict[tuple[int, int], int],
        *,
        zero_edges: bool = False,
        packed_from: int = sys.maxsize,
    ) -> None:
        self._canvas = canvas
        self._tiles = tiles
        self._zero_edges = zero_edges
        self._packed_from = packed_from
        self._indices: dict[tuple[str, int, int, int], tuple[str, str]] = {}
        self._taps: dict[tuple[str, int, int], str] = {}

    def draw(self, name: str, x: str, rows: str, weight: Floats, dilation: int) -> str:
        """`weight` [out, in, taps] over `x` [rows, in] -> [rows, out]; no bias."""
        out, channels, kernel = weight.shape
        size = self._tiles.get((channels, kernel))
        if size is None:
            return self._direct(name, x, rows, weight, dilation)
        canvas = self._canvas
        transform = tile_transform(size, kernel)
        gather, scatter = self._tile_indices(rows, kernel, dilation, size)
        tile = canvas.reshape(self._gathered(x, channels, gather), [size, -1])
        into = canvas.floats(f"into.{size}.{kernel}", transform.into)
        spectrum = canvas.op("MatMul", into, tile)
        multiply = self._separate_products if channels >= self._packed_from else self._products
        flat = multiply(name, spectrum, weight, transform)
        back = canvas.floats(f"back.{size}.{kernel}", transform.back)
        outputs = canvas.reshape(canvas.op("MatMul", back, flat), [-1, out])
        return canvas.op("Gather", outputs, scatter, axis=0)

    def _gathered(self, x: str, channels: int, places: str) -> str:
        canvas = self._canvas
        if self._zero_edges:
            zero = canvas.floats(f"zero.{channels}", np.zeros((1, channels), np.float32))
            x = canvas.op("Concat", x, zero, axis=0)
        return canvas.op("Gather", x, places, axis=0)

    def _products(self, name: str, spectrum: str, weight: Floats, transform: TileTransform) -> str:
        """spectrum [products, tiles * in] times the weights' -> [products, tiles * out]."""
        canvas = self._canvas
        out, channels, _ = weight.shape
        products = len(transform.into)
        spectra = self._spectra(name, weight, transform.weights)
        weights = canvas.reshape(spectra, [products, channels, out])
        rows = canvas.reshape(spectrum, [products, -1, channels])
        return canvas.reshape(canvas.op("MatMul", rows, weights), [products, -1])

    def _separate_products(
        self, name: str, spectrum: str, weight: Floats, transform: TileTransform
    ) -> str:
        canvas = self._canvas
        out, channels, _ = weight.shape
        parts = [f"{name}.part{index}" for index in range(len(transform.into))]
        canvas.op("Split", spectrum, outputs=parts, axis=0, num_outputs=len(parts))
        products = []
        for part, points in zip(parts, transform.weights, strict=True):
            weights = canvas.reshape(self._spectra(name, weight, points[None]), [channels, out])
            product = canvas.op("MatMul", canvas.reshape(part, [-1, channels]), weights)
            products.append(canvas.reshape(product, [1, -1]))
        return canvas.op("Concat", *products, axis=0)

    def _spectra(self, name: str, weight: Floats, points: Doubles) -> str:
        """The weights' spectra [points, in * out], computed once, when the graph is loaded: they
        are several times as large as the weights."""
        canvas = self._canvas
        kernel = weight.shape[2]
        taps = canvas.floats(f"{name}.taps", weight.transpose(2, 1, 0).reshape(kernel, -1))
        return canvas.op("MatMul", canvas.floats(f"points.{points.tolist()}", points), taps)

    def _direct(self, name: str, x: str, rows: str, weight: Floats, dilation: int) -> str:
        canvas = self._canvas
        out, channels, kernel = weight.shape
        taps = self._gathered(x, channels, self._tap_indices(rows, kernel, dilation))
        flat = canvas.reshape(taps, [-1, kernel * channels])
        matrix = canvas.floats(f"{name}.taps", weight.transpose(2, 1, 0).reshape(-1, out))
        return canvas.op("MatMul", flat, matrix)

    def _tap_indices(self, rows: str, kernel: int, dilation: int) -> str:
        """Which rows the taps of each row read: [rows, kernel]."""
        key = rows, kernel, dilation
        if key not in self._taps:
            canvas = self._canvas
            row = canvas.op("Range", canvas.integers(0), rows, canvas.integers(1))
            reach = (np.arange(kernel) - (kernel - 1) // 2) * dilation
            places = canvas.op("Add", canvas.reshape(row, [-1, 1]), canvas.integers(reach))
            self._taps[key] = self._inside(places, rows)
        return self._taps[key]

    def _inside(self, places: str, rows: str) -> str:
        canvas = self._canvas
        last = canvas.op("Sub", rows, canvas.integers(1))
        if self._zero_edges:  # the row behind the last one is zero
            outside = canvas.op("Less", places, canvas.integers(0))
            outside = canvas.op("Or", outside, canvas.op("Greater", places, last))
            return canvas.op("Where", outside, rows, places)
        return canvas.op("Max", canvas.op("Min", places, last), canvas.integers(0))

    def _tile_indices(self, rows: str, kernel: int, dilation: int, size: int) -> tuple[str, str]:
        """Which row stands where in the tiles, and which output of the tiles is which row.

        Tile t of residue r holds the rows (t * outputs + n) * dilation + r - padding.
        -> gather [size, tiles * dilation], scatter [rows].
        """
        key = rows, kernel, dilation, size
        if key not in self._indices:
            self._indices[key] = self._draw_indices(*key)
        return self._indices[key]

    def _draw_indices(self, rows: str, kernel: int, dilation: int, size: int) -> tuple[str, str]:
        canvas = self._canvas
        outputs = size - kernel + 1
        step = outputs * dilation
        padding = (kernel - 1) * dilation // 2
        one, zero, width = canvas.integers(1), canvas.integers(0), canvas.integers(step)
        full = canvas.op("Div", canvas.op("Sub", rows, one), width)
        tiles = canvas.op("Add", full, one)
        starts = canvas.op("Mul", canvas.op("Range", zero, tiles, one), width)
        offsets = (
            np.arange(size)[:, None, None] * dilation + np.arange(dilation)[None, None, :] - padding
        )
        places = canvas.op(
            "Add",
            canvas.reshape(starts, [1, -1, 1]),
            canvas.integers(offsets, f"offsets.{size}.{kernel}.{dilation}"),
        )
        gather = canvas.reshape(self._inside(places, rows), [size, -1])
        return gather, self._draw_scatter(rows, tiles, dilation, step)

    def _draw_scatter(self, rows: str, tiles: str, dilation: int, step: int) -> str:
        """Row s is output (s % step) // dilation of tile s // step, residue s % dilation; outputs
        lie as [output, tile, residue]."""
        canvas = self._canvas
        row = canvas.op("Range", canvas.integers(0), rows, canvas.integers(1))
        width, gap = canvas.integers(step), canvas.integers(dilation)
        tile = canvas.op("Div", row, width)
        inside = canvas.op("Sub", row, canvas.op("Mul", tile, width))
        output = canvas.op("Div", inside, gap)
        residue = canvas.op("Sub", inside, canvas.op("Mul", output, gap))
        line = canvas.op("Add", canvas.op("Mul", output, tiles), tile)
        return canvas.op("Add", canvas.op("Mul", line, gap), residue)
