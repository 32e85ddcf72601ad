"""From measured utterances to the arrays of `plait.engines.kokoro.norms`.

The generator's convolutions are summed over time for the closed form of the means; what that leaves
over, and the log of the deviations, are fitted by kernel ridge regression in the few directions
that vary most. The kernels' weights are constants: found once by maximising the marginal
likelihood over 160 utterances, and flat around there. Deterministic. Does NOT know how utterances
are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.bench.kokoro_utterances import Measured
from plait.engines.kokoro.model import Floats
from plait.engines.kokoro.norm_features import features
from plait.engines.kokoro.norms import WIDE, FeatureSpace, Physics, quantized
from plait.models.kokoro.generator_weights import BLOCKS, DILATIONS, NORMS, Block

Arrays = dict[str, NDArray[Any]]

# How much of an error in a block's norms is heard, roughly: dB of log-spectral distance per unit.
AUDIBILITY = {
    "noise_res.0": 0.4, "resblocks.0": 0.7, "resblocks.1": 1.0, "resblocks.2": 0.8,
    "noise_res.1": 0.2, "resblocks.3": 0.5, "resblocks.4": 1.2, "resblocks.5": 0.75,
}  # fmt: skip
AXES = {"style": 40, "shape": 8, "pitch": 13, "level": 40, "loudness": 40}
BASIS_LEVELS = 31  # on each side of 0: a third of a percent of the variance, and packs well
PITCH_RIDGE = 1e-3
MIDDLE_STD = 1.3  # of the first stage's result, over what enters its last norms


class Weights(Protocol):
    """What is asked of plait.models.kokoro.generator_weights.GeneratorWeights."""

    def convolution(self, name: str, shape: tuple[int, ...]) -> tuple[Floats, Floats]: ...

    def alpha(self, name: str, channels: int) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class Kernel:
    """Per feature the weight in the linear and in the Gaussian kernel; noise is relative to the
    variance, once per utterance and once for an utterance of 100 frames."""

    linear: Mapping[str, float]
    local: Mapping[str, float]
    amplitude: float
    noise: float
    noise_100: float
    directions: int


KERNELS = {
    "mean": Kernel(
        {"style": 1.71, "shape": 0.015, "pitch": 0.031, "level": 1.3, "loudness": 0.47},
        {"style": 0.168, "shape": 0.011, "pitch": 0.017, "level": 0.025, "loudness": 0.044},
        1.77, 2.4e-4, 6e-4, 64,
    ),
    "std": Kernel(
        {"style": 1.31, "shape": 0.625, "pitch": 0.743, "level": 1.9, "loudness": 0.68},
        {"style": 0.229, "shape": 0.019, "pitch": 0.042, "level": 0.033, "loudness": 0.032},
        0.81, 2.6e-4, 7e-4, 64,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Known:
    """Utterances as matrices of N rows: `found` by feature, mean and std [N, 9216], norm_styles
    [N, 2, 9216]."""

    found: Mapping[str, Floats]
    frames: Floats
    mean: Floats
    std: Floats
    norm_styles: Floats

    @classmethod
    def of(cls, utterances: Sequence[Measured], norm_styles: Sequence[Floats]) -> Known:
        rows = [features(one.x, one.f0, one.style) for one in utterances]
        return cls(
            {name: np.stack([row[name] for row in rows]) for name in AXES},
            np.array([len(one.f0) for one in utterances], np.float32),
            np.stack([one.mean for one in utterances]),
            np.stack([one.std for one in utterances]),
            np.stack(norm_styles),
        )


def fit(known: Known, weights: Weights) -> Arrays:
    """The arrays of the predictor's data file."""
    typical = np.exp(np.log(known.std).mean(axis=0))
    arrays: Arrays = {"typical_std": typical, **_physics(known, weights, typical)}
    axes, places = _feature_axes(known)
    arrays |= axes
    arrays["places"] = places.astype(np.float16)
    physics = Physics(arrays)
    expected = np.stack([
        physics.means(norm_style, level, pitch)
        for norm_style, level, pitch in zip(
            known.norm_styles, known.found["level"], known.found["pitch"], strict=True
        )
    ])  # fmt: skip
    heard = np.concatenate([np.full(c, AUDIBILITY[n.split(".adain")[0]]) for n, c in NORMS])
    targets = {"mean": (known.mean - expected) / typical, "std": np.log(known.std / typical)}
    for kind, target in targets.items():
        arrays |= _regression(kind, target, heard, arrays, known.frames)
    return {name: _stored(array) for name, array in arrays.items()}


def _physics(known: Known, weights: Weights, typical: Floats) -> Arrays:
    kernels = {block.name: _kernels(weights, block) for block in BLOCKS}
    arrays: Arrays = {
        "alpha": np.concatenate([_alphas(weights, block) for block in BLOCKS]),
        "bias": np.concatenate([bias for block in BLOCKS for _, bias in kernels[block.name]]),
        "middle_std": MIDDLE_STD * _last_entries(typical),
        "pitch_means": _pitch_means(known),
    }
    for kind, stage in (("wide", BLOCKS[:4]), ("narrow", BLOCKS[4:])):
        sums = [kernel.sum(axis=2) for block in stage for kernel, _ in kernels[block.name]]
        arrays[f"sums_{kind}"], arrays[f"sums_{kind}_scale"] = quantized(np.stack(sums))
    for kind, name, shape in (
        ("wide", "ups.0", (512, 256, 20)),
        ("narrow", "ups.1", (256, 128, 12)),
    ):
        kernel, arrays[f"up_{kind}_bias"] = weights.convolution(name, shape)
        stride = shape[2] // 2  # each sample is heard by as many outputs
        arrays[f"up_{kind}"] = (kernel.sum(axis=2).T / stride).astype(np.float16)
    return arrays


def _kernels(weights: Weights, block: Block) -> list[tuple[Floats, Floats]]:
    """A block's six convolutions in the order of the norms before them."""
    shape = (block.channels, block.channels, block.kernel)
    return [
        weights.convolution(f"{block.name}.convs{which}.{index}", shape)
        for index in range(len(DILATIONS))
        for which in (1, 2)
    ]


def _alphas(weights: Weights, block: Block) -> Floats:
    parts = [
        weights.alpha(f"{block.name}.alpha{which}.{index}", block.channels)
        for index in range(len(DILATIONS))
        for which in (1, 2)
    ]
    return np.concatenate(parts).astype(np.float32)


def _last_entries(typical: Floats) -> Floats:
    """Mean deviation of what enters the last step of the first stage's three blocks [256]."""
    ends = np.cumsum([channels for _, channels in NORMS])
    wanted = {f"{block.name}.adain1.2" for block in BLOCKS[1:4]}
    parts = [
        typical[end - c : end] for (name, c), end in zip(NORMS, ends, strict=True) if name in wanted
    ]
    mean: Floats = np.mean(parts, axis=0)
    return mean


def _pitch_means(known: Known) -> Floats:
    """Means behind the two convolutions of the source, linear in the pitch histogram [384, 14]."""
    first_narrow = sum(channels for _, channels in NORMS if channels == WIDE)
    targets = [known.mean[:, :WIDE], known.mean[:, first_narrow : first_narrow + WIDE // 2]]
    pitch = known.found["pitch"].astype(np.float64)
    design = np.concatenate([pitch, np.ones((len(pitch), 1))], axis=1)
    weighted = design * known.frames[:, None]
    ridge = PITCH_RIDGE * known.frames.sum() * np.eye(design.shape[1])
    ridge[-1, -1] = 1e-6
    solved = np.linalg.solve(weighted.T @ design + ridge, weighted.T @ np.concatenate(targets, 1))
    return solved.T.astype(np.float32)


def _feature_axes(known: Known) -> tuple[Arrays, Floats]:
    """Principal axes of every feature, the first with variance 1; and all utterances' places."""
    arrays: Arrays = {"low": np.array([-np.inf]), "high": np.array([np.inf])}
    for name, count in AXES.items():
        values = known.found[name].astype(np.float64)
        center, spread = values.mean(axis=0), values.std(axis=0) + 1e-6
        if name == "style":
            spread = np.full_like(spread, spread.mean())
        _, sizes, axes = np.linalg.svd((values - center) / spread, full_matrices=False)
        scale = sizes[0] / np.sqrt(len(values))
        arrays[f"center.{name}"], arrays[f"spread.{name}"] = center, spread
        arrays[f"axes.{name}"] = (axes[:count].T / scale).astype(np.float16)
    space = FeatureSpace(arrays)
    rows = range(len(known.frames))
    places = np.stack([
        space.place({name: values[row] for name, values in known.found.items()}) for row in rows
    ])  # fmt: skip
    margin = 0.1 * places.std(axis=0)
    arrays["low"], arrays["high"] = places.min(axis=0) - margin, places.max(axis=0) + margin
    return arrays, places


def _regression(kind: str, target: Floats, heard: Floats, arrays: Arrays, frames: Floats) -> Arrays:
    kernel = KERNELS[kind]
    sizes = [arrays[f"axes.{name}"].shape[1] for name in AXES]
    linear, local = (
        np.repeat([weights[name] for name in AXES], sizes)
        for weights in (kernel.linear, kernel.local)
    )
    places = arrays["places"].astype(np.float64)
    squares = ((places * np.sqrt(local)) ** 2).sum(axis=1)
    distance = squares[:, None] + squares - 2 * (places * local) @ places.T
    gram = (places * linear) @ places.T + kernel.amplitude * np.exp(-np.maximum(distance, 0))
    gram += np.diag(kernel.noise + kernel.noise_100 * 100 / frames)
    offset = target.mean(axis=0)
    left, sizes_, basis = np.linalg.svd((target - offset) * heard, full_matrices=False)
    kept = min(kernel.directions, len(sizes_))
    coefficients = np.linalg.solve(gram, left[:, :kept] * sizes_[:kept])
    packed, scale = quantized((basis[:kept] / heard).astype(np.float32), BASIS_LEVELS)
    return {
        f"{kind}.linear": linear, f"{kind}.local": local,
        f"{kind}.amplitude": np.float32(kernel.amplitude),
        f"{kind}.coefficients": coefficients, f"{kind}.offset": offset,
        f"{kind}.basis": packed, f"{kind}.basis_scale": scale,
    }  # fmt: skip


def _stored(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float32) if array.dtype == np.float64 else array
