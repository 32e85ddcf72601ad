"""Distance and gain of two renderings: known values, and the edges."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from plait.bench.spectral import FRAME, gain_db, lsd

RATE = 24_000


def tone(hertz: float, seconds: float = 0.5, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * hertz * np.arange(int(RATE * seconds)) / RATE)).astype("f4")


def noise(seed: int, level: float = 0.1) -> np.ndarray:
    return (level * np.random.default_rng(seed).standard_normal(RATE // 2)).astype("f4")


def test_a_rendering_is_no_distance_from_itself() -> None:
    assert lsd(noise(1), noise(1)) == 0.0
    assert gain_db(noise(1), noise(1)) == 0.0


@given(db=st.floats(-20, 20))
def test_a_louder_rendering_is_its_gain_away(db: float) -> None:
    louder = noise(1) * np.float32(10 ** (db / 20))

    assert gain_db(noise(1), louder) == pytest.approx(db, abs=0.01)
    assert lsd(noise(1), louder) == pytest.approx(abs(db), abs=0.5)


def test_other_noise_of_the_same_level_is_a_small_distance_and_another_sound_a_large_one() -> None:
    assert lsd(noise(1), noise(2)) < 8.5
    assert lsd(tone(200), tone(3000)) > 10.0


def test_silence_around_speech_does_not_dilute_the_distance() -> None:
    silence = np.zeros(RATE, np.float32)
    padded = [np.concatenate([silence, part, silence]) for part in (tone(200), tone(300))]

    assert lsd(*padded) == pytest.approx(lsd(tone(200), tone(300)), rel=0.3)


def test_what_only_one_rendering_has_at_its_end_is_ignored() -> None:
    longer = np.concatenate([tone(200), noise(3)])

    assert lsd(tone(200), longer) == 0.0
    assert gain_db(longer, tone(200)) == 0.0


@pytest.mark.parametrize("samples", [0, 1, FRAME - 1])
def test_too_little_to_compare_is_no_distance(samples: int) -> None:
    assert lsd(np.ones(samples, np.float32), np.zeros(samples, np.float32)) == 0.0


def test_silence_has_no_gain_over_silence_and_speech_has_infinite_gain_over_it() -> None:
    silence = np.zeros(FRAME, np.float32)

    assert gain_db(silence, silence) == 0.0
    assert gain_db(silence, tone(200)) == math.inf
    assert gain_db(tone(200), silence) == -math.inf
