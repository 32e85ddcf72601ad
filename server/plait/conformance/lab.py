"""What a case is given: connections that clean up after themselves, and what the server offers.

Prompts are plain words, and long answers are only asked for, never counted on: how fast the model
is nobody knows. Does NOT know how a verdict is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import struct
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from plait.conformance.cases import Broken, Skipped
from plait.conformance.heard import Heard, Message
from plait.conformance.media import audio_in
from plait.conformance.peer import Peer
from plait.conformance.target import Target

STORY = "Tell a long story about a lighthouse keeper, with many details."
SENTENCE = "The keeper of the lighthouse wrote down every ship that passed. "
LONG_TOKENS = 1000
SHORT_TOKENS = 8
PREFILL_WORDS = 700
SAMPLE_RATE = 16_000


@dataclass(frozen=True, slots=True)
class Settings:
    """`prompt`: a chat that this server answers at length."""

    prompt: str = STORY
    seed: int = 1


@dataclass(slots=True)
class Lab:
    """For one case. `peers`: all its connections; `notes`: what was seen."""

    target: Target
    settings: Settings
    welcome: Message
    random: random.Random
    peers: list[Peer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stops: list[Message] = field(default_factory=list)
    outside_ms: list[float] = field(default_factory=list)

    @property
    def limits(self) -> Mapping[str, Any]:
        limits: Mapping[str, Any] = self.welcome["limits"]
        return limits

    @property
    def methods(self) -> Mapping[str, Any]:
        methods: Mapping[str, Any] = self.welcome["methods"]
        return methods

    @property
    def any_method(self) -> str:
        """The one to ask for where any will do."""
        offered = [
            name for name in ("chat", "synthesize", "embed", "transcribe") if name in self.methods
        ]
        if not offered:
            raise Skipped("the server offers no method of plait.v1")
        return offered[0]

    def note(self, text: str) -> None:
        self.notes.append(text)

    @contextlib.asynccontextmanager
    async def connect(self, target: Target | None = None, **options: Any) -> AsyncIterator[Peer]:
        """Connected and welcomed; on leaving what still runs is cancelled."""
        peer = Peer(await (target or self.target).connect(**options), self.target.seconds)
        self.peers.append(peer)
        try:
            await peer.until(lambda: peer.welcome, "`welcome` (§1)")
            yield peer
        finally:
            await peer.leave()

    # --- what to ask for -------------------------------------------------------------------------

    def chat(self, max_tokens: int = LONG_TOKENS, **params: Any) -> Message:
        """Params of a chat that is long unless `max_tokens` says otherwise."""
        said = [{"role": "user", "content": self.settings.prompt}]
        return {"messages": said, "max_tokens": max_tokens, "seed": 7} | params

    def long_prompt(self, words: int = PREFILL_WORDS) -> Message:
        """Params of a chat with a long prompt, different each time so that no cache knows it."""
        salt = " ".join(str(self.random.randrange(10**6)) for _ in range(8))
        filler = (SENTENCE * (words // 11)).strip()
        said = [{"role": "user", "content": f"{salt} {filler} {self.settings.prompt}"}]
        return {"messages": said, "max_tokens": LONG_TOKENS}

    def short(self, method: str) -> Message:
        """Params of something small that ends by itself, without input."""
        return {
            "chat": self.chat(SHORT_TOKENS),
            "synthesize": {"text": "Hello there."},
            "embed": {"texts": ["one", "two", "three"]},
            "transcribe": {"sample_rate": SAMPLE_RATE},
        }[method]

    def long(self, method: str) -> Message:
        """Params of much work in many items."""
        return {
            "chat": self.chat(),
            "synthesize": {"text": SENTENCE * 40},
            "embed": {"texts": [f"{SENTENCE * 4} {n}" for n in range(400)]},
            "transcribe": {"sample_rate": SAMPLE_RATE},
        }[method]

    def hum(self, seconds: float, rate: int = SAMPLE_RATE) -> bytes:
        """A quiet hum, pcm_s16le mono: audio nobody need find speech in."""
        samples = (
            int(900 * math.sin(2 * math.pi * 110 * at / rate)) for at in range(int(rate * seconds))
        )
        return b"".join(struct.pack("<h", sample) for sample in samples)

    # --- common steps ----------------------------------------------------------------------------

    async def streaming(self, peer: Peer, method: str = "chat", **fields: Any) -> Heard:
        """A long stream that has sent an item. Skipped when it ended before it could be asked."""
        stream = peer.open(method, self.long(method), **fields)
        await peer.items(stream, 1)
        self.must_run(stream)
        return stream

    def must_run(self, stream: Heard) -> None:
        """Raises Broken for a failure, Skipped for an answer that was too short."""
        if stream.ended == "done":
            raise Skipped("the answer ended too soon; give --prompt one that is answered at length")
        if stream.ended:
            raise Broken("a stream that runs", f"{stream}: {stream.error or stream.terminal}")

    async def cancelled(self, peer: Peer, stream: Heard) -> Message:
        """Its terminal after a cancel by the client; `done` only where it was faster."""
        await peer.ended(stream)
        terminal = stream.terminal or {}
        if stream.ended == "done":
            raise Skipped("done was sent before the cancel was read (R2)")
        if stream.ended != "cancelled" or terminal.get("by") != "client":
            raise Broken("`cancelled {by: client}`", f"{stream} {terminal}")
        self.stops.append(terminal)
        return terminal

    def stopping(self) -> list[str]:
        """What the cancels of this case came to."""
        times = [stop["stop_ms"] for stop in self.stops if stop.get("stop_ms") is not None]
        late = sum(stop.get("released") is False for stop in self.stops)
        return [
            *([f"stop_ms {_span(times)}"] if times else []),
            *([f"{_span(self.outside_ms)} ms outside"] if self.outside_ms else []),
            *([f"{late} not released within 100 ms, and said so"] if late else []),
        ]

    async def works(self, peer: Peer) -> None:
        """A small stream on this connection is served."""
        method = self.any_method
        stream = peer.open(method, self.short(method))
        if method == "transcribe":
            peer.end(stream)
        await peer.ended(stream)
        if stream.ended != "done":
            raise Broken("the connection serves a new stream", f"{stream}: {stream.error}")

    async def quiet(self, peer: Peer, stream: Heard, seconds: float) -> None:
        """Let that time pass while nothing is asked; Broken when the stream ends meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await peer.until(lambda: stream.ended, "", seconds + 60)
        self.must_run(stream)

    async def fails(self, peer: Peer, stream: Heard, code: str, param: str | None = None) -> None:
        """Broken unless the stream ends as that error, naming that field."""
        await peer.ended(stream)
        wanted = f"`error {code}`" + (f", param {param}" if param else "")
        if stream.ended != "error" or stream.error.get("code") != code:
            raise Broken(wanted, f"{stream}: {stream.error}")
        if param is not None and stream.error.get("param") != param:
            raise Broken(wanted, str(stream.error))

    async def refuses(
        self,
        peer: Peer,
        method: str,
        params: Message,
        code: str,
        param: str | None = None,
        **fields: Any,
    ) -> Heard:
        """Broken unless an open is `rejected` with that code, naming that field (or into it)."""
        stream = peer.open(method, params, **fields)
        await peer.ended(stream)
        asked = {name: value for name, value in fields.items() if name != "id"} or params
        wanted = f"`rejected {code}`" + (f", param {param}" if param else "")
        wanted += f" for {str(asked)[:120]}"
        if stream.ended != "rejected" or stream.error.get("code") != code:
            raise Broken(wanted, f"{stream}: {stream.error}")
        if param is not None and not str(stream.error.get("param")).startswith(param):
            raise Broken(wanted, str(stream.error))
        return stream

    # --- input -----------------------------------------------------------------------------------

    def audio(self, stream: Heard, payload: bytes) -> bytes:
        return audio_in(stream.id, payload)

    @property
    def itemised(self) -> str:
        """A method whose long streams have many items, without input."""
        for name in ("chat", "embed", "synthesize"):
            if name in self.methods:
                return name
        raise Skipped("only transcriptions are offered")

    async def pause(self, peer: Peer, seconds: float) -> None:
        """Let that time pass; Broken when the connection closes meanwhile."""
        await asyncio.sleep(seconds)
        await peer.barrier()


def _span(numbers: list[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:.1f}" if low == high else f"{low:.1f} … {high:.1f}"
