"""The harmonic source and the inverse spectrum: the same samples whatever window asks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from plait.engines.kokoro.model import SAMPLE_RATE, SAMPLES_PER_FRAME, Floats
from plait.engines.kokoro.source import BINS, HOP, SPECTRUM, HarmonicSource, samples_of


@pytest.fixture
def f0() -> Floats:
    """Voiced, a pause, voiced: 60 frames."""
    pitch = np.linspace(110, 260, 60, dtype=np.float32)
    pitch[22:30] = 0
    return pitch


def test_a_window_of_the_source_equals_that_part_of_the_whole(f0: Floats) -> None:
    source = HarmonicSource(f0, seed=7)

    whole = source.spectra(0, 60)
    window = source.spectra(17, 41)

    assert window.shape == (22, 24 * 60 + 1)
    assert_array_equal(window, whole[:, 17 * 60 : 41 * 60 + 1])


def test_outside_of_the_utterance_there_is_a_source_too(f0: Floats) -> None:
    source = HarmonicSource(f0, seed=7)

    window = source.spectra(-8, 68)

    assert window.shape == (22, 76 * 60 + 1)
    assert np.isfinite(window).all()
    assert_array_equal(window[:, 9 * 60 : 60 * 60], source.spectra(0, 60)[:, 60 : 52 * 60])


def test_the_seed_decides_the_noise(f0: Floats) -> None:
    one, same, other = (HarmonicSource(f0, seed).spectra(0, 60) for seed in (1, 1, 2))

    assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_pitch_is_in_the_signal() -> None:
    source = HarmonicSource(np.full(80, 200, np.float32), seed=0)

    magnitude = source.spectra(0, 80)[:BINS].sum(axis=0)  # one a spectrum: 4800 a second
    tone = np.abs(np.fft.rfft(magnitude[:4800] - magnitude[:4800].mean()))

    assert tone.argmax() % 200 == 0


def test_an_unvoiced_source_is_noise_alone() -> None:
    magnitude = HarmonicSource(np.zeros(80, np.float32), seed=0).spectra(0, 80)[:BINS]

    assert magnitude.std(axis=1).min() > 0
    assert magnitude.max() < 1.5


def test_a_spectrum_of_its_lowest_bin_alone_is_a_level() -> None:
    spectra = np.full((22, 41), -30, np.float32)
    spectra[0] = np.log(SPECTRUM)
    spectra[BINS:] = 0.0

    samples = samples_of(spectra, skip=0, count=200)

    # Four windows overlap: they sum to 2, their squares to 1.5. At the ends there are fewer.
    assert_allclose(samples[15:-15], 2 / 1.5, rtol=1e-5)


@pytest.mark.parametrize(("skip", "count"), [(10, 300), (55, 60)])
def test_a_part_of_the_samples_needs_only_two_more_spectra_on_each_side(
    skip: int, count: int
) -> None:
    generator = np.random.default_rng(3)
    spectra = generator.standard_normal((22, 201)).astype(np.float32)
    whole = samples_of(spectra, 0, 1000)

    begin = 40
    part = samples_of(spectra[:, begin : begin + (skip + count) // HOP + 3], skip, count)

    assert_allclose(part, whole[begin * HOP + skip : begin * HOP + skip + count], atol=1e-5)


def test_a_frame_lasts_as_long_as_the_model_says() -> None:
    assert SAMPLE_RATE / SAMPLES_PER_FRAME == 80
