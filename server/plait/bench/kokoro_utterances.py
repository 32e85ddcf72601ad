"""What Kokoro's norms are calibrated on: a seeded plan of utterances, and what was measured.

Every cycle of the plan speaks once with each voice: mostly short sentences, because first segments
are short; a fifth with a blend, three in ten at another speed, 15 % in English whatever the voice.
Every fifth sentence of a language is kept out of training and is for evaluation only. One file per
utterance, so an interrupted run goes on where it stopped. Does NOT know what is fitted to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plait.bench.kokoro_statistics import WholeUtterance
from plait.engines.kokoro.model import SAMPLES_PER_FRAME, Floats, KokoroModel
from plait.engines.kokoro.norms import affine
from plait.engines.kokoro.source import HarmonicSource, samples_of
from plait.engines.kokoro.voices import KokoroVoices
from plait.speech.vocabulary import PADDING, ids

SENTENCES = "kokoro_sentences.tsv"
LONGEST_FRAMES = 480  # a longer one costs as much as three and teaches no more
HELD_OUT = 5
EVALUATED_CYCLES = (0, 3, 6)


@dataclass(frozen=True, slots=True)
class Planned:
    """One utterance. `other` and `weight`: the voice is `voice:weight,other:(1 - weight)`."""

    number: int
    evaluated: bool
    voice: str
    other: str
    weight: float
    speed: float
    phonemes: str

    @property
    def blend(self) -> str:
        if not self.other:
            return self.voice
        return f"{self.voice}:{self.weight},{self.other}:{round(1 - self.weight, 2)}"


@dataclass(frozen=True, slots=True)
class Measured:
    """x [512, T], f0 [T], style [256] and the true mean and std [9216]; `audio` [300 T] only where
    `planned.evaluated`."""

    planned: Planned
    x: Floats
    f0: Floats
    style: Floats
    mean: Floats
    std: Floats
    audio: Floats


def read_sentences() -> dict[str, list[str]]:
    """Phonemes by language (the first letter of a voice's name)."""
    sentences: dict[str, list[str]] = {}
    text = (resources.files("plait.bench") / SENTENCES).read_text("utf-8")
    for line in text.splitlines():
        language, _, phonemes = line.split("\t")
        sentences.setdefault(language, []).append(phonemes)
    return sentences


def plan(voices: Sequence[str], cycles: int, seed: int) -> Iterator[Planned]:
    """The utterances of `cycles` cycles, the same for the same arguments."""
    sentences = read_sentences()
    number = 0
    for cycle in range(cycles):
        rng = np.random.default_rng((seed, cycle))
        for evaluated in (False, True) if cycle in EVALUATED_CYCLES else (False,):
            for voice in rng.permutation(np.array(voices)):
                number += 1
                yield _draw(rng, number, evaluated, str(voice), voices, sentences)


def _draw(
    rng: np.random.Generator,
    number: int,
    evaluated: bool,
    voice: str,
    voices: Sequence[str],
    sentences: dict[str, list[str]],
) -> Planned:
    language = voice[0] if rng.random() > 0.15 else str(rng.choice(["a", "b"]))
    pool = [
        phonemes
        for index, phonemes in enumerate(sentences[language])
        if (index % HELD_OUT == HELD_OUT - 1) == evaluated
    ]
    odds = np.array([(len(phonemes) + 4) ** -0.5 for phonemes in pool])
    phonemes = pool[rng.choice(len(pool), p=odds / odds.sum())]
    other, weight, speed = "", 1.0, 1.0
    if rng.random() < 0.2:
        near = [name for name in voices if name != voice and name[0] == voice[0]]
        far = [name for name in voices if name != voice]
        other = str(rng.choice(near if near and rng.random() < 0.5 else far))
        weight = round(float(rng.uniform(0.2, 0.8)), 2)
    if rng.random() < 0.3:
        speed = round(float(np.exp(rng.uniform(np.log(0.5), np.log(2)))), 2)
    return Planned(number, evaluated, voice, other, weight, speed, phonemes)


class Booth:
    """Speaks planned utterances and measures them."""

    def __init__(self, model: KokoroModel, voices: KokoroVoices, whole: WholeUtterance) -> None:
        self._model = model
        self._voices = voices
        self._whole = whole

    def measure(self, planned: Planned) -> Measured | None:
        """None for an utterance of more than LONGEST_FRAMES."""
        style = self._voices.pack(planned.blend)[len(planned.phonemes) - 1]
        x, f0 = self.acoustic(planned.phonemes, style, planned.speed)
        if len(f0) > LONGEST_FRAMES:
            return None
        har = HarmonicSource(f0, planned.number).spectra(0, len(f0))
        spectra, mean, std = self._whole.measure(x, har, self.norm_style(style))
        samples = len(f0) * SAMPLES_PER_FRAME if planned.evaluated else 0
        return Measured(planned, x, f0, style, mean, std, samples_of(spectra, 0, samples))

    def norm_style(self, style: Floats) -> Floats:
        return self._model.norm_style(style)

    def again(self, measured: Measured, mean: Floats, std: Floats) -> Floats:
        """The same utterance's audio [300 T] with other statistics."""
        har = HarmonicSource(measured.f0, measured.planned.number).spectra(0, len(measured.f0))
        given = affine(mean, std, self.norm_style(measured.style))
        spectra = self._whole.generate(measured.x, har, given)
        return samples_of(spectra, 0, len(measured.f0) * SAMPLES_PER_FRAME)

    def acoustic(self, phonemes: str, style: Floats, speed: float) -> tuple[Floats, Floats]:
        """x [512, T] and f0 [T] of an utterance."""
        symbols = np.array([PADDING, *ids(phonemes), PADDING], np.int64)
        durations, d, t = self._model.text(symbols, style)
        units = np.maximum(np.rint(durations / speed), 1).astype(np.int64)
        repeats = np.repeat(np.arange(len(units)), units)
        return self._model.acoustic(
            np.ascontiguousarray(d[:, repeats]), np.ascontiguousarray(t[:, repeats]), style
        )


def path_of(directory: Path, planned: Planned) -> Path:
    return directory / f"{planned.number:05d}.npz"


def save(directory: Path, measured: Measured) -> None:
    """Written beside and renamed: a file that exists is whole. x and audio as float16."""
    path = path_of(directory, measured.planned)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(
            file,
            planned=np.array(json.dumps(asdict(measured.planned))),
            x=measured.x.astype(np.float16),
            f0=measured.f0,
            style=measured.style,
            mean=measured.mean,
            std=measured.std,
            audio=measured.audio.astype(np.float16),
        )
    part.rename(path)


def read(path: Path) -> Measured:
    with np.load(path) as file:
        arrays: dict[str, NDArray[np.float32]] = {
            name: file[name].astype(np.float32)
            for name in ("x", "f0", "style", "mean", "std", "audio")
        }
        return Measured(Planned(**json.loads(str(file["planned"]))), **arrays)
