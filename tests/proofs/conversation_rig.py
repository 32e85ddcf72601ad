"""What proofs of a spoken conversation share: a microphone that runs, and who talks into it; an
answer that is spoken as it is written; everything that came on the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import monotonic

from plait.bench.clips import Utterance
from plait.client import AudioChunk, ChatStream, Client, Mark, Segment, SpeechEvent, SpeechStream
from plait.client.transcription import TranscriptionStream
from plait.engines.whisper.detector import FRAME_SAMPLES
from plait.engines.whisper.endpoint import STARTING_FRAMES
from plait.wire.codec import decode_binary, decode_server
from tests.proofs.rig import ENDLESS
from tests.proofs.sizes import FULL
from tests.proofs.transcribe_rig import CLIP, SAMPLE_RATE

FRAME_SECONDS = 0.02
FRAME_BYTES = int(FRAME_SECONDS * SAMPLE_RATE) * 2
SPEECH_RATE = 24_000
# The closing decode of a stretch begins within such a pause, and the next stretch before its end.
PIECE_SECONDS, PAUSE_SECONDS = 1.5, 0.35
WAIT_SECONDS = 60.0
MOST_TOKENS = 1000


class Microphone:
    """Real time, by a schedule that does not drift: what is said into it, else silence."""

    def __init__(self) -> None:
        self._voice = bytearray()
        self._on = True
        self._began = 0.0

    def say(self, pcm: bytes) -> None:
        """After what is still being said."""
        self._voice += pcm

    def switch_off(self) -> None:
        """Once all is said."""
        self._on = False

    def late_ms(self, onset: SpeechEvent, told_at: float) -> float:
        """After the detector had all it wants to hear before it says that somebody speaks."""
        known_at = self._began + onset.at + STARTING_FRAMES * FRAME_SAMPLES / SAMPLE_RATE
        return 1000 * (told_at - known_at)

    async def frames(self) -> AsyncIterator[bytes]:
        self._began = monotonic()
        number = 0
        while self._on or self._voice:
            number += 1
            await asyncio.sleep(max(0.0, self._began + number * FRAME_SECONDS - monotonic()))
            frame = bytes(self._voice[:FRAME_BYTES])
            del self._voice[:FRAME_BYTES]
            yield frame.ljust(FRAME_BYTES, b"\0")


@dataclass
class Listener:
    """Reads the transcription to its end; says what was heard when it comes."""

    stream: TranscriptionStream[Segment | SpeechEvent]
    finals: asyncio.Queue[Segment] = field(default_factory=asyncio.Queue)
    onsets: asyncio.Queue[tuple[SpeechEvent, float]] = field(default_factory=asyncio.Queue)

    async def run(self) -> None:
        async for heard in self.stream:
            if isinstance(heard, SpeechEvent):
                if heard.event == "speech_started":
                    self.onsets.put_nowait((heard, monotonic()))
            elif heard.is_final and heard.text:
                self.finals.put_nowait(heard)

    async def next_final(self) -> Segment:
        return await asyncio.wait_for(self.finals.get(), WAIT_SECONDS)

    async def next_onset(self) -> tuple[SpeechEvent, float]:
        """And when it came."""
        return await asyncio.wait_for(self.onsets.get(), WAIT_SECONDS)


class Answer:
    """A chat that does not end by itself, and the speech that reads it."""

    def __init__(self, client: Client, said: str) -> None:
        self.written = ""
        self.asked_at = monotonic()
        self.clause_at: float | None = None
        self.audio_at: float | None = None
        self.marks: list[Mark] = []
        self.samples = 0
        messages = [{"role": "user", "content": f"{ENDLESS} {said}"}]
        self.chat: ChatStream = client.chat(messages, max_tokens=MOST_TOKENS, temperature=0.0)
        self.speech: SpeechStream = client.synthesize(self._pieces(), marks=True)

    async def _pieces(self) -> AsyncIterator[str]:
        async for delta in self.chat:
            self.written += delta.content
            if self.clause_at is None and any(mark in self.written for mark in ".,;:!?"):
                self.clause_at = monotonic()
            yield delta.content

    async def speak_a_clause(self) -> None:
        """Until a listener has heard the first one."""
        while not (ends := [mark.end for mark in self.marks if mark.words]) or (
            self.samples < ends[0] * SPEECH_RATE
        ):
            self._take(await anext(self.speech))
        assert self.audio_at is not None
        await asyncio.sleep(max(0.0, self.audio_at + ends[0] - monotonic()))

    async def play(self) -> None:
        """On, to its end; it raises what the speech does."""
        async for chunk in self.speech:
            self._take(chunk)

    def _take(self, chunk: AudioChunk) -> None:
        self.marks += [chunk.mark] if chunk.mark else []
        self.samples = chunk.start_sample + len(chunk.audio) // 2
        if len(chunk.audio) and self.audio_at is None:
            self.audio_at = monotonic()

    def heard_ms(self) -> float:
        """Of a listener to whom all is played at once."""
        assert self.audio_at is not None
        return 1000 * min(monotonic() - self.audio_at, self.samples / SPEECH_RATE)

    def bounds_of(self, heard_ms: float) -> tuple[str, str]:
        """-> the words that were over by then by the marks, and those that had begun."""
        over = [mark for mark in self.marks if 1000 * mark.end <= heard_ms]
        begun = [mark for mark in self.marks if 1000 * mark.start <= heard_ms]
        return "".join(mark.text for mark in over), "".join(mark.text for mark in begun)


def halting() -> bytes:
    """Speech with a pause after every few words."""
    spoken = CLIP.utterances[1:3] if FULL else CLIP.utterances[2:3]
    pause = bytes(2 * int(PAUSE_SECONDS * SAMPLE_RATE))
    return b"".join(piece + pause for said in spoken for piece in _pieces_of(said))


def _pieces_of(said: Utterance) -> list[bytes]:
    size = 2 * int(PIECE_SECONDS * SAMPLE_RATE)
    first, end = (2 * int(at * SAMPLE_RATE) for at in (said.start, said.end))
    return [CLIP.pcm[at : at + size] for at in range(first, end - size, size)]


def stream_of(frame: str | bytes) -> int:
    """Whose it is; 0: nobody's."""
    if isinstance(frame, bytes):
        return decode_binary(frame).id
    return int(getattr(decode_server(frame), "id", 0))
