"""Bytes of any framing, rate, width and quality become the same finite 16 kHz mono samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from plait.engines.whisper.intake import HEADERS, Intake
from plait.engines.whisper.words import Floats
from plait.errors import InvalidAudio
from tests.engines.whisper.voices import cut

RATES = (8000, 11025, 16000, 22050, 44100, 48000)


def take(intake: Intake, *frames: bytes | memoryview) -> Floats:
    return np.concatenate([*(intake.take(frame) for frame in frames), intake.finish()])


def tone(rate: int, seconds: float = 1.0) -> Floats:
    return (0.5 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)).astype(
        np.float32
    )


def test_samples_of_16_bits_keep_their_value() -> None:
    pcm = np.array([0, 1, -1, 16384, 32767, -32768], "<i2").tobytes()

    assert_array_equal(
        take(Intake(16000, 1, "pcm_s16le"), pcm),
        np.array([0, 1, -1, 16384, 32767, -32768]) / 32768,
    )


def test_both_encodings_give_the_same_samples() -> None:
    pcm = np.round(tone(16000) * 32768)

    one = take(Intake(16000, 1, "pcm_s16le"), pcm.astype("<i2").tobytes())
    other = take(Intake(16000, 1, "pcm_f32le"), (pcm / 32768).astype("<f4").tobytes())

    assert_array_equal(one, other)


@pytest.mark.parametrize("rate", RATES)
def test_every_rate_becomes_16_khz(rate: int) -> None:
    intake = Intake(rate, 1, "pcm_f32le")

    samples = take(intake, tone(rate).tobytes())

    assert len(samples) == intake.received_samples == 16000
    assert_allclose(samples[500:-500], tone(16000)[500:-500], atol=0.01)


@pytest.mark.parametrize("rate", [16000, 48000])
def test_stereo_is_mixed(rate: int) -> None:
    both = np.stack([tone(rate), np.zeros(rate, np.float32)], axis=1)

    samples = take(Intake(rate, 2, "pcm_f32le"), both.tobytes())

    assert len(samples) == 16000
    assert_allclose(samples[500:-500], tone(16000)[500:-500] / 2, atol=0.01)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(RATES),
    st.integers(1, 2),
    st.sampled_from(["pcm_s16le", "pcm_f32le"]),
    st.lists(st.sampled_from([0, 1, 2, 3, 5, 7, 160, 1601]), max_size=80),
)
def test_how_bytes_are_cut_makes_no_difference(
    rate: int, channels: int, encoding: str, sizes: list[int]
) -> None:
    noise = np.random.default_rng(rate).standard_normal(6000).astype(np.float32) * 0.1
    pcm = noise.tobytes() if encoding == "pcm_f32le" else (noise * 32768).astype("<i2").tobytes()

    whole = take(Intake(rate, channels, encoding), pcm)
    parts = take(Intake(rate, channels, encoding), *cut(pcm, sizes))

    assert_array_equal(parts, whole)


def test_half_a_sample_at_the_very_end_is_dropped() -> None:
    pcm = tone(16000).tobytes()

    assert_array_equal(
        take(Intake(16000, 2, "pcm_f32le"), pcm, b"\0\0\0"),
        take(Intake(16000, 2, "pcm_f32le"), pcm),
    )


def test_the_samples_of_a_stream_shorter_than_a_header_are_not_lost() -> None:
    assert len(take(Intake(16000, 1, "pcm_s16le"), b"\1\0\2\0\3")) == 2


def test_frames_may_be_views() -> None:
    pcm = tone(16000).tobytes()

    samples = take(Intake(16000, 1, "pcm_f32le"), memoryview(pcm)[:1001], memoryview(pcm)[1001:])

    assert_array_equal(samples, tone(16000))


def test_samples_that_are_not_finite_count_as_silence() -> None:
    pcm = np.array([0.5, np.nan, np.inf, -np.inf, -0.5], "<f4").tobytes()

    assert take(Intake(16000, 1, "pcm_f32le"), pcm).tolist() == [0.5, 0, 0, 0, -0.5]


def test_samples_beyond_the_range_are_clipped() -> None:
    pcm = np.array([2.0, -3e38, 0.25], "<f4").tobytes()

    assert take(Intake(16000, 1, "pcm_f32le"), pcm).tolist() == [1, -1, 0.25]


@pytest.mark.parametrize("magic", [*HEADERS, b"\0\0\0\x20ftyp"])
def test_a_file_is_refused_and_named(magic: bytes) -> None:
    with pytest.raises(InvalidAudio, match="file"):
        Intake(48000, 2, "pcm_s16le").take(magic + bytes(64))


def test_a_header_in_pieces_is_recognised() -> None:
    intake = Intake(16000, 1, "pcm_s16le")

    assert len(intake.take(b"R")) == 0
    assert len(intake.take(b"")) == 0
    assert len(intake.take(b"IF")) == 0
    with pytest.raises(InvalidAudio, match="Send the samples alone"):
        intake.take(b"F\0\0\0\0WAVE")


def test_a_header_within_the_audio_is_audio() -> None:
    assert len(take(Intake(16000, 1, "pcm_s16le"), bytes(8) + b"RIFF")) == 6
