"""An utterance from phonemes to samples, on a model of three small formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from plait.engines.kokoro.model import NORM_CHANNELS, Floats, Interrupted, Ints
from plait.engines.kokoro.norms import affine
from plait.engines.kokoro.synthesis import (
    FADE_SAMPLES,
    LEAD_FRAMES,
    Samples,
    Synthesizer,
    Utterance,
    frames_between,
)
from plait.engines.kokoro.windows import CONTEXT

PHONEMES = "hɛloʊ wɜld"
PACK = np.random.default_rng(0).standard_normal((510, 256)).astype(np.float32)


class Formulas:
    """A `KokoroModel` whose spectra depend on CONTEXT frames on both sides, and on all inputs.

    Every symbol lasts 4.6 units, the padding before and after 13 and 18.
    """

    def __init__(self) -> None:
        self.during: Callable[[str], None] = lambda part: None
        self.stopped = False

    def _call(self, part: str) -> None:
        self.during(part)
        if self.stopped:
            raise Interrupted

    def text(self, symbols: Ints, style: Floats) -> tuple[Floats, Floats, Floats]:
        self._call("text")
        durations = np.full(len(symbols), 4.6, np.float32)
        durations[[0, -1]] = 13, 18
        wave = np.sin(np.outer(np.arange(640) + style[0], symbols)).astype(np.float32)
        return durations, wave, wave[:512]

    def acoustic(self, d: Floats, t: Floats, style: Floats) -> tuple[Floats, Floats]:
        self._call("acoustic")
        x = np.repeat(t, 2, axis=1) + style[1] + np.arange(2 * t.shape[1]) / 100
        return x.astype(np.float32), np.full(x.shape[1], 150, np.float32)

    def generate(self, x: Floats, har: Floats, affine: Floats) -> Floats:
        self._call("generate")
        level = x.mean(axis=0) * affine[0, 0] + affine[1, 0]
        around = np.convolve(level, np.ones(2 * CONTEXT - 1) / (2 * CONTEXT - 1), "same")
        places = np.minimum(np.arange(har.shape[1]) // 60, len(around) - 1)
        return (np.tanh(around[places]) + 0.1 * np.tanh(har) - 1).astype(np.float32)

    def norm_style(self, style: Floats) -> Floats:
        return np.stack([style[:1].repeat(NORM_CHANNELS), style[1:2].repeat(NORM_CHANNELS)])

    def interrupt(self) -> None:
        self.stopped = True

    def rearm(self) -> None:
        self.stopped = False

    def close(self) -> None: ...


class Statistics:
    def predict(
        self, x: Floats, f0: Floats, style: Floats, norm_style: Floats
    ) -> tuple[Floats, Floats]:
        ones = np.ones(NORM_CHANNELS, np.float32)
        return x.mean() * ones, x.std() * ones


@pytest.fixture
def model() -> Formulas:
    return Formulas()


def begin(model: Formulas, speed: float = 1.0, seed: int = 1) -> Utterance:
    return Synthesizer(model, Statistics()).begin(PHONEMES, PACK, speed, seed)


def spoken(utterance: Utterance) -> list[Samples]:
    windows = []
    while (window := utterance.next_window()) is not None:
        windows.append(window)
    return windows


def test_windows_add_up_to_the_length_that_was_announced(model: Formulas) -> None:
    utterance = begin(model)

    windows = spoken(utterance)

    assert sum(map(len, windows)) == utterance.samples
    assert utterance.done
    assert utterance.next_window() is None


def test_the_first_two_steps_give_times_and_features_but_no_audio(model: Formulas) -> None:
    utterance = begin(model)

    lengths = [0 if (w := utterance.next_window()) is None else len(w) for _ in range(3)]

    assert lengths[:2] == [0, 0]
    assert lengths[2] > 0


def test_windows_join_to_what_the_whole_utterance_gives_at_once(model: Formulas) -> None:
    utterance = begin(model)
    windowed = np.concatenate(spoken(utterance))

    whole = utterance.at_once()

    assert_allclose(windowed.astype(int), whole.astype(int), atol=1)


def test_every_phoneme_begins_where_its_sound_does(model: Formulas) -> None:
    utterance = begin(model)
    utterance.next_window()

    steps = np.diff(utterance.symbol_samples)

    assert len(utterance.symbol_samples) == len(PHONEMES) + 1
    assert utterance.symbol_samples[0] == LEAD_FRAMES * 300
    assert_array_equal(steps, 5 * 2 * 300)  # 4.6 units are 5 whole ones of two frames
    assert utterance.symbol_samples[-1] < utterance.samples


def test_speed_divides_the_durations(model: Formulas) -> None:
    slow, fast = begin(model, speed=0.5), begin(model, speed=2.0)
    slow.next_window()
    fast.next_window()

    slow_length, fast_length = (int(np.ptp(u.symbol_samples)) for u in (slow, fast))

    assert slow_length == pytest.approx(len(PHONEMES) * 9 * 600)
    assert fast_length == pytest.approx(len(PHONEMES) * 2 * 600)


def test_at_any_speed_a_symbol_lasts_at_least_one_unit(model: Formulas) -> None:
    utterance = begin(model, speed=100)

    windows = spoken(utterance)

    assert_array_equal(np.diff(utterance.symbol_samples), 600)
    assert sum(map(len, windows)) == utterance.samples


@pytest.mark.parametrize("part", ["text", "acoustic", "generate"])
def test_an_interrupted_step_is_done_again_with_the_same_result(model: Formulas, part: str) -> None:
    untouched = np.concatenate(spoken(begin(model)))
    utterance, heard, cuts = begin(model), [], 0

    model.during = lambda now: model.interrupt() if now == part and cuts < 3 else None
    while not utterance.done:
        try:
            heard.append(utterance.next_window())
        except Interrupted:
            cuts += 1
            model.rearm()

    assert cuts == 3
    assert_array_equal(np.concatenate([w for w in heard if w is not None]), untouched)


def test_two_utterances_in_turns_sound_as_they_do_alone(model: Formulas) -> None:
    alone = [np.concatenate(spoken(begin(model, seed=seed))) for seed in (1, 2)]
    both = [begin(model, seed=seed) for seed in (1, 2)]
    heard: list[list[Samples]] = [[], []]

    while not all(utterance.done for utterance in both):
        for utterance, windows in zip(both, heard, strict=True):
            window = utterance.next_window()
            windows += [] if window is None else [window]

    for windows, expected in zip(heard, alone, strict=True):
        assert_array_equal(np.concatenate(windows), expected)


def test_another_seed_is_another_noise(model: Formulas) -> None:
    one, other = (np.concatenate(spoken(begin(model, seed=seed))) for seed in (1, 2))

    assert len(one) == len(other)
    assert not np.array_equal(one, other)


def test_the_ends_are_faded_to_silence(model: Formulas) -> None:
    audio = np.concatenate(spoken(begin(model))).astype(float)

    assert (audio[0], audio[-1]) == (0, 0)
    loudest = np.abs(audio).max()
    assert np.abs(audio[: FADE_SAMPLES // 10]).max() < loudest / 5
    assert np.abs(audio[-FADE_SAMPLES // 10 :]).max() < loudest / 5


def test_what_an_utterance_holds_is_counted(model: Formulas) -> None:
    utterance = begin(model)
    before = utterance.held_bytes

    utterance.next_window()
    after_text = utterance.held_bytes
    spoken(utterance)

    assert before == 0
    assert after_text > 0


def test_frames_outside_of_the_utterance_are_silence() -> None:
    x = np.ones((512, 20), np.float32)

    frames = frames_between(x, -3, 25)

    assert frames.shape == (512, 28)
    assert_array_equal(frames.sum(axis=0) > 0, [False] * 3 + [True] * 20 + [False] * 5)


def test_folded_norms_normalise_and_style_at_once() -> None:
    generator = np.random.default_rng(5)
    style = generator.standard_normal((2, 50), np.float32)
    x, mean = generator.standard_normal((2, 50), np.float32)
    deviation = generator.uniform(0.5, 2, 50).astype(np.float32)

    scale, shift = affine(mean, deviation, style)

    expected = (1 + style[0]) * (x - mean) / deviation + style[1]
    assert_allclose(scale * x + shift, expected, rtol=1e-4, atol=1e-5)
