"""Recorded speech with its reference: what was said, and when.

A reference is JSON, `[[start, end, text], …]` in seconds of the clip, or plain text without times.
The shipped clips are described in audio/README.md. Does NOT know what is measured with them.
"""

from __future__ import annotations

import wave
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plait.bench.serving import BenchError

AUDIO = Path(__file__).parent / "audio"
SAMPLE_BYTES = 2


class Utterance(msgspec.Struct, frozen=True, array_like=True):
    """`start` and `end`: seconds of the clip, of the voice's first and last sound."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Clip:
    """`pcm`: interleaved PCM16, little-endian. `utterances` is empty where no times are known."""

    name: str
    pcm: bytes
    sample_rate: int
    channels: int
    text: str
    utterances: tuple[Utterance, ...] = ()

    @property
    def seconds(self) -> float:
        return len(self.pcm) / self.bytes_per_sample / self.sample_rate

    @property
    def bytes_per_sample(self) -> int:
        """Of one moment in all channels."""
        return SAMPLE_BYTES * self.channels

    def beginning(self, seconds: float) -> Clip:
        """Its samples alone: what is said in them is not known."""
        size_bytes = round(seconds * self.sample_rate) * self.bytes_per_sample
        return Clip(self.name, self.pcm[:size_bytes], self.sample_rate, self.channels, "")


def shipped_clip(name: str) -> Clip:
    """`jfk` or `multi`."""
    return read_clip(AUDIO / f"{name}.wav", AUDIO / f"{name}.json")


def read_clip(path: Path, reference: Path) -> Clip:
    """Raises BenchError for a file that is missing, empty, or not PCM16."""
    try:
        with wave.open(str(path)) as file:
            pcm = file.readframes(file.getnframes())
            width, rate, channels = file.getsampwidth(), file.getframerate(), file.getnchannels()
    except (OSError, EOFError, wave.Error) as error:
        raise BenchError(f"{path.name} cannot be read as a WAV file: {error}") from error
    if width != SAMPLE_BYTES:
        raise BenchError(f"{path.name} has samples of {8 * width} bits: convert it to 16.")
    if not pcm:
        raise BenchError(f"{path.name} holds no samples.")
    text, utterances = _read_reference(reference)
    return Clip(path.stem, pcm, rate, channels, text, utterances)


def _read_reference(path: Path) -> tuple[str, tuple[Utterance, ...]]:
    try:
        data = path.read_bytes()
        if path.suffix != ".json":
            return data.decode(), ()
        utterances = msgspec.json.decode(data, type=tuple[Utterance, ...])
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BenchError(f"{path.name} cannot be read as a reference: {error}") from error
    return " ".join(utterance.text for utterance in utterances), utterances
