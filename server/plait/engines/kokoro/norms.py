"""The statistics of Kokoro's generator norms for a whole utterance, before the generator has run.

Means follow from the model's own weights. What leaves a norm has a known mean and deviation, beta
and 1 + gamma, whatever went in; taken as normally distributed, its mean behind the activation has a
closed form, and behind the convolution it is one matrix times that. What this leaves over (some 4 %
of a deviation), and the logarithm of the deviations, comes from kernel regression on features of
the utterance: voice style, moments of x, pitch. Matrices (8 bit), regression and the measured
utterances behind it are in norms.npz, made by `python -m plait.bench.kokoro_calibration`.
Pure numpy and deterministic. Does NOT know voices by name, text or windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from plait.engines.kokoro.model import NORM_CHANNELS, Floats
from plait.engines.kokoro.norm_features import features

DATA = "norms.npz"
EPSILON = 1e-5
"""Added to the variance in every norm of the model; the deviations here have it inside."""

BLOCKS, STEPS, HALVES = 4, 3, 2  # of a stage: noise block and three others; each six norms
WIDE, NARROW = 256, 128  # channels of the two stages
_SPLIT = BLOCKS * STEPS * HALVES * WIDE
UPSAMPLING = (10, 6)
SLOPE = 0.1

Arrays = Mapping[str, NDArray[Any]]


def affine(mean: Floats, std: Floats, norm_style: Floats) -> Floats:
    """mean, std [9216] of what enters the norms, norm_style [2, 9216] (gamma, beta) -> [2, 9216]:
    scale and shift that normalise and style at once."""
    scale = (1 + norm_style[0]) / std
    return np.stack([scale, norm_style[1] - mean * scale]).astype(np.float32)


class NormPredictor:
    """Made by `load`; may be shared by threads."""

    def __init__(self, arrays: Arrays) -> None:
        self._physics = Physics(arrays)
        self._features = FeatureSpace(arrays)
        self._mean = Regression(arrays, "mean")
        self._std = Regression(arrays, "std")
        self._typical_std: Floats = arrays["typical_std"]

    @classmethod
    def load(cls, file: IO[bytes] | None = None) -> NormPredictor:
        """From the package's data file, or another one of its kind."""
        if file is not None:
            with np.load(file) as arrays:
                return cls(dict(arrays))
        with (resources.files("plait.engines.kokoro") / DATA).open("rb") as own:
            return cls.load(own)

    def predict(
        self, x: Floats, f0: Floats, style: Floats, norm_style: Floats
    ) -> tuple[Floats, Floats]:
        """x [512, T], f0 [T] in Hz, style [256], norm_style [2, 9216] (gamma, beta) ->
        mean [9216], std [9216] of what enters each norm over the whole utterance; std is the root
        of variance + EPSILON, so always positive."""
        found = features(x, f0, style)
        place = self._features.place(found)
        mean = self._physics.means(norm_style, found["level"], found["pitch"])
        mean += self._mean(place) * self._typical_std
        std = self._typical_std * np.exp(self._std(place))
        return mean.astype(np.float32), std.astype(np.float32)


class Physics:
    """Means by closed form. `arrays`: alpha, bias [9216]; sums_wide int8 [24, 256, 256] and
    sums_narrow int8 [24, 128, 128] (kernels summed over time, [out, in]) with their scales;
    up_wide [256, 512], up_narrow [128, 256] with biases; pitch_means [384, P + 1]; middle_std
    [256]."""

    def __init__(self, arrays: Arrays) -> None:
        self._alpha: Floats = arrays["alpha"]
        self._bias: Floats = arrays["bias"]
        self._wide = dequantized(arrays, "sums_wide")
        self._narrow = dequantized(arrays, "sums_narrow")
        self._up_wide = arrays["up_wide"].astype(np.float32)
        self._up_narrow = arrays["up_narrow"].astype(np.float32)
        self._up_wide_bias: Floats = arrays["up_wide_bias"]
        self._up_narrow_bias: Floats = arrays["up_narrow_bias"]
        self._pitch: Floats = arrays["pitch_means"]
        self._middle_std: Floats = arrays["middle_std"]

    def means(self, norm_style: Floats, level: Floats, pitch: Floats) -> Floats:
        """norm_style [2, 9216], level [512] (mean of the activated x), pitch [P] -> [9216]."""
        activated = self._activated(1 + norm_style[0], norm_style[1])
        heard = self._pitch[:, :-1] @ pitch + self._pitch[:, -1]
        rises = self._rises(self._wide, activated[:_SPLIT], self._bias[:_SPLIT])
        wide, middle = _stage(rises, heard[:WIDE], self._up_wide @ level + self._up_wide_bias)
        middle = _leaky_mean(middle, self._middle_std)
        rises = self._rises(self._narrow, activated[_SPLIT:], self._bias[_SPLIT:])
        above = self._up_narrow @ middle + self._up_narrow_bias
        narrow, _ = _stage(rises, heard[WIDE:], above)
        return np.concatenate([wide.ravel(), narrow.ravel()])

    def _activated(self, gain: Floats, offset: Floats) -> Floats:
        """Mean of y + sin(alpha y)^2 / alpha for normal y of mean `offset`, deviation `gain`."""
        alpha = self._alpha
        ripple = np.cos(2 * alpha * offset) * np.exp(-2 * (alpha * gain) ** 2)
        result: Floats = offset + (1 - ripple) / (2 * alpha)
        return result

    @staticmethod
    def _rises(sums: Floats, activated: Floats, bias: Floats) -> Floats:
        """What each convolution gives on average: [4, 3, 2, C]."""
        width = sums.shape[-1]
        rises: Floats = (sums @ activated.reshape(-1, width, 1))[..., 0] + bias.reshape(-1, width)
        return rises.reshape(BLOCKS, STEPS, HALVES, width)


def _stage(rises: Floats, heard: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Average entries of a stage's norms [4, 3, 2, C], and of its result [C]. A block adds the
    second convolution of each step to what came in; the first one's result stays inside."""
    climbed = np.cumsum(rises[:, :, 1], axis=1)
    start = np.stack([heard, *[above + heard + climbed[0, -1]] * (BLOCKS - 1)])
    entries = np.empty_like(rises)
    entries[:, :, 1] = rises[:, :, 0]
    entries[:, 0, 0] = start
    entries[:, 1:, 0] = start[:, None] + climbed[:, :-1]
    return entries, (start + climbed[:, -1])[1:].mean(axis=0)


def _leaky_mean(mean: Floats, std: Floats) -> Floats:
    """Mean of a leaky rectifier behind a normal distribution (its integral by a tanh)."""
    z = mean / std
    below = 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    rectified = mean * below + std * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    result: Floats = SLOPE * mean + (1 - SLOPE) * rectified
    return result


class FeatureSpace:
    """Features in a few independent coordinates, kept inside the range that was measured.

    `arrays`: for each feature F center.F [n], spread.F [n], axes.F [n, d]; low, high [sum of d].
    """

    def __init__(self, arrays: Arrays) -> None:
        self._parts = {
            name.removeprefix("axes."): (
                arrays[name.replace("axes", "center")],
                (axes.astype(np.float32) / arrays[name.replace("axes", "spread")][:, None]),
            )
            for name, axes in arrays.items()
            if name.startswith("axes.")
        }
        self._low: Floats = arrays["low"]
        self._high: Floats = arrays["high"]

    def place(self, found: Mapping[str, Floats]) -> Floats:
        """Coordinates [D]."""
        parts = [(found[name] - center) @ axes for name, (center, axes) in self._parts.items()]
        result: Floats = np.clip(np.concatenate(parts), self._low, self._high)
        return result


class Regression:
    """Kernel regression: linear and Gaussian kernel over measured places.

    `arrays`: places [N, D]; K.linear, K.local [D] (weights of the coordinates), K.amplitude;
    K.coefficients [N, R]; K.basis int8 [R, 9216] with its scale; K.offset [9216].
    """

    def __init__(self, arrays: Arrays, kind: str) -> None:
        places = arrays["places"].astype(np.float32)
        linear, local = arrays[f"{kind}.linear"], np.sqrt(arrays[f"{kind}.local"])
        coefficients = arrays[f"{kind}.coefficients"].astype(np.float32)
        self._slope: Floats = linear[:, None] * (places.T @ coefficients)  # the linear kernel
        self._local: Floats = local
        self._places: Floats = places * local
        self._squares: Floats = (self._places**2).sum(axis=1)
        self._coefficients: Floats = coefficients * arrays[f"{kind}.amplitude"]
        self._basis = dequantized(arrays, f"{kind}.basis")
        self._offset: Floats = arrays[f"{kind}.offset"]

    def __call__(self, place: Floats) -> Floats:
        """place [D] -> [9216]."""
        scaled = place * self._local
        distance = self._squares - 2 * (self._places @ scaled) + scaled @ scaled
        near = np.exp(-np.maximum(distance, 0))
        weights = place @ self._slope + near @ self._coefficients
        result: Floats = weights @ self._basis + self._offset
        return result


def dequantized(arrays: Arrays, name: str) -> Floats:
    """int8 `name` [..., n] times its scale [...], one per row."""
    values: Floats = arrays[name].astype(np.float32) * arrays[f"{name}_scale"][..., None]
    return values


def quantized(values: Floats, levels: int = 127) -> tuple[NDArray[np.int8], Floats]:
    """The inverse: int8 [..., n] from -levels to levels, and scale [...]."""
    scale = np.maximum(np.abs(values).max(axis=-1), 1e-12) / levels
    return np.rint(values / scale[..., None]).astype(np.int8), scale.astype(np.float32)


assert BLOCKS * STEPS * HALVES * (WIDE + NARROW) == NORM_CHANNELS
