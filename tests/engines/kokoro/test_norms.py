"""The predictor of the generator's statistics: always usable, and near the truth with the model."""

# ruff: noqa: RUF001 -- phonemes are what is spoken here
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("onnx")

from plait.bench.kokoro_statistics import WholeUtterance
from plait.bench.kokoro_utterances import Booth, Planned
from plait.bench.spectral import gain_db, lsd
from plait.engines.kokoro.norm_features import features
from plait.engines.kokoro.norms import NormPredictor, affine, dequantized, quantized
from plait.engines.kokoro.onnx_backend import OnnxKokoro
from plait.engines.kokoro.voices import KokoroVoices
from tests.proofs.sizes import FULL

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
PREDICTOR = NormPredictor.load()


def utterance(frames: int, level: float = 4.0, hertz: float = 200.0, style: float = 0.2) -> Arrays:
    rng = np.random.default_rng(frames)
    x = level * rng.standard_normal((512, frames), np.float32)
    f0 = np.where(np.arange(frames) % 7 < 4, hertz, 0).astype(np.float32)
    norm_style = 0.5 * rng.standard_normal((2, 9216), np.float32)
    return x, f0, style * rng.standard_normal(256, np.float32), norm_style


def test_a_prediction_has_a_mean_and_a_deviation_for_each_channel() -> None:
    mean, std = PREDICTOR.predict(*utterance(100))

    assert mean.shape == std.shape == (9216,)
    assert mean.dtype == std.dtype == np.float32


def test_the_same_utterance_gives_the_same_prediction_from_any_copy_of_the_predictor() -> None:
    first, second = (one.predict(*utterance(50)) for one in (PREDICTOR, NormPredictor.load()))

    assert np.array_equal(first, second)


@settings(deadline=None, max_examples=30)
@given(
    frames=st.sampled_from([1, 2, 40, 600]),
    level=st.sampled_from([0.0, 1e-3, 30.0, 1e6]),
    hertz=st.sampled_from([0.0, 11.0, 500.0, 1e5]),
    style=st.sampled_from([0.0, 0.2, 50.0]),
)
def test_whatever_goes_in_the_deviations_are_positive_and_all_is_finite(
    frames: int, level: float, hertz: float, style: float
) -> None:
    mean, std = PREDICTOR.predict(*utterance(frames, level, hertz, style))

    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert std.min() > 1e-3  # a norm divides by no less than the root of 1e-5
    assert std.max() < 1e3


def test_scale_and_shift_normalise_and_style_at_once() -> None:
    mean, std = PREDICTOR.predict(*utterance(50))
    gamma, beta = norm_style = utterance(50)[3]
    entering = mean + 2 * std

    scale, shift = affine(mean, std, norm_style)

    assert np.allclose(scale * entering + shift, (1 + gamma) * 2 + beta, rtol=1e-3, atol=1e-3)


def test_saying_a_thing_twice_changes_no_average() -> None:
    x, f0, style, _ = utterance(70)

    once, twice = features(x, f0, style), features(np.tile(x, 2), np.tile(f0, 2), style)

    for name in ("level", "loudness", "pitch", "style"):
        assert np.allclose(once[name], twice[name], atol=1e-4), name


def test_eight_bits_keep_a_number_to_half_a_step() -> None:
    values = np.random.default_rng(1).standard_normal((3, 50)).astype(np.float32)

    packed, scale = quantized(values)

    restored = dequantized({"it": packed, "it_scale": scale}, "it")
    assert np.abs(restored - values).max() <= scale.max() / 2 * 1.001


@pytest.fixture(scope="module")
def booth(loaded: OnnxKokoro, voices: KokoroVoices, published: WholeUtterance) -> Booth:
    loaded.rearm()
    return Booth(loaded, voices, published)


# The first two together are of two languages, with a blend and another speed.
SPOKEN = [
    ("bm_george", "", "ɪz ðæt ɹˈiːᵊli ˈɔːl?", 1.3),
    ("jf_alpha", "am_adam", "ohajoː.", 1.0),
    ("af_heart", "", "ðə kˈɪʧən lˈIt wʌz stˈɪl ˈɔn.", 1.0),
    ("jf_alpha", "", "ohajoː ɡoʣaimasɨ.", 1.0),
    ("am_adam", "ff_siwis", "ə bɹˈIt blˈu skˈI.", 1.0),
]


@pytest.mark.model
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("voice", "other", "phonemes", "speed"),
    SPOKEN if FULL else SPOKEN[:2],
)
def test_predicted_statistics_sound_like_the_true_ones(
    booth: Booth, voice: str, other: str, phonemes: str, speed: float
) -> None:
    planned = Planned(1, True, voice, other, 0.6 if other else 1.0, speed, phonemes)
    true = booth.measure(planned)
    assert true is not None

    mean, std = PREDICTOR.predict(true.x, true.f0, true.style, booth.norm_style(true.style))

    assert np.sqrt(np.mean(((mean - true.mean) / true.std) ** 2)) < 0.1
    assert np.sqrt(np.mean(np.log(std / true.std) ** 2)) < 0.15
    predicted = booth.again(true, mean, std)
    assert lsd(true.audio, predicted) < 6.0
    assert abs(gain_db(true.audio, predicted)) < 3.0
