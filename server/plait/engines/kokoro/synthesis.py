"""From the phonemes of a segment to its samples, window by window.

An utterance goes through text, acoustic, then windows of the generator; each `next_window` does one
of these, so no step is long. The norms' statistics are predicted once for the whole utterance, the
source is seeded and the windows are planned from the length alone: the same request gives the same
bytes, whatever runs beside it. The silence that the model puts around an utterance is skipped.
A step that raises Interrupted changed nothing. Does NOT know text, voices by name, jobs or time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from plait.engines.kokoro.model import (
    SAMPLES_PER_FRAME,
    SPECTRA_PER_FRAME,
    Floats,
    Ints,
    KokoroModel,
)
from plait.engines.kokoro.norms import affine
from plait.engines.kokoro.source import HOP, HarmonicSource, samples_of
from plait.engines.kokoro.windows import CONTEXT, Window, plan_windows
from plait.speech.vocabulary import PADDING, ids

Samples = NDArray[np.int16]

FRAMES_PER_UNIT = 2
# Of the silence before the first sound and after the last one, so much stays.
LEAD_FRAMES = 4
TAIL_FRAMES = 8
FADE_SAMPLES = 120  # 5 ms
# Spectra on each side of a window that its samples are made of.
REACH_SPECTRA = 2
_NOTHING: Samples = np.zeros(0, np.int16)
_NO_FLOATS: Floats = np.zeros(0, np.float32)


class Norms(Protocol):
    def predict(
        self, x: Floats, f0: Floats, style: Floats, norm_style: Floats
    ) -> tuple[Floats, Floats]:
        """x [512, T], f0 [T], style [256] -> mean and standard deviation [9216] of what enters
        each AdaIN norm of the generator, over the whole utterance."""


class Synthesizer:
    """One model for many utterances; they may be worked on in turns."""

    def __init__(self, model: KokoroModel, norms: Norms) -> None:
        self.model = model
        self._norms = norms

    def begin(self, phonemes: str, pack: Floats, speed: float, seed: int) -> Utterance:
        """Returns at once. `phonemes`: 1 to 510 symbols of the vocabulary; `pack` [510, 256]: the
        voice's styles by length."""
        assert 0 < len(phonemes) <= len(pack)
        style = pack[len(phonemes) - 1]
        return Utterance(self.model, self._norms, phonemes, style, speed, seed)


@dataclass(frozen=True, slots=True)
class _Spoken:
    """What is known once the durations are: the frames of the phonemes, and the features."""

    d: Floats
    t: Floats
    first: int
    last: int
    frames: int
    symbol_samples: Ints


@dataclass(frozen=True, slots=True)
class _Sounding:
    """What the windows are made of."""

    x: Floats
    source: HarmonicSource
    affine: Floats


class Utterance:
    """One segment being spoken. Made by `Synthesizer.begin`."""

    def __init__(
        self,
        model: KokoroModel,
        norms: Norms,
        phonemes: str,
        style: Floats,
        speed: float,
        seed: int,
    ) -> None:
        self._model = model
        self._norms = norms
        self._symbols = np.array([PADDING, *ids(phonemes), PADDING], np.int64)
        self._style = style
        self._speed = speed
        self._seed = seed
        self._spoken: _Spoken | None = None
        self._sounding: _Sounding | None = None
        self._windows: tuple[Window, ...] = ()
        self._next = 0

    @property
    def samples(self) -> int:
        """Length of the audio; 0 until the first `next_window` has returned."""
        spoken = self._spoken
        return 0 if spoken is None else (spoken.last - spoken.first) * SAMPLES_PER_FRAME

    @property
    def symbol_samples(self) -> Ints:
        """[len(phonemes) + 1]: where each phoneme begins and the last one ends; empty until the
        first `next_window` has returned."""
        return np.zeros(0, np.int64) if self._spoken is None else self._spoken.symbol_samples

    @property
    def done(self) -> bool:
        return self._sounding is not None and self._next == len(self._windows)

    @property
    def held_bytes(self) -> int:
        """Size of the arrays it keeps."""
        spoken, sounding = self._spoken, self._sounding
        held = [] if spoken is None else [spoken.d, spoken.t]
        held += [] if sounding is None else [sounding.x, sounding.affine]
        return sum(array.nbytes for array in held)

    def next_window(self) -> Samples | None:
        """Do the next piece of work: samples, empty where there was none to hear yet, None when
        all were given. Raises Interrupted, then the same piece is done by the next call."""
        if self._spoken is None:
            self._spoken = self._read()
            return _NOTHING
        if self._sounding is None:
            spoken = self._spoken
            self._sounding = self._sound(spoken)
            self._spoken = replace(spoken, d=_NO_FLOATS, t=_NO_FLOATS)  # they are done with
            self._windows = plan_windows(spoken.first, spoken.last)
            return _NOTHING
        if self.done:
            return None
        samples = self._compute(self._windows[self._next], self._sounding)
        self._next += 1
        return samples

    def _read(self) -> _Spoken:
        durations, d, t = self._model.text(self._symbols, self._style)
        units = np.maximum(np.rint(durations / self._speed), 1).astype(np.int64)
        repeats = np.repeat(np.arange(len(units)), units)
        begins = np.cumsum(units) * FRAMES_PER_UNIT  # of symbol 1, 2, ... and of the end
        frames = int(begins[-1])
        first = max(0, int(begins[0]) - LEAD_FRAMES)
        last = min(frames, int(begins[-2]) + TAIL_FRAMES)
        return _Spoken(
            np.ascontiguousarray(d[:, repeats]),
            np.ascontiguousarray(t[:, repeats]),
            first,
            last,
            frames,
            (begins[:-1] - first) * SAMPLES_PER_FRAME,
        )

    def _sound(self, spoken: _Spoken) -> _Sounding:
        x, f0 = self._model.acoustic(spoken.d, spoken.t, self._style)
        norm_style = self._model.norm_style(self._style)
        mean, deviation = self._norms.predict(x, f0, self._style, norm_style)
        return _Sounding(
            x,
            HarmonicSource(f0, self._seed),
            affine(mean, deviation, norm_style),
        )

    def at_once(self) -> Samples:
        """All of it in one window: what the windows must join to. Not for long utterances."""
        while self._sounding is None:
            self.next_window()
        whole = Window(self._windows[0].start, self._windows[-1].stop)
        return self._compute(whole, self._sounding)

    def _compute(self, window: Window, sounding: _Sounding) -> Samples:
        spectra = self._model.generate(
            frames_between(sounding.x, window.left, window.right),
            sounding.source.spectra(window.left, window.right),
            sounding.affine,
        )
        begin = CONTEXT * SPECTRA_PER_FRAME - REACH_SPECTRA
        end = -begin
        count = (window.stop - window.start) * SAMPLES_PER_FRAME
        audio = samples_of(spectra[:, begin:end], REACH_SPECTRA * HOP, count)
        return self._finished(audio, window)

    def _finished(self, audio: Floats, window: Window) -> Samples:
        """Faded in and out where the utterance begins and ends, as 16-bit samples."""
        assert self._spoken is not None
        begin = (window.start - self._spoken.first) * SAMPLES_PER_FRAME
        places = np.arange(begin, begin + len(audio))
        edge = np.minimum(places, self.samples - 1 - places) / FADE_SAMPLES
        loud = np.clip(audio * np.minimum(edge, 1.0), -1.0, 1.0)
        samples: Samples = np.rint(loud * 32767).astype(np.int16)
        return samples


def frames_between(x: Floats, left: int, right: int) -> Floats:
    """x [512, T] -> [512, right - left]; silence (zeros) before its beginning and after its end."""
    frames = x.shape[1]
    inside = x[:, max(0, left) : min(frames, right)]
    if left >= 0 and right <= frames:
        return np.ascontiguousarray(inside)
    return np.pad(inside, ((0, 0), (max(0, -left), max(0, right - frames))))
