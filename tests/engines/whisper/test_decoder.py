"""whisper.cpp behind `Decoder`, and the whole way from bytes to text, with the starter model."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from plait.bench.accuracy import words_of
from plait.engines.whisper.decoder import Aborted, Decoder, audio_context, whole_characters
from plait.engines.whisper.detector import SileroDetector
from plait.engines.whisper.hearing import Hearing, Window
from plait.engines.whisper.words import SAMPLE_RATE, Floats, text_of
from plait.errors import ModelLoadFailed
from plait.models import ModelStore
from tests.engines.whisper.simulate import (
    Run,
    formula,
    read_clip,
    simulate,
    word_error_rate,
)
from tests.proofs.sizes import FULL

AUDIO = Path(str(files("plait.bench"))) / "audio"
TONES = 2 * np.pi * np.arange(6 * SAMPLE_RATE) / SAMPLE_RATE


@pytest.fixture(scope="module")
def weights() -> str:
    form = ModelStore().ensure("whisper-tiny.en", "whisper").form("whisper")
    assert form is not None
    return str(form)


@pytest.fixture(scope="module")
def decoder(weights: str) -> Decoder:
    return Decoder(weights)


def clip(name: str) -> Floats:
    pcm = np.frombuffer(read_clip(AUDIO / f"{name}.wav"), "<i2")
    return pcm.astype(np.float32) * np.float32(1 / 32768)


def window(samples: Floats, *, closing: bool = True) -> Window:
    return Window(samples, 0.0, closing=closing, language=None, prompt="")


def pcm16(samples: Floats) -> bytes:
    return np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def transcribe(decoder: Decoder, pcm: bytes, **params: Any) -> Run:
    hearing = Hearing(
        {"sample_rate": SAMPLE_RATE, "interim": False} | params,
        SileroDetector(),
        multilingual=decoder.multilingual,
    )
    return simulate(hearing, decoder.decode, pcm, formula)


def test_the_context_covers_the_window_with_room_to_spare() -> None:
    assert audio_context(SAMPLE_RATE, closing=False) == 192
    assert audio_context(SAMPLE_RATE, closing=True) == 384
    for seconds in range(1, 29):
        assert audio_context(seconds * SAMPLE_RATE, closing=False) >= seconds * 50 + 64


@pytest.mark.parametrize("whole", ["", " day", " caf\u00e9", " \U0001f600"])
def test_a_character_that_was_cut_is_not_shown(whole: str) -> None:
    for cut in range(4):
        assert whole_characters(whole.encode() + "\U0001f600".encode()[:cut]) == whole


def test_a_file_that_is_no_model_is_a_load_error(tmp_path: Path) -> None:
    wrong = tmp_path / "model.bin"
    wrong.write_bytes(b"GGUF" + bytes(1000))

    with pytest.raises(ModelLoadFailed, match="no ggml file"):
        Decoder(str(wrong))


def test_a_file_that_is_not_there_is_a_load_error(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadFailed, match="cannot be read") as told:
        Decoder(str(tmp_path / "model.bin"))

    assert str(tmp_path) not in told.value.message


@pytest.mark.model
@pytest.mark.timeout(900)
class TestWithTheStarterModel:
    def test_words_have_texts_times_and_probabilities(self, decoder: Decoder) -> None:
        decoded = decoder.decode(window(clip("jfk")[: 3 * SAMPLE_RATE]))

        assert words_of(text_of(decoded.words))[:5] == ["and", "so", "my", "fellow", "americans"]
        assert all(word.text.startswith(" ") for word in decoded.words)
        assert all(0 <= word.start <= word.end <= 3 for word in decoded.words)
        assert all(0 < word.probability <= 1 for word in decoded.words)
        assert decoded.language is None

    def test_words_are_told_where_they_are_spoken(self, decoder: Decoder) -> None:
        samples = clip("jfk")[int(5.1 * SAMPLE_RATE) : int(7.85 * SAMPLE_RATE)]

        words = decoder.decode(window(samples)).words

        assert [word.text.strip() for word in words[:4]] == ["What", "your", "country", "can"]
        ends = [word.end + 5.1 for word in words]
        assert ends == pytest.approx([5.7, 6.0, 6.45, 6.75, 7.0, 7.25, 7.65], abs=0.25)

    def test_names_to_expect_do_not_leak_into_the_text(self, decoder: Decoder) -> None:
        run = transcribe(decoder, pcm16(clip("jfk")[: 3 * SAMPLE_RATE]), prompt="Jefferson. Tokyo")

        assert words_of(run.text) == ["and", "so", "my", "fellow", "americans"]

    @pytest.mark.parametrize("seconds", [10.4, 10.6, 10.8])
    def test_the_last_word_is_heard_when_the_audio_ends_soon_after_it(
        self, decoder: Decoder, seconds: float
    ) -> None:
        samples = clip("jfk")[8 * SAMPLE_RATE : int(seconds * SAMPLE_RATE)]

        run = transcribe(decoder, pcm16(samples))

        assert words_of(run.text)[-2:] == ["your", "country"]
        assert run.finals[-1][1]["end"] <= seconds - 8

    def test_a_window_of_a_tenth_of_a_second_is_decoded(self, decoder: Decoder) -> None:
        decoder.decode(window(clip("jfk")[8000:9600]))

    def test_it_stops_when_it_is_told_to(self, weights: str) -> None:
        impatient = Decoder(weights, aborted=lambda: True)

        with pytest.raises(Aborted):
            impatient.decode(window(clip("jfk")))

    def test_nothing_is_said_on_stderr(self, weights: str, capfd: Any) -> None:
        Decoder(weights).decode(window(clip("jfk")[:SAMPLE_RATE]))

        assert capfd.readouterr() == ("", "")

    def test_two_speakers_are_understood_live(self, decoder: Decoder) -> None:
        begin = 0 if FULL else 24  # the last sentence of the one, and the other
        timed = json.loads((AUDIO / "multi.json").read_text())
        spoken = [(start - begin, text) for start, _, text in timed if start > begin]
        pcm = read_clip(AUDIO / "multi.wav")[2 * begin * SAMPLE_RATE :]

        run = transcribe(decoder, pcm, interim=True, words=True)

        assert word_error_rate(" ".join(text for _, text in spoken), run.text) <= 0.05
        for at, segment in run.segments:
            assert segment["start"] <= segment["end"] <= at
        starts = [segment["start"] for _, segment in run.finals]
        assert starts == sorted(starts)
        firsts = [start for start, _ in spoken]
        assert all(min(abs(start - at) for at in starts) < 0.4 for start in firsts)

    @pytest.mark.parametrize(
        ("rate", "channels", "encoding"),
        [
            (8000, 1, "pcm_s16le"),
            (16000, 2, "pcm_f32le"),
            (22050, 1, "pcm_f32le"),
            (44100, 2, "pcm_s16le"),
            (48000, 1, "pcm_f32le"),
        ],
    )
    def test_the_same_words_at_every_rate(
        self, decoder: Decoder, rate: int, channels: int, encoding: str
    ) -> None:
        samples = soxr.resample(clip("jfk"), SAMPLE_RATE, rate).repeat(channels)
        pcm = samples.astype("<f4").tobytes() if encoding == "pcm_f32le" else pcm16(samples)
        (spoken,) = json.loads((AUDIO / "jfk.json").read_text())

        hearing = Hearing(
            {"sample_rate": rate, "channels": channels, "encoding": encoding, "interim": False},
            SileroDetector(),
            multilingual=False,
        )
        text = hear_all(hearing, decoder, pcm)

        assert word_error_rate(spoken[2], text) <= 0.1

    @pytest.mark.parametrize(
        "noise",
        [
            np.zeros(len(TONES)),
            0.001 * np.random.default_rng(0).standard_normal(len(TONES)),
            0.03 * np.random.default_rng(0).standard_normal(len(TONES)),
            0.3 * np.sin(50 * TONES),
            0.3 * np.sin(100 * TONES),
            0.3 * np.sin(1000 * TONES),
            np.full(len(TONES), 0.4),
            5 * np.random.default_rng(0).standard_normal(len(TONES)),
            np.full(len(TONES), np.nan),
        ],
        ids=["silence", "-60 dB", "-30 dB", "50 Hz", "100 Hz", "1 kHz", "DC", "clipping", "NaN"],
    )
    def test_no_text_is_invented(self, decoder: Decoder, noise: Floats) -> None:
        hearing = Hearing(
            {"sample_rate": SAMPLE_RATE, "encoding": "pcm_f32le"},
            SileroDetector(),
            multilingual=False,
        )

        assert hear_all(hearing, decoder, noise.astype("<f4").tobytes()) == ""

    def test_speech_is_understood_on_top_of_an_offset(self, decoder: Decoder) -> None:
        run = transcribe(decoder, pcm16(clip("jfk")[: 3 * SAMPLE_RATE] + np.float32(0.3)))

        assert "fellow americans" in " ".join(words_of(run.text))

    def test_speech_after_a_long_silence_has_its_place(self, decoder: Decoder) -> None:
        speech = read_clip(AUDIO / "jfk.wav")[: 3 * SAMPLE_RATE * 2]

        run = transcribe(decoder, speech + bytes(400 * SAMPLE_RATE * 2) + speech)

        one, other = (segment for _, segment in run.finals)
        assert words_of(one["text"]) == words_of(other["text"])
        assert other["start"] == pytest.approx(one["start"] + 403, abs=0.2)

    @pytest.mark.parametrize("seconds", [0.5, 0.6, 0.99, 1.0, 1.01])
    def test_a_short_clip_is_answered(self, decoder: Decoder, seconds: float) -> None:
        start = int(8.5 * SAMPLE_RATE)  # "He was not …"
        samples = clip("multi")[start : start + int(seconds * SAMPLE_RATE)]

        run = transcribe(decoder, pcm16(samples))

        assert words_of(run.text)[:2] == ["he", "was"]
        assert run.finals[0][1]["end"] <= seconds


def hear_all(hearing: Hearing, decoder: Decoder, pcm: bytes) -> str:
    """As fast as it goes, in frames of an odd size."""
    items = []
    for position in range(0, len(pcm), 12_345):
        items += hearing.hear(pcm[position : position + 12_345], 0.0) + hearing.follow(0.0)
    items += hearing.finish()
    while (due := hearing.due()) is not None:
        items += hearing.take(due, decoder.decode(due), 0.0)
    assert hearing.over
    segments = [json.loads(item.data)["segment"] for item in items]
    return " ".join(segment["text"] for segment in segments if segment["is_final"])
