"""Ears without a model, for whisper's processes: the "audio" is ASCII words, which are the script.

Every word is heard as itself; all that wait are decoded at once. `voice` is no word: that it was
heard is an item of its own, at once. Some words do what they say:
`spin=0.5` (a decode of that many seconds, at full load), `closing`, `kill=11` (the process kills
itself with that signal), `exit=3`, `raise`, `memory`, `invalid`. `gate=PATH` makes the file
PATH.begun and decodes until PATH exists; `deaf=PATH` does so too, and hears no abort. An item's
data says which decode made it, and when: {"words", "pid", "begin", "end"}.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from plait.engines.whisper.decoder import Aborted
from plait.engines.whisper.ears import Aborted as AbortedFlag, Ears
from plait.engines.whisper.hearing import Decoded, Heard, Window, Word
from plait.errors import InvalidAudio, ModelLoadFailed

HERE = "tests.engines.whisper.scripted_ears"


class ScriptedListening:
    def __init__(self, params: Mapping[str, Any]) -> None:
        self._prompt = params.get("prompt") or ""
        self._text = b""
        self._words: list[str] = []
        self._finished = False
        self._decodes = 0

    def hear(self, data: bytes | memoryview, at: float) -> list[Heard]:
        *whole, self._text = (self._text + bytes(data)).split(b" ")
        words = [word.decode() for word in whole if word]
        self._words += [word for word in words if word != "voice"]
        if "invalid" in self._words:
            raise InvalidAudio("This is no audio: send words.")
        return [Heard(b'{"event":"voice"}')] * words.count("voice")

    def follow(self, now: float) -> list[Heard]:
        return []

    def finish(self) -> list[Heard]:
        self.hear(b" ", 0.0)
        self._finished = True
        return []

    def due(self) -> Window | None:
        if not self._words:
            return None
        closing = "closing" in self._words
        return Window(np.zeros(0, np.float32), 0.0, closing, None, " ".join(self._words))

    def take(self, window: Window, decoded: Decoded, now: float) -> list[Heard]:
        count = len(window.prompt.split())
        said, self._words = self._words[:count], self._words[count:]
        self._decodes += 1
        begin, end = (word.start for word in decoded.words)
        data = {"words": " ".join(said), "pid": os.getpid(), "begin": begin, "end": end}
        return [Heard(msgspec.json.encode(data), revises=self._decodes, units=len(said))]

    @property
    def backlog_seconds(self) -> float:
        return float(len(self._words))

    @property
    def over(self) -> bool:
        return self._finished and not self._words


class ScriptedEars:
    multilingual = False

    def __init__(self, aborted: AbortedFlag | None) -> None:
        self._aborted = aborted or (lambda: False)
        self.decoding = threading.Event()  # for who shares its process

    def open(self, params: Mapping[str, Any]) -> ScriptedListening:
        return ScriptedListening(params)

    def decode(self, window: Window) -> Decoded:
        begin = time.monotonic()
        self.decoding.set()
        for word in window.prompt.split():
            self._do(*word.partition("=")[::2])
        return Decoded([Word("begin", begin, begin), Word("end", time.monotonic(), 0.0)])

    def _do(self, what: str, value: str) -> None:
        match what:
            case "spin":
                self._spin(float(value))
            case "gate" | "deaf":
                Path(f"{value}.begun").touch()
                while not Path(value).exists():
                    self._spin(0.002, deaf=what == "deaf")
            case "kill":
                os.kill(os.getpid(), int(value))
            case "exit":
                os._exit(int(value))
            case "raise":
                raise RuntimeError("a secret of the peer")
            case "memory":
                raise MemoryError

    def _spin(self, seconds: float, *, deaf: bool = False) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not deaf and self._aborted():
                raise Aborted


def ears(weights: str, aborted: AbortedFlag | None) -> Ears:
    return ScriptedEars(aborted)


def refusing(weights: str, aborted: AbortedFlag | None) -> Ears:
    raise ModelLoadFailed("These weights are of no use; take others.")


def dying(weights: str, aborted: AbortedFlag | None) -> NoReturn:
    ctypes.string_at(0)  # as a library does with a damaged file
    raise AssertionError("it lives")


class KilledOnce(ScriptedEars):
    """`weights`: an empty file, in which it notes that it was killed."""

    def __init__(self, weights: str, aborted: AbortedFlag | None) -> None:
        super().__init__(aborted)
        self._note = Path(weights)

    def decode(self, window: Window) -> Decoded:
        _killed_once(self._note)
        return super().decode(window)


def _killed_once(note: Path) -> None:
    if not note.read_bytes():
        note.write_bytes(b"killed")
        os.kill(os.getpid(), signal.SIGKILL)


def killed_once(weights: str, aborted: AbortedFlag | None) -> Ears:
    _killed_once(Path(weights))
    return ScriptedEars(aborted)


def measured_killed_once(weights: str, aborted: AbortedFlag | None) -> Ears:
    return KilledOnce(weights, aborted)


class Undecoding(ScriptedEars):
    def decode(self, window: Window) -> Decoded:
        os._exit(1)


def undecoding(weights: str, aborted: AbortedFlag | None) -> Ears:
    return Undecoding(aborted)
