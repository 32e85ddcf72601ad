"""Ears without a model: every stretch of sound is a word, and its pitch says which.

A word is sound between pauses of 30 ms, at most 0.2 s of it; its frequency, rounded to 100 Hz,
names it (300 Hz is "three"). Sound under 40 ms is a click, and nothing. `recite` makes audio with
known words, so a test can see that none was lost, doubled or mixed up. Knows no job and no item.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_NAMES = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
WORDS = tuple(_NAMES.split())
STEP_HZ = 100  # between the words' frequencies; the first word is at one step
TONE_SECONDS, GAP_SECONDS, PAUSE_SECONDS = 0.15, 0.05, 0.8

LOUD = 0.02  # of full scale
FRAMES_PER_SECOND = 100
CLICK_FRAMES, GAP_FRAMES, WORD_FRAMES = 4, 3, 20

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SoundFormat:
    """Of interleaved PCM, as an open's params declare it."""

    sample_rate: int
    encoding: str = "pcm_s16le"
    channels: int = 1

    @property
    def sample_bytes(self) -> int:
        """Of one moment in all channels."""
        return (4 if self.encoding == "pcm_f32le" else 2) * self.channels

    @property
    def frame_samples(self) -> int:
        """Of the 10 ms that are looked at together."""
        return self.sample_rate // FRAMES_PER_SECOND

    def decode(self, data: bytes) -> Samples:
        """Mono samples in ±1; what is not finite is silence."""
        kind = np.dtype("<f4" if self.encoding == "pcm_f32le" else "<i2")
        samples = np.frombuffer(data, kind).reshape(-1, self.channels).astype(np.float32)
        scale = 1.0 if self.encoding == "pcm_f32le" else 32768.0
        finite = np.nan_to_num(samples / scale, nan=0.0, posinf=0.0, neginf=0.0)
        mono: Samples = np.clip(finite, -1, 1).mean(axis=1, dtype=np.float32)
        return mono

    def encode(self, mono: Samples) -> bytes:
        samples = np.repeat(mono[:, None], self.channels, axis=1)
        if self.encoding == "pcm_f32le":
            return samples.astype("<f4").tobytes()
        return np.round(samples * 32767).astype("<i2").tobytes()


@dataclass(slots=True)
class SpokenWord:
    """Times in samples from the beginning. `text` is known at its end."""

    start: int
    end: int
    text: str = ""


class Ears:
    """Frames of mono samples in, words out; one word at a time is open."""

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self.heard_samples = 0
        self.word: SpokenWord | None = None  # sounding now, or until GAP_FRAMES ago
        self._loud_frames = 0
        self._quiet_frames = 0
        self._low = False  # the wave was last below zero
        self._rises: list[int] = []  # where it came up through zero

    @property
    def sure(self) -> bool:
        """What sounds is long enough to be a word."""
        return self.word is not None and self._loud_frames >= CLICK_FRAMES

    def hear(self, frame: Samples) -> SpokenWord | None:
        """A word that ended with this frame."""
        loud = frame.size > 0 and bool(np.abs(frame).max() >= LOUD)
        start = self.heard_samples
        self.heard_samples += frame.size
        if loud:
            self._sound(frame, start)
        elif self.word is not None:
            self._quiet_frames += 1
        if self._loud_frames + self._quiet_frames >= WORD_FRAMES:
            return self.finish()
        return self.finish() if self._quiet_frames >= GAP_FRAMES else None

    def finish(self) -> SpokenWord | None:
        """The end of the word that is open, if it is one."""
        word, sure = self.word, self.sure
        if word is not None:
            word.text = self._name()
        self.word = None
        self._loud_frames = self._quiet_frames = 0
        self._rises.clear()
        self._low = False
        return word if sure else None

    def _sound(self, frame: Samples, start: int) -> None:
        if self.word is None:
            self.word = SpokenWord(start, start)
        self.word.end = start + frame.size
        self._loud_frames += 1 + self._quiet_frames
        self._quiet_frames = 0
        (clear,) = np.nonzero(np.abs(frame) >= LOUD / 2)
        low = frame[clear] < 0
        before = np.concatenate(([self._low], low[:-1]))
        self._rises += (start + clear[before & ~low]).tolist()
        self._low = bool(low[-1])

    def _name(self) -> str:
        """Of the mean frequency between the first and the last rise through zero."""
        if len(self._rises) < 2:
            return WORDS[0]
        seconds = (self._rises[-1] - self._rises[0]) / self._sample_rate
        step = round((len(self._rises) - 1) / seconds / STEP_HZ)
        return WORDS[min(max(step, 1), len(WORDS)) - 1]


@functools.lru_cache(maxsize=256)
def recite(
    text: str, sample_rate: int = 16_000, encoding: str = "pcm_s16le", channels: int = 1
) -> bytes:
    """PCM in which the engine hears `text`: words of WORDS, and "." for a pause of 0.8 s.

    Each word lasts 0.2 s. Raises ValueError for another word.
    """
    pieces = [np.zeros(0, np.float32)]
    for word in text.split():
        if word == ".":
            pieces.append(np.zeros(round(PAUSE_SECONDS * sample_rate), np.float32))
            continue
        frequency = STEP_HZ * (WORDS.index(word) + 1)
        moments = np.arange(round(TONE_SECONDS * sample_rate)) / sample_rate
        pieces.append((0.5 * np.sin(2 * np.pi * frequency * moments)).astype(np.float32))
        pieces.append(np.zeros(round(GAP_SECONDS * sample_rate), np.float32))
    return SoundFormat(sample_rate, encoding, channels).encode(np.concatenate(pieces))
