"""Peers for tests: an engine the test plays by hand, and a socket whose other end is the test.

They satisfy the same protocols as the real ones (`EngineHandle`, `Socket`) and are scripted per
test; nothing of Plait itself is replaced.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from plait.engines.base import (
    Cancel,
    Command,
    Consumed,
    EngineInfo,
    Failed,
    Fault,
    Feed,
    Finished,
    FinishInput,
    Item,
    JobEvent,
    Pause,
    Prepare,
    Prepared,
    Released,
    Resume,
    Start,
    Starved,
)
from plait.errors import EngineCrashed, GenerationFailed
from plait.scheduling.scheduler import Scheduler
from plait.sessions.session import SocketClosed
from plait.wire.codec import BinaryFlags, BinaryKind, decode_binary, encode_binary
from plait.wire.messages import Format

USAGE = {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 0}


SPEECH_USAGE = {"characters": 5, "audio_ms": 100}
SPEECH_FORMAT = Format("pcm_s16le", 24000, 1)
LISTENING_USAGE = {"audio_ms": 1200}
EMBED_USAGE = {"texts": 2, "tokens": 9}
ROWS_FORMAT = Format("f32", dims=3)


def speech_info(slots: int = 2) -> EngineInfo:
    return EngineInfo("fake", "m", ["synthesize"], slots, 0, 0, 0, "freed", SPEECH_FORMAT)


def listening_info(slots: int = 2) -> EngineInfo:
    return EngineInfo("fake", "m", ["transcribe"], slots, 0, 0, 0, "freed")


def embed_info(slots: int = 2) -> EngineInfo:
    return EngineInfo("fake", "m", ["embed"], slots, 0, 0, 0, "freed", ROWS_FORMAT)


def info(slots: int = 2, budget_bytes: int = 1000) -> EngineInfo:
    return EngineInfo("fake", "m", ["chat"], slots, 100, 50, budget_bytes, "freed")


@dataclass
class PlayedEngine:
    """Answers `Prepare` at once; everything else happens when the test says so.

    With `release_after` set, a cancelled job is released that much later by itself.
    """

    scheduler: Scheduler
    clock: Callable[[], float]
    reserve_bytes: int = 100
    usage: dict[str, int] = field(default_factory=lambda: dict(USAGE))
    finished_usage: dict[str, int] = field(
        default_factory=lambda: {**USAGE, "completion_tokens": 1}
    )
    release_after: float | None = 0.0
    sent: list[Command] = field(default_factory=list)
    running: dict[int, bool] = field(default_factory=dict)  # job -> paused
    killed: list[str] = field(default_factory=list)

    def send(self, command: Command) -> None:
        self.sent.append(command)
        loop = asyncio.get_running_loop()
        match command:
            case Prepare():
                answer = Prepared(command.job, 3, self.reserve_bytes, 20)
                loop.call_soon(self._emit, answer)
            case Start():
                self.running[command.job] = False
            case Pause():
                self.running[command.job] = True
            case Resume():
                self.running[command.job] = False
            case Cancel() if command.job in self.running and self.release_after is not None:
                loop.call_later(self.release_after, self.release, command.job)

    def kill(self, reason: str) -> None:
        self.killed.append(reason)
        self.crash()

    @property
    def computing(self) -> int:
        return sum(not paused for paused in self.running.values())

    def items(self, job: int, count: int = 1) -> None:
        for index in range(count):
            self._emit(Item(job, b'{"content":"t%d"}' % index))

    def mark(self, job: int, text: str, start: float, end: float) -> None:
        """A mark whose words share its time evenly."""
        words = text.split()
        each = (end - start) / max(1, len(words))
        timed = [
            {"text": word, "start": start + i * each, "end": start + (i + 1) * each}
            for i, word in enumerate(words)
        ]
        mark = {"text": text, "start": start, "end": end, "words": timed}
        self._emit(Item(job, msgspec.json.encode({"mark": mark}), units=0))

    def audio(self, job: int, milliseconds: int, *, at: int = 0, flags: int = 0) -> None:
        """One frame of 24 kHz PCM16 that begins at millisecond `at`."""
        silence = bytes(48 * milliseconds)
        self._emit(Item(job, silence, milliseconds, kind=1, flags=flags, aux=at * 24))

    def segment(
        self, job: int, index: int, revision: int, text: str = "", *, final: bool = False
    ) -> None:
        """100 ms of work for one more revision of a segment."""
        segment = {"index": index, "revision": revision, "text": text, "is_final": final}
        data = msgspec.json.encode({"segment": segment})
        self._emit(Item(job, data, units=100, revises=index + 1))

    def rows(self, job: int, first: int, count: int = 1, *, cut: bool = False) -> None:
        """One frame of `count` rows of three dimensions, of the texts from `first` on."""
        data = struct.pack(f"<{3 * count}f", *range(3 * first, 3 * (first + count)))
        flags = BinaryFlags.TRUNCATED if cut else BinaryFlags.NONE
        self._emit(Item(job, data, count, BinaryKind.ROWS, flags, first))

    def answer(self, job: int, index: int, *, cut: bool = False, **answer: Any) -> None:
        """One JSON item: an `embedding`, or an `error`."""
        data = {"index": index} | answer | ({"truncated": True} if cut else {})
        flags = BinaryFlags.TRUNCATED if cut else BinaryFlags.NONE
        self._emit(Item(job, msgspec.json.encode(data), flags=flags, aux=index))

    def consume(self, job: int, size_bytes: int) -> None:
        self._emit(Consumed(job, size_bytes))

    def starve(self, job: int, *, crossed: int = 0, keeps_bytes: int = 0) -> None:
        """It waits for input; the last `crossed` commands had not reached it."""
        told = [c for c in self.sent if isinstance(c, Feed | FinishInput) and c.job == job]
        self._emit(Starved(job, keeps_bytes, len(told) - crossed))

    def fed(self, job: int) -> str:
        """All the text this job was fed, in order."""
        feeds = [c for c in self.sent if isinstance(c, Feed) and c.job == job]
        return "".join("".join(feed.texts or ()) for feed in feeds)

    def fed_texts(self, job: int) -> list[str]:
        """All the texts this job was fed, in order."""
        feeds = [c for c in self.sent if isinstance(c, Feed) and c.job == job]
        return [text for feed in feeds for text in feed.texts or ()]

    def fed_audio(self, job: int) -> bytes:
        """All the audio this job was fed, in order."""
        feeds = [c for c in self.sent if isinstance(c, Feed) and c.job == job]
        return b"".join(feed.audio or b"" for feed in feeds)

    def finish(self, job: int) -> None:
        self._emit(Finished(job, "stop", dict(self.finished_usage)))
        self.release(job)

    def fail(self, job: int) -> None:
        self._emit(Failed(job, Fault.of(GenerationFailed("it broke")), self.usage))
        self.release(job)

    def release(self, job: int, wasted: int = 0) -> None:
        if self.running.pop(job, None) is not None:
            self._emit(Released(job, self.clock(), wasted, self.usage))

    def crash(self) -> None:
        self.running.clear()
        self.scheduler.on_worker_lost(EngineCrashed("the worker died"))

    def _emit(self, event: JobEvent) -> None:
        self.scheduler.on_events([event])


class MemorySocket:
    """A session's socket; the test is the peer. `reading` False is a peer that stopped reading."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.binary: list[bytes] = []
        self.story: list[dict[str, Any]] = []  # both, in order; binary frames as their `item`
        self.closed: tuple[int, str] | None = None
        self._frames: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._reading = asyncio.Event()
        self._reading.set()
        self._gone = False

    # --- what the session uses -----------------------------------------------------------------

    async def receive(self) -> str | bytes:
        frame = await self._frames.get()
        if frame is None:
            raise SocketClosed
        return frame

    async def writable(self) -> bool:
        return not self._reading.is_set() and await self._reading.wait()

    def send(self, frames: Sequence[str | bytes]) -> None:
        if self._gone:
            raise SocketClosed
        for frame in frames:
            if isinstance(frame, str):
                self.received.append(msgspec.json.decode(frame))
                self.story.append(self.received[-1])
            else:
                self.binary.append(frame)
                header = decode_binary(frame)
                self.story.append({"type": "item", "id": header.id, "seq": header.seq})

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
        self.hang_up()

    # --- what the test uses --------------------------------------------------------------------

    def say(self, frame: dict[str, Any] | str | bytes) -> None:
        encoded = msgspec.json.encode(frame).decode() if isinstance(frame, dict) else frame
        self._frames.put_nowait(encoded)

    def open(self, id: int, **fields: Any) -> None:
        params = {"messages": [{"role": "user", "content": "hi"}]}
        self.say({"type": "open", "id": id, "method": "chat", "params": params} | fields)

    def speak(self, id: int, text: str | None = None, **fields: Any) -> None:
        """Open a synthesis, of `text` or of input to come; `params` are merged in."""
        params = ({} if text is None else {"text": text}) | fields.pop("params", {})
        self.say({"type": "open", "id": id, "method": "synthesize", "params": params} | fields)

    def transcribe(self, id: int, **fields: Any) -> None:
        """Open a transcription of 16 kHz mono PCM16; `params` are merged in."""
        params = {"sample_rate": 16_000} | fields.pop("params", {})
        self.say({"type": "open", "id": id, "method": "transcribe", "params": params} | fields)

    def embed(self, id: int, texts: list[str] | None = None, **fields: Any) -> None:
        """Open an embedding, of `texts` or of input to come; `params` are merged in."""
        params = ({} if texts is None else {"texts": texts}) | fields.pop("params", {})
        self.say({"type": "open", "id": id, "method": "embed", "params": params} | fields)

    def feed_texts(self, id: int, *texts: str) -> None:
        self.say({"type": "input", "id": id, "texts": list(texts)})

    def hear(self, id: int, audio: bytes, flags: int = 0) -> None:
        """Send it as one `audio_in` frame."""
        self.say(encode_binary(BinaryKind.AUDIO_IN, flags, id, 0, 0, audio))

    def feed(self, id: int, text: str) -> None:
        self.say({"type": "input", "id": id, "text": text})

    def end(self, id: int) -> None:
        self.say({"type": "end", "id": id})

    def hang_up(self) -> None:
        self._gone = True
        self._reading.set()
        self._frames.put_nowait(None)

    def stop_reading(self) -> None:
        self._reading.clear()

    def read_on(self) -> None:
        self._reading.set()

    def of(self, id: int) -> list[dict[str, Any]]:
        return [message for message in self.received if message.get("id") == id]

    def segments(self, id: int) -> list[dict[str, Any]]:
        items = [message["data"] for message in self.of(id) if message["type"] == "item"]
        return [data["segment"] for data in items if "segment" in data]

    def types(self, id: int) -> list[str]:
        return [message["type"] for message in self.of(id)]

    def last(self, id: int) -> dict[str, Any]:
        return self.of(id)[-1]
