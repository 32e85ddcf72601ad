"""What the two Kokoro backends have in common: three functions over arrays, and an interrupt.

Kokoro-82M (StyleTTS 2 with an iSTFTNet vocoder, 24 kHz) in three parts. Text: symbols -> durations
and features. Acoustic: aligned features -> decoder output x and pitch, whole utterance. Generator:
any window of x -> spectrogram, given the statistics its AdaIN norms would have had over the whole
utterance, folded into one scale and shift per channel ("affine"); so windows join exactly.
Everything else (alignment, harmonic source, statistics, windows, iSTFT) is shared numpy code.

Frames are of x: 80 per second, 300 samples each, 60 spectrogram frames each. Channels of statistics
and affine, 9216 in all, in this order: blocks noise_res.0, resblocks.0-2 (256 channels), then
noise_res.1, resblocks.3-5 (128 channels); in a block adain1.0, adain2.0, adain1.1, adain2.1,
adain1.2, adain2.2. Does NOT know text, voices by name, jobs.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 24_000
SAMPLES_PER_FRAME = 300
SPECTRA_PER_FRAME = 60
NORM_CHANNELS = 9216

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Interrupted(Exception):
    """The running call was cut short by `interrupt`; it had no effect and may be repeated."""


class KokoroModel(Protocol):
    """One set of weights. Called by one thread, except `interrupt`. Calls raise Interrupted."""

    def text(self, symbols: Ints, style: Floats) -> tuple[Floats, Floats, Floats]:
        """symbols [N] (with the padding symbol 0 at both ends), style [256] ->
        durations [N] in half-frames' units of the model (1 unit = 2 frames, not yet rounded, at
        speed 1), d [640, N], t [512, N]."""

    def acoustic(self, d: Floats, t: Floats, style: Floats) -> tuple[Floats, Floats]:
        """d [640, T], t [512, T] repeated by the rounded durations -> x [512, 2T], f0 [2T] in Hz
        (0: unvoiced)."""

    def generate(self, x: Floats, har: Floats, affine: Floats) -> Floats:
        """x [512, W], har [22, 60W+1] (magnitude and phase of the harmonic source), affine
        [2, 9216] -> [22, 60W+1]: log magnitude (11) and the argument of the phase's sine (11).

        The first and last 8 frames are context (`windows.CONTEXT`): a backend may return
        anything for them, but for the two spectra next to the frames between."""

    def norm_style(self, style: Floats) -> Floats:
        """style [256] -> [2, 9216]: gamma (to be used as 1 + gamma) and beta of every norm."""

    def interrupt(self) -> None:
        """From any thread: cut the running call short, and those until `rearm`."""

    def rearm(self) -> None:
        """Forget interrupts: calls run again."""

    def close(self) -> None: ...
