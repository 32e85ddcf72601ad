"""What Kokoro's generator listens to and what becomes of its answer, in numpy.

The harmonic source: nine harmonics of the pitch plus noise, merged into one signal, as a short-time
spectrum (20 samples, hop 5). Its phase is the sum of the whole utterance's pitch and its noise is
seeded per frame, so any window gets the very samples of the whole. And the inverse: the generator's
spectrum as samples. Follows `kokoro` 0.9.4 (istftnet.py: SineGen, SourceModuleHnNSF, TorchSTFT),
with one difference that cannot be heard: noise is drawn once per sample and not per harmonic, as
the weighted sum of nine normal numbers is one normal number. Does NOT know windows' sizes or norms.
"""

from __future__ import annotations

import numpy as np

from plait.engines.kokoro.model import SAMPLE_RATE, SAMPLES_PER_FRAME, Floats

# Weights of the model's merging layer (`generator.m_source.l_linear`): one per harmonic, and bias.
HARMONIC_WEIGHTS = (
    -0.081541866, -0.18519667, -0.18263398, -0.17837206, -0.098738946,
    0.082640395, 0.087439992, -0.39068547, -0.54774433,
)  # fmt: skip
HARMONIC_BIAS = -0.02945026

SINE_AMPLITUDE = 0.1
VOICED_ABOVE_HZ = 10.0
VOICED_NOISE = 0.003
UNVOICED_NOISE = SINE_AMPLITUDE / 3

SPECTRUM = 20  # samples
HOP = 5
BINS = SPECTRUM // 2 + 1
HALF = SPECTRUM // 2
NOISE_FRAMES = 16  # frames whose noise is drawn together

_HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SPECTRUM) / SPECTRUM)).astype(np.float32)
_WEIGHTS = np.array(HARMONIC_WEIGHTS, np.float32)
_NOISE_GAIN = float(np.linalg.norm(HARMONIC_WEIGHTS))


class HarmonicSource:
    """The source of one utterance of `len(f0)` frames; `f0` in Hz, 10 or less is unvoiced."""

    def __init__(self, f0: Floats, seed: int) -> None:
        self._f0 = f0
        self._seed = seed
        # Phase of the fundamental at the middle of each frame, in cycles.
        cycles_per_frame = f0.astype(np.float64) * (SAMPLES_PER_FRAME / SAMPLE_RATE)
        self._cycles = np.cumsum(cycles_per_frame)

    def spectra(self, left: int, right: int) -> Floats:
        """Frames `[left, right)` -> [22, 60 * (right - left) + 1]: magnitudes, then phases.

        Where they lie outside of the utterance the signal is mirrored at its end.
        """
        low, high = max(0, left - 1), min(len(self._f0), right + 1)
        signal = self._signal(low, high)
        begin = (left - low) * SAMPLES_PER_FRAME - HALF
        end = (right - low) * SAMPLES_PER_FRAME + HALF
        missing = max(0, -begin), max(0, end - len(signal))
        signal = np.pad(signal[max(0, begin) : end], missing, mode="reflect")
        pieces = np.lib.stride_tricks.sliding_window_view(signal, SPECTRUM)[::HOP] * _HANN
        spectrum = np.fft.rfft(pieces, axis=1)
        har = np.concatenate([np.abs(spectrum), np.angle(spectrum)], axis=1).T
        return np.ascontiguousarray(har, np.float32)

    def _signal(self, low: int, high: int) -> Floats:
        """Samples of frames `[low, high)`."""
        voiced = np.repeat(self._f0[low:high] > VOICED_ABOVE_HZ, SAMPLES_PER_FRAME)
        angle = (2 * np.pi * self._phase(low, high)).astype(np.float32)
        harmonics = np.arange(1, len(_WEIGHTS) + 1, dtype=np.float32)
        sines = _WEIGHTS @ np.sin(harmonics[:, None] * angle)
        noise = self._noise(low, high)
        merged = np.where(
            voiced,
            SINE_AMPLITUDE * sines + (VOICED_NOISE * _NOISE_GAIN) * noise,
            (UNVOICED_NOISE * _NOISE_GAIN) * noise,
        )
        return np.tanh(merged + np.float32(HARMONIC_BIAS)).astype(np.float32)

    def _phase(self, low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Cycles of the fundamental, without whole ones: linear between the middles of frames."""
        samples = np.arange(low * SAMPLES_PER_FRAME, high * SAMPLES_PER_FRAME)
        place = (samples + 0.5) / SAMPLES_PER_FRAME - 0.5
        cycles = np.interp(place, np.arange(len(self._cycles)), self._cycles)
        return cycles % 1.0

    def _noise(self, low: int, high: int) -> Floats:
        """Standard normal, the same for a frame whatever window asks for it."""
        blocks = range(low // NOISE_FRAMES, -(-high // NOISE_FRAMES))
        size = NOISE_FRAMES * SAMPLES_PER_FRAME
        drawn = [
            np.random.default_rng((self._seed, block)).standard_normal(size, np.float32)
            for block in blocks
        ]
        start = (low - blocks.start * NOISE_FRAMES) * SAMPLES_PER_FRAME
        return np.concatenate(drawn)[start : start + (high - low) * SAMPLES_PER_FRAME]


def samples_of(spectra: Floats, skip: int, count: int) -> Floats:
    """The inverse: `spectra` [22, S] as the generator gives them -> `count` samples from `skip`.

    Sample 0 is at the middle of spectrum 0. Only samples that two hops on both sides reach are
    right, unless the utterance begins or ends there.
    """
    magnitude = np.exp(spectra[:BINS])
    phase = np.sin(spectra[BINS:])
    spectrum = (magnitude * np.exp(1j * phase)).astype(np.complex64)
    pieces = np.fft.irfft(spectrum.T, n=SPECTRUM, axis=1).astype(np.float32) * _HANN
    hops = SPECTRUM // HOP
    total = np.zeros((len(pieces) + hops - 1, HOP), np.float32)
    weight = np.zeros_like(total)
    square = (_HANN * _HANN).reshape(hops, HOP)
    for index, part in enumerate(pieces.reshape(-1, hops, HOP).transpose(1, 0, 2)):
        total[index : index + len(pieces)] += part
        weight[index : index + len(pieces)] += square[index]
    begin = HALF + skip
    samples: Floats = total.ravel()[begin : begin + count] / weight.ravel()[begin : begin + count]
    return samples
