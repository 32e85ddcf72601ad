"""What clients of a soak ask: openings of every method, with their input, and bad ones.

Frames as they go on the wire, by a random generator alone: the same seed asks the same. Scripted
engines find their script in the text; real ones get little work, so that many streams live and
end. Does NOT know sockets nor when a stream is left.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from plait.bench import prompts
from plait.bench.clips import shipped_clip
from plait.engines.scripted.hearing import WORDS, recite
from plait.wire.codec import BinaryKind, encode_binary

Frame = str | bytes

LONG_SHARE, LONG_WORDS = 0.1, 300  # of chats: something to prefill
MOST_TEXTS = 20
HEARD_SECONDS = 2.4
HEARD_RATE = 16_000
PIECE_BYTES = 32_000
GARBAGE: tuple[Frame, ...] = ("no json", '{"type":"hello","id":1}', b"\1\2\3", '{"type":"ack"}')
"""Names no stream: the socket closes 4400."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`ends`: by itself; another one ends by a cancel only."""

    frames: list[Frame]
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Asking:
    """`scripted`: method -> whether a scripted engine is behind it. Only these are asked for."""

    scripted: Mapping[str, bool]

    def opening(self, id: int, window: int, rng: random.Random) -> tuple[str, Asked]:
        """A method with a good opening of that id."""
        method = rng.choice(sorted(self.scripted))
        return method, _OPENINGS[method](id, window, rng, self.scripted[method])

    def bad_opening(self, id: int, rng: random.Random) -> tuple[str, Asked]:
        """One that is `rejected`, and why does not matter."""
        method = rng.choice(sorted(self.scripted))
        fields: dict[str, Any] = rng.choice(
            (
                {"params": {"model": "nobody's"}},
                {"params": []},
                {"window": 10_000},
                {"deadline_ms": -1},
                {"params": {"messages": 7, "sample_rate": "x", "text": 7, "texts": 7}},
            )
        )
        asked = "paint" if rng.random() < 0.1 else method
        return method, Asked([_open(id, asked, **fields)])


def bad_message(id: int, rng: random.Random) -> Frame:
    """Names a stream and is at fault: it ends that one with an error if it still lives."""
    return rng.choice(
        (
            _say("ack", id, seq=2**31),
            _say("ack", id, seq="x"),
            _say("input", id, text="a", texts=["a"]),
            _say("cancel", id, heard_ms=[]),
            encode_binary(BinaryKind.AUDIO_OUT, 0, id, 0, 0, b""),
        )
    )


# --- openings by method ------------------------------------------------------------------------


def _chat(id: int, window: int, rng: random.Random, scripted: bool) -> Asked:
    number = rng.randrange(10**9)
    if scripted:
        script = f"tokens={rng.randint(0, 60)} step_ms=2 Story {number}."
        messages, params = [{"role": "user", "content": script}], {}
    else:
        long = rng.random() < LONG_SHARE
        messages = prompts.long_prompt(number, LONG_WORDS) if long else prompts.story(number)
        params = {"max_tokens": rng.randint(1, 48), "seed": number}
    return Asked([_open(id, "chat", window=window, params={"messages": messages, **params})])


def _transcription(id: int, window: int, rng: random.Random, scripted: bool) -> Asked:
    sound = _recited() if scripted else _spoken()
    audio = sound[: rng.randrange(0, len(sound), 6400)]
    frames: list[Frame] = [
        _open(id, "transcribe", window=window, params={"sample_rate": HEARD_RATE})
    ]
    frames += [
        encode_binary(BinaryKind.AUDIO_IN, 0, id, 0, 0, audio[at : at + PIECE_BYTES])
        for at in range(0, len(audio), PIECE_BYTES)
    ]
    ends = rng.random() < 0.8
    return Asked([*frames, _say("end", id)] if ends else frames, ends)


def _synthesis(id: int, window: int, rng: random.Random, scripted: bool) -> Asked:
    sentences = rng.randint(1, 12 if scripted else 3)
    text = ("step_ms=2 word_ms=20 " if scripted else "") + "One two three. " * sentences
    if rng.random() < 0.5:
        return Asked([_open(id, "synthesize", window=window, params={"text": text})])
    opened = _open(id, "synthesize", window=window)
    return Asked([opened, _say("input", id, text=text), _say("end", id)])


def _embedding(id: int, window: int, rng: random.Random, scripted: bool) -> Asked:
    texts = [f"text {rng.random()}" for _ in range(rng.randint(0, MOST_TEXTS))]
    texts = ["step_ms=2", *texts] if scripted else texts
    params: dict[str, Any] = {"encoding": "json"} if rng.random() < 0.3 else {}
    if rng.random() < 0.5:
        return Asked([_open(id, "embed", window=window, params=params | {"texts": texts})])
    opened = _open(id, "embed", window=window, params=params)
    return Asked([opened, _say("input", id, texts=texts), _say("end", id)])


_OPENINGS: dict[str, Callable[[int, int, random.Random, bool], Asked]] = {
    "chat": _chat,
    "transcribe": _transcription,
    "synthesize": _synthesis,
    "embed": _embedding,
}
METHODS = tuple(_OPENINGS)


@cache
def _recited() -> bytes:
    return recite(" ".join(WORDS[:12]), HEARD_RATE)


@cache
def _spoken() -> bytes:
    clip = shipped_clip("jfk")
    assert clip.sample_rate == HEARD_RATE
    return clip.beginning(HEARD_SECONDS).pcm


def _open(id: int, method: str, **fields: Any) -> str:
    return json.dumps({"type": "open", "id": id, "method": method} | fields)


def _say(type: str, id: int, **fields: Any) -> str:
    return json.dumps({"type": type, "id": id} | fields)
