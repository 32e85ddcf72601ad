"""Convolutions of rows with fewer multiplications than taps: by short Fourier transforms.

A tile of `size` samples gives `size - kernel + 1` outputs. Transformed along time, a convolution is
one product of channels per frequency; a complex product costs three real ones (Gauss), and all of
it is three matrix products: into the tile's spectrum, times the weights' spectra, back. For eleven
taps and tiles of 32 that is 2.1 products per output and channel pair instead of 11. The error is
float32's own (relative 4e-7). Edges: what a tap would read outside of the rows is the nearest row,
so the first and last outputs are only good for throwing away. Does NOT know the generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .kokoro_canvas import Canvas, Floats

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class TileTransform:
    """outputs = back @ ((weights @ taps) * (into @ tile)), `*` per product."""

    into: Doubles  # [products, size]
    weights: Doubles  # [products, kernel]
    back: Doubles  # [outputs, products]


def tile_transform(size: int, kernel: int) -> TileTransform:
    """Correlation of a tile of `size` samples with `kernel` taps, by a real Fourier transform."""
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
    """Draws convolutions whose output has the rows of their input. `tiles`: size by (channels,
    kernel); a kernel without one is computed directly."""

    def __init__(self, canvas: Canvas, tiles: dict[tuple[int, int], int]) -> None:
        self._canvas = canvas
        self._tiles = tiles
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
        products = len(transform.into)
        gather, scatter = self._tile_indices(rows, kernel, dilation, size)
        tile = canvas.reshape(canvas.op("Gather", x, gather, axis=0), [size, -1])
        into = canvas.floats(f"into.{size}.{kernel}", transform.into)
        spectrum = canvas.reshape(canvas.op("MatMul", into, tile), [products, -1, channels])
        product = canvas.op("MatMul", spectrum, self._spectra(name, weight, transform))
        flat = canvas.reshape(product, [products, -1])
        back = canvas.floats(f"back.{size}.{kernel}", transform.back)
        outputs = canvas.reshape(canvas.op("MatMul", back, flat), [-1, out])
        return canvas.op("Gather", outputs, scatter, axis=0)

    def _spectra(self, name: str, weight: Floats, transform: TileTransform) -> str:
        """The weights' spectra [products, in, out], computed once, when the graph is loaded: they
        are several times as large as the weights."""
        canvas = self._canvas
        out, channels, kernel = weight.shape
        taps = canvas.floats(f"{name}.taps", weight.transpose(2, 1, 0).reshape(kernel, -1))
        matrix = canvas.floats(f"weights.{len(transform.into)}.{kernel}", transform.weights)
        spectra = canvas.op("MatMul", matrix, taps)
        return canvas.reshape(spectra, [len(transform.into), channels, out])

    def _direct(self, name: str, x: str, rows: str, weight: Floats, dilation: int) -> str:
        canvas = self._canvas
        out, channels, kernel = weight.shape
        taps = canvas.op("Gather", x, self._tap_indices(rows, kernel, dilation), axis=0)
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
