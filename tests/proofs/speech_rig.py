"""What proofs of speech share: long texts, whole recordings, and the worker that speaks."""

# ruff: noqa: RUF001 -- texts in other languages
from __future__ import annotations

import itertools
from collections.abc import AsyncIterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from plait.client import Client, Mark
from plait.speech.front import FrontEnd
from tests.live.server import LiveServer
from tests.proofs.fingerprint import Fingerprint, fingerprint

SAMPLE_RATE = 24_000
LAST = {
    "en": "The lamp went out at last.",
    "ja": "最後に、灯りが消えました。",
    "zh": "最后，灯终于灭了。",
}
VOICES = {"en": "af_heart", "ja": "jf_alpha", "zh": "zf_xiaobei"}
_SENTENCES = {
    "en": (
        "The keeper of the lighthouse wrote down every ship that passed.",
        "On 4 May there were 27 of them, and on the next day none at all.",
        "He wondered, as he often did, where they had come from and where they were going.",
        "Fog came in from the sea.",
        "Was there anybody out there who could see his light?",
        "A letter for Dr. Brown had been lying on the table for weeks; nobody had asked for it.",
    ),
    "ja": (
        "灯台の番人は、通り過ぎる船をすべて書き留めていました。",
        "五月四日には二十七隻、次の日には一隻もありませんでした。",
        "海から霧が入ってきました。",
        "彼の光を見ることができる人は、そこにいたのでしょうか。",
    ),
    "zh": (
        "灯塔的看守人把每一艘经过的船都记了下来。",
        "五月四日有二十七艘，第二天一艘也没有。",
        "雾从海上飘了进来。",
        "外面有没有人能看见他的灯光呢？",
    ),
}
_UNBROKEN = (
    "the keeper of the lighthouse wrote down every ship that passed and wondered where they had"
    " come from while fog came in from the sea and the gulls slept on the rocks below"
)


def paragraph(characters: int, language: str = "en") -> str:
    """One paragraph of about that length; `LAST` is its last sentence."""
    space = " " if language == "en" else ""
    text = ""
    for sentence in itertools.cycle(_SENTENCES[language]):
        if len(text) + len(sentence) + len(LAST[language]) > characters:
            return text + LAST[language]
        text += sentence + space
    raise AssertionError("endless")


def unbroken(characters: int) -> str:
    """Whole words and no punctuation."""
    words = (_UNBROKEN + " ") * (characters // len(_UNBROKEN) + 1)
    return words[:characters].rsplit(" ", 1)[0]


@dataclass
class Spoken:
    """A whole synthesis: samples, marks, and when each chunk (seconds after the open) came."""

    samples: NDArray[np.int16]
    marks: list[Mark]
    arrivals: list[float] = field(default_factory=list)
    borders: list[int] = field(default_factory=list)  # first samples of all chunks but the first

    @property
    def seconds(self) -> float:
        return len(self.samples) / SAMPLE_RATE

    @property
    def text(self) -> str:
        return "".join(mark.text for mark in self.marks)

    def sound_of(self, mark: Mark) -> Fingerprint:
        first, end = (round(at * SAMPLE_RATE) for at in (mark.start, mark.end))
        return fingerprint(self.samples[first:end])


async def speak(client: Client, text: str | AsyncIterable[str], **options: Any) -> Spoken:
    """Read a synthesis to its end; its chunks are contiguous."""
    begin = monotonic()
    parts: list[NDArray[np.int16]] = []
    spoken = Spoken(np.zeros(0, np.int16), [])
    position = 0
    async with client.synthesize(text, marks=True, **options) as speech:
        async for chunk in speech:
            assert chunk.start_sample == position
            spoken.marks += [chunk.mark] if chunk.mark else []
            if len(chunk.audio):
                spoken.arrivals.append(monotonic() - begin)
                spoken.borders += [position] if position else []
                parts.append(np.frombuffer(chunk.audio, "<i2"))
                position += len(parts[-1])
    spoken.samples = np.concatenate(parts)
    return spoken


def phonemes_of(front: FrontEnd, text: str, language: str) -> list[str]:
    """Segment by segment, as the engine gets them."""
    spoken = front.open(language)
    spoken.feed(text)
    spoken.finish()
    found = []
    while not spoken.done:
        if (segment := spoken.next_segment()) is not None:
            found.append(segment.phonemes)
    return [one for one in found if one]


async def first_audio_seconds(client: Client, text: str) -> float:
    """From the open to its first audio; what remains is cancelled."""
    begin = monotonic()
    async with client.synthesize(text) as speech:
        await anext(speech)
        return monotonic() - begin


def speaker(server: LiveServer) -> psutil.Process:
    """The worker that speaks."""
    ready = server.wait_for_line(r'"kokoro-82m".*"pid": (\d+).*worker\.ready')
    return psutil.Process(int(ready[1]))
