"""The plan of the calibration, its files, and the fit, on weights that are only numbers."""

# ruff: noqa: RUF001 -- phonemes are what is spoken here
from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from plait.bench.kokoro_fit import Known, fit
from plait.bench.kokoro_utterances import Measured, Planned, path_of, plan, read, save
from plait.engines.kokoro.norms import NormPredictor

VOICES = ("af_heart", "am_adam", "bf_emma", "ef_dora", "jf_alpha", "zf_xiaoni")


class Weights:
    """Convolutions of the right shapes; what they hold does not matter to a fit."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def convolution(self, name: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        kernel = self._rng.standard_normal(shape, np.float32) / np.float32(shape[0])
        return kernel, np.zeros(shape[1] if name.startswith("ups.") else shape[0], np.float32)

    def alpha(self, name: str, channels: int) -> np.ndarray:
        return np.ones(channels)


def measured(number: int, frames: int = 60) -> Measured:
    rng = np.random.default_rng(number)
    planned = Planned(number, False, "af_heart", "", 1.0, 1.0, "həlˈO")
    x = (1 + rng.random()) * rng.standard_normal((512, frames), np.float32)
    f0 = np.where(np.arange(frames) % 9 < 5, 100 + 200 * rng.random(), 0).astype(np.float32)
    mean = rng.standard_normal(9216, np.float32)
    std = np.exp(0.1 * rng.standard_normal(9216, np.float32))
    style = rng.standard_normal(256, np.float32)
    return Measured(planned, x, f0, style, mean, std, np.zeros(0, np.float32))


def test_the_same_seed_plans_the_same_utterances_and_another_one_others() -> None:
    assert list(plan(VOICES, 3, 1)) == list(plan(VOICES, 3, 1))
    assert list(plan(VOICES, 3, 1)) != list(plan(VOICES, 3, 2))


def test_a_longer_plan_begins_with_the_shorter_one() -> None:
    shorter = list(plan(VOICES, 2, 1))

    assert list(plan(VOICES, 5, 1))[: len(shorter)] == shorter


def test_every_cycle_speaks_once_with_each_voice() -> None:
    spoken = [one.voice for one in plan(VOICES, 3, 1) if not one.evaluated]

    for cycle in range(3):
        assert sorted(spoken[cycle * 6 : cycle * 6 + 6]) == sorted(VOICES)


def test_what_is_evaluated_was_never_trained_on() -> None:
    planned = list(plan(VOICES, 30, 1))

    trained = {one.phonemes for one in planned if not one.evaluated}
    assert trained.isdisjoint(one.phonemes for one in planned if one.evaluated)


def test_a_measured_utterance_survives_its_file(tmp_path: Path) -> None:
    one = measured(7)

    save(tmp_path, one)

    again = read(path_of(tmp_path, one.planned))
    assert again.planned == one.planned
    assert np.array_equal(again.mean, one.mean)
    assert np.allclose(again.x, one.x, atol=1e-2)
    assert [path.name for path in tmp_path.iterdir()] == ["00007.npz"]


@pytest.mark.timeout(120)
def test_a_fitted_predictor_knows_what_it_was_fitted_to() -> None:
    utterances = [measured(number) for number in range(12)]
    norm_styles = [np.full((2, 9216), 0.1, np.float32)] * 12
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **fit(Known.of(utterances, norm_styles), Weights()))
    file.seek(0)
    one = utterances[3]

    mean, std = NormPredictor.load(file).predict(one.x, one.f0, one.style, norm_styles[3])

    assert np.sqrt(np.mean((mean - one.mean) ** 2)) < 0.2
    assert np.sqrt(np.mean((np.log(std) - np.log(one.std)) ** 2)) < 0.03
