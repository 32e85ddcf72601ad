"""How far windowed speech is from the same speech decoded whole, voice by voice.

The reference is the published generator over the whole utterance, with the statistics its norms
measure. The other side has the statistics that are predicted before it runs, which is all that
windows differ in (tests/engines hold a window to 60 dB of the whole, given the same statistics).
Both have the same source noise. The shipped fit knows these sentences from some voices; what unseen
ones give is printed by `plait.bench.kokoro_calibration --evaluate`. Does NOT judge the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plait.bench.figures import Spread
from plait.bench.kokoro_statistics import WholeUtterance
from plait.bench.kokoro_utterances import Booth, Planned, read_sentences
from plait.bench.spectral import gain_db, lsd
from plait.engines.kokoro.norms import NormPredictor
from plait.engines.kokoro.onnx_backend import OnnxKokoro
from plait.engines.kokoro.voices import KokoroVoices
from plait.models import InstalledModel

Advance = Callable[[int], None]
EVALUATED = 4  # the index of a sentence that the calibration evaluates with, too


@dataclass(frozen=True, slots=True)
class VoiceQuality:
    """Log-spectral distance and gain in dB of one sentence."""

    voice: str
    lsd_db: float
    gain_db: float


@dataclass(frozen=True, slots=True)
class Quality:
    voices: Sequence[VoiceQuality]

    @property
    def lsd_db(self) -> Spread | None:
        return Spread.of(voice.lsd_db for voice in self.voices)

    @property
    def gain_db(self) -> Spread | None:
        """Without sign."""
        return Spread.of(abs(voice.gain_db) for voice in self.voices)

    @property
    def worst(self) -> VoiceQuality:
        return max(self.voices, key=lambda voice: voice.lsd_db)


def measure(model: InstalledModel, threads: int, advance: Advance) -> Quality:
    """A sentence of its language with every installed voice; `advance(1)` after each. Blocks."""
    assert model.voices_dir is not None, f"{model.name} does not speak"
    directory = model.form("kokoro-onnx")
    assert directory is not None, f"{model.name} has no graphs"
    voices = KokoroVoices(model.voices_dir)
    onnx = OnnxKokoro.load(directory, threads)
    booth = Booth(onnx, voices, WholeUtterance(model.directory / "model.onnx", threads))
    predictor = NormPredictor.load()
    sentences = read_sentences()
    results = []
    for number, voice in enumerate(voices.names):
        planned = Planned(number, True, voice, "", 1.0, 1.0, sentences[voice[0]][EVALUATED])
        measured = booth.measure(planned)
        assert measured is not None, "that sentence is short in every language"
        style = booth.norm_style(measured.style)
        given = predictor.predict(measured.x, measured.f0, measured.style, style)
        other = booth.again(measured, *given)
        results.append(
            VoiceQuality(voice, lsd(measured.audio, other), gain_db(measured.audio, other))
        )
        advance(1)
    return Quality(results)
