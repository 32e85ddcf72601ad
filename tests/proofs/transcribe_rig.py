"""What proofs of transcription share: what is said, streams that never end, and the processes of
streams as the kernel sees them.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import re
import select
import threading
from collections.abc import AsyncIterator, Callable
from time import monotonic

import psutil

from plait.bench.clips import shipped_clip
from plait.client import Client, Segment, Stream, TranscriptionStream
from tests.live.server import LiveServer

SAMPLE_RATE = 16_000
LEAD_SECONDS, TAIL_SECONDS = 0.3, 0.7
WAIT_SECONDS = 30.0
CLIP = shipped_clip("multi")


def said(*numbers: int) -> tuple[bytes, str]:
    """-> audio and words of those sentences of the clip, one after the other."""
    parts = [CLIP.utterances[number] for number in numbers]
    return b"".join(_cut(part.start, part.end) for part in parts), " ".join(p.text for p in parts)


def _cut(start: float, end: float) -> bytes:
    begin, finish = start - LEAD_SECONDS, end + TAIL_SECONDS
    return CLIP.pcm[2 * int(begin * SAMPLE_RATE) : 2 * int(finish * SAMPLE_RATE)]


def likeness(heard: str, reference: str) -> float:
    """1: word for word."""
    words = re.sub(r"[^a-z' ]", "", heard.lower().replace("-", " ")).split()
    return difflib.SequenceMatcher(None, words, reference.split()).ratio()


async def pieces(audio: bytes, *, ends: bool = True) -> AsyncIterator[bytes]:
    """As fast as the credit allows; without an end it is said over and over."""
    while True:
        for begin in range(0, len(audio), 8000):
            yield audio[begin : begin + 8000]
        if ends:
            return


def listen(client: Client, audio: bytes) -> TranscriptionStream[Segment]:
    return client.transcribe.live(pieces(audio), sample_rate=SAMPLE_RATE)


def open_stream(client: Client, audio: bytes, *, ends: bool = True) -> Stream:
    """As a stream of items, whose start can be waited for."""
    return client.open("transcribe", {"sample_rate": SAMPLE_RATE}, source=pieces(audio, ends=ends))


class Whisper:
    """The processes behind one server's transcriptions."""

    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self.worker = self._find_worker(server)
        (self.zygote,) = self.worker.children()

    @staticmethod
    def _find_worker(server: LiveServer) -> psutil.Process:
        """Only whisper's has a process of its own."""
        (worker,) = [worker for worker in server.workers if worker.children()]
        return worker

    def streams(self) -> list[psutil.Process]:
        return self.zygote.children()

    def stopped(self) -> int:
        """How many of them rest where they are."""
        return sum(process.status() == psutil.STATUS_STOPPED for process in self.streams())

    def handles(self) -> tuple[int, int, int, int]:
        """Descriptors of gateway, worker and zygote, and processes of streams."""
        gateway = psutil.Process(self._server.process.pid)
        fds = [process.num_fds() for process in (gateway, self.worker, self.zygote)]
        return fds[0], fds[1], fds[2], len(self.streams())

    async def wait_for_handles(self, most: tuple[int, int, int, int]) -> None:
        """Until there are no more of any kind; sockets close a moment after their clients."""
        few = lambda: all(now <= then for now, then in zip(self.handles(), most, strict=True))  # noqa: E731
        await self.wait_until(few, f"no more handles than {most}")

    async def new_stream(self, before: list[psutil.Process]) -> psutil.Process:
        """The process that came since; wait for it."""

        def came() -> set[psutil.Process]:
            return set(self.streams()) - set(before)

        await self.wait_until(lambda: bool(came()), "a process for the stream")
        (process,) = came()
        return process

    async def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Processes can only be looked at."""
        await asyncio.to_thread(self._server.wait_until, condition, WAIT_SECONDS, what)


@contextlib.asynccontextmanager
async def babble(client: Client, whisper: Whisper, streams: int) -> AsyncIterator[None]:
    """That many streams, with a process each, decode without pause meanwhile."""

    async def go_on(number: int) -> None:
        async with open_stream(client, said(number % 5)[0], ends=False) as stream:
            async for _ in stream:
                continue

    async with asyncio.TaskGroup() as tasks:
        lanes = [tasks.create_task(go_on(number)) for number in range(streams)]
        try:
            all_there = lambda: len(whisper.streams()) == streams  # noqa: E731
            await whisper.wait_until(all_there, "processes for all streams")
            yield
        finally:
            for lane in lanes:
                lane.cancel()


class DeathWatch:
    """When a process ended, as the kernel tells a thread of its own: it computes no more then."""

    def __init__(self, process: psutil.Process) -> None:
        self.dead_at: float | None = None
        self._pidfd = os.pidfd_open(process.pid)
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        if select.select([self._pidfd], [], [], WAIT_SECONDS)[0]:
            self.dead_at = monotonic()

    async def __aenter__(self) -> DeathWatch:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._thread.join)
        os.close(self._pidfd)
