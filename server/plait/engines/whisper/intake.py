"""Bytes as a client sends them -> 16 kHz mono float32: the only place that knows PCM encodings.

Frames may be cut anywhere: half a sample waits for the next frame, and at the very end it is
dropped. Samples that are not finite count as silence, those beyond ±1 are clipped. A stream that
begins with a file's header is refused, also when the header comes in pieces. The samples do not
depend on how the bytes were cut. Does NOT know speech.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import soxr

from plait.engines.whisper.words import SAMPLE_RATE, Floats
from plait.errors import InvalidAudio

DTYPES: dict[str, np.dtype[Any]] = {"pcm_s16le": np.dtype("<i2"), "pcm_f32le": np.dtype("<f4")}

# How files begin that people send by mistake, and what they are.
HEADERS = {
    b"RIFF": "a WAV file (RIFF)",
    b"RIFX": "a WAV file (RIFX)",
    b"RF64": "a WAV file (RF64)",
    b"FORM": "an AIFF file (FORM)",
    b"fLaC": "a FLAC file (fLaC)",
    b"OggS": "an Ogg file (OggS)",
    b"ID3": "an MP3 file (ID3)",
    b"caff": "a CAF file (caff)",
    b"\x1aE\xdf\xa3": "a WebM or Matroska file",
}
_MP4_BRAND = b"ftyp"  # after four bytes of length
_HEADER_BYTES = 8
_NOTHING = np.zeros(0, np.float32)


class Intake:
    """The front end of one stream. `sample_rate` in Hz, `channels` 1 or 2, interleaved."""

    def __init__(self, sample_rate: int, channels: int, encoding: str) -> None:
        self._dtype = DTYPES[encoding]
        self._channels = channels
        self._frame_bytes = self._dtype.itemsize * channels
        self._sample_rate = sample_rate
        self._resampler = (
            None
            if sample_rate == SAMPLE_RATE
            else soxr.ResampleStream(sample_rate, SAMPLE_RATE, 1, dtype="float32")
        )
        self._carry = b""
        self._looked = False
        self._frames = 0

    @property
    def received_samples(self) -> int:
        """Whole samples so far, counted at 16 kHz; the resampler holds back the newest of them."""
        return self._frames * SAMPLE_RATE // self._sample_rate

    def take(self, data: bytes | memoryview) -> Floats:
        """The samples that `data` completes, [n] at 16 kHz. Raises InvalidAudio."""
        data = self._carry + bytes(data) if self._carry else data
        if not self._looked:
            _refuse_files(bytes(data[:_HEADER_BYTES]))
            if len(data) < _HEADER_BYTES:
                self._carry = bytes(data)
                return _NOTHING
            self._looked = True
        whole = len(data) - len(data) % self._frame_bytes
        self._carry = bytes(data[whole:])
        samples = self._samples(memoryview(data)[:whole])
        return self._resample(samples, last=False)

    def finish(self) -> Floats:
        """The last samples, which the resampler held back."""
        whole = len(self._carry) - len(self._carry) % self._frame_bytes
        rest, self._carry = self._carry[:whole], b""  # of a stream shorter than a header
        return self._resample(self._samples(rest), last=True)

    def _samples(self, data: bytes | memoryview) -> Floats:
        """Mono, at the client's rate, finite, within ±1."""
        pcm = np.frombuffer(data, self._dtype)
        self._frames += len(pcm) // self._channels
        if self._dtype.kind == "i":
            samples = pcm.astype(np.float32)
            samples *= np.float32(1 / 32768)
        else:
            samples = np.nan_to_num(pcm.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
            np.clip(samples, -1.0, 1.0, out=samples)
        if self._channels == 1:
            return samples
        mono: Floats = samples.reshape(-1, self._channels).mean(axis=1)
        return mono

    def _resample(self, samples: Floats, *, last: bool) -> Floats:
        if self._resampler is None or not (len(samples) or last):
            return samples
        resampled: Floats = self._resampler.resample_chunk(samples, last=last)
        return resampled


def _refuse_files(beginning: bytes) -> None:
    kind = next((kind for magic, kind in HEADERS.items() if beginning.startswith(magic)), None)
    if beginning[4:].startswith(_MP4_BRAND):
        kind = "an MP4 file (ftyp)"
    if kind is not None:
        raise InvalidAudio(
            f"The audio begins like {kind}, not like samples. Send the samples alone, and their "
            "rate, channels and encoding in params; the SDK does that for files."
        )
