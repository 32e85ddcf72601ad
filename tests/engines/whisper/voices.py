"""Speech for ears without a model: a word is 0.3 s of a level, and the level says which word.

`LoudIsSpeech` and `ReadsLevels` are a detector and a decoder that understand it perfectly, so what
goes missing or comes twice was lost or doubled by `Hearing`. Words that are multiples of ten end a
sentence. `listen` plays the part of the child process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from plait.engines.whisper.hearing import Decoded, Heard, Hearing, Window, Word
from plait.engines.whisper.words import SAMPLE_RATE, Floats

WORD_SECONDS = 0.3
GAP_SECONDS = 0.04
FRAME_SECONDS = 0.1
MOST_DECODES = 10_000

PARAMS = {"sample_rate": SAMPLE_RATE}


def said(word: int) -> str:
    return f"w{word}." if word % 10 == 0 else f"w{word}"


def samples_of(*script: int | float) -> Floats:
    """An int is a word (1 … 90), a float so many seconds of silence."""
    parts: list[Floats] = []
    for part in script:
        if isinstance(part, int):
            parts.append(np.full(int(WORD_SECONDS * SAMPLE_RATE), part / 100, np.float32))
            parts.append(np.zeros(int(GAP_SECONDS * SAMPLE_RATE), np.float32))
        else:
            parts.append(np.zeros(int(part * SAMPLE_RATE), np.float32))
    return np.concatenate(parts)


def speak(*script: int | float) -> bytes:
    """`samples_of` as PCM16."""
    return np.round(samples_of(*script) * 32767).astype("<i2").tobytes()


class LoudIsSpeech:
    def __call__(self, frame: Floats) -> float:
        return 0.99 if float(frame.sum()) > 1.0 else 0.01


class ReadsLevels:
    """Hears a word of which half is in the window."""

    def __init__(self) -> None:
        self.windows: list[Window] = []

    def __call__(self, window: Window) -> Decoded:
        self.windows.append(window)
        levels = np.round(np.abs(window.samples) * 100).astype(int)
        edges = np.flatnonzero(np.diff(levels)) + 1
        words = []
        for begin, end in zip([0, *edges], [*edges, len(levels)], strict=True):
            if levels[begin] and end - begin >= WORD_SECONDS * SAMPLE_RATE / 2:
                times = begin / SAMPLE_RATE, end / SAMPLE_RATE
                words.append(Word(" " + said(int(levels[begin])), *times))
        return Decoded(words)


def hearing(**params: Any) -> Hearing:
    return Hearing(PARAMS | params, LoudIsSpeech(), multilingual=False)


def cut(pcm: bytes, sizes: Iterable[int]) -> list[bytes]:
    """`pcm` in frames of these sizes, the last one whatever is left."""
    frames, position = [], 0
    for size in sizes:
        frames.append(pcm[position : position + size])
        position += size
    return [*frames, pcm[position:]]


def frames_of(pcm: bytes, seconds: float = FRAME_SECONDS) -> list[bytes]:
    size = int(seconds * SAMPLE_RATE) * 2
    return [pcm[i : i + size] for i in range(0, len(pcm), size)]


def feed(ears: Hearing, data: bytes, now: float) -> list[Heard]:
    """Heard while nothing is decoded."""
    return ears.hear(data, now) + ears.follow(now)


def listen(
    ears: Hearing,
    frames: Sequence[bytes],
    decode: Callable[[Window], Decoded],
    delay: int = 0,
    step: float = FRAME_SECONDS,
    *,
    deaf: bool = False,
) -> list[dict[str, Any]]:
    """Everything heard of `frames`, one per `step`; a decode is done `delay` frames later, and what
    was heard meanwhile is followed then. `deaf`: nothing is heard meanwhile, but after it."""
    heard: list[Heard] = []
    unheard: list[tuple[bytes, float]] = []
    window: Window | None = None
    due_at = 0
    for number, frame in enumerate(frames):
        unheard.append((frame, number * step))
        while unheard and not (deaf and window is not None):
            heard += ears.hear(*unheard.pop(0))
        if window is not None and number >= due_at:
            heard += ears.take(window, decode(window), number * step)
            window = None
        if window is None:
            for late in unheard:
                heard += ears.hear(*late)
            unheard.clear()
            heard += ears.follow(number * step)
        if window is None and (window := ears.due()) is not None:
            due_at = number + delay
    for late in unheard:
        heard += ears.hear(*late)
    end = len(frames) * step
    heard += ears.follow(end) + ears.finish()
    for _ in range(MOST_DECODES):
        if ears.over:
            break
        window = ears.due()
        assert window is not None, "neither over nor anything due"
        heard += ears.take(window, decode(window), end)
    assert ears.over
    return [json.loads(item.data) for item in heard]


def segments(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item["segment"] for item in items if "segment" in item]


def finals(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [segment for segment in segments(items) if segment["is_final"]]


def text(items: Sequence[dict[str, Any]]) -> str:
    return " ".join(segment["text"] for segment in finals(items) if segment["text"])
