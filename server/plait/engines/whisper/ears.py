"""What a process needs to listen: loaded once, by name, then used for one stream after the other.

In the zygote it is loaded before any fork, so that children share its memory. Whisper's own ears
are made by `whisper_ears`; tests name others. Does NOT know where audio comes from.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from plait.engines.whisper.decoder import Decoder
from plait.engines.whisper.detector import SileroDetector
from plait.engines.whisper.hearing import Decoded, Heard, Hearing, Window

WHISPER = "plait.engines.whisper.ears:whisper_ears"

# Asked in the midst of a decode, by the thread that decodes.
Aborted = Callable[[], bool]


class Listening(Protocol):
    """One stream's ears; see `Hearing`."""

    def hear(self, data: bytes | memoryview, at: float) -> list[Heard]:
        """Also while a window of it is decoded."""

    def follow(self, now: float) -> list[Heard]: ...

    def finish(self) -> list[Heard]: ...

    def due(self) -> Window | None: ...

    def take(self, window: Window, decoded: Decoded, now: float) -> list[Heard]: ...

    @property
    def backlog_seconds(self) -> float: ...

    @property
    def over(self) -> bool: ...


class Ears(Protocol):
    @property
    def multilingual(self) -> bool: ...

    def open(self, params: Mapping[str, Any]) -> Listening:
        """`params`: TranscribeParams as a plain dict, defaults left out."""

    def decode(self, window: Window) -> Decoded:
        """In a thread of its own, and others run meanwhile.

        Raises GenerationFailed, or Aborted (see `decoder`)."""


EarsFactory = Callable[[str, Aborted | None], Ears]


class WhisperEars:
    """Raises ModelLoadFailed."""

    def __init__(self, weights: str, aborted: Aborted | None) -> None:
        self._decoder = Decoder(weights, threads=1, aborted=aborted)
        # Made ahead: a forked child then needs no time for it. Whoever is second makes its own.
        self._spare: SileroDetector | None = SileroDetector()

    @property
    def multilingual(self) -> bool:
        return self._decoder.multilingual

    def open(self, params: Mapping[str, Any]) -> Hearing:
        detector, self._spare = self._spare or SileroDetector(), None
        return Hearing(params, detector, multilingual=self.multilingual)

    def decode(self, window: Window) -> Decoded:
        return self._decoder.decode(window)


def whisper_ears(weights: str, aborted: Aborted | None) -> Ears:
    return WhisperEars(weights, aborted)


def load_ears(name: str, weights: str, aborted: Aborted | None) -> Ears:
    """`name`: "module:function", from the engine's own options. Raises ModelLoadFailed."""
    module, _, factory = name.partition(":")
    make: EarsFactory = getattr(importlib.import_module(module), factory)
    return make(weights, aborted)
