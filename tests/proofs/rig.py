"""What proofs share: prompts, moments of a stream, and the worker as the kernel sees it."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any

import psutil

from plait.client import Client, Stream
from plait.wire.messages import Done
from tests.live.server import LiveServer
from tests.proofs.sizes import LONG_WORDS

SAMPLE_SECONDS = 0.005
# A worker with nothing to do still answers a heartbeat; the kernel counts in ticks of 10 ms.
IDLE_CPU_SECONDS = 0.05
ENDLESS = "Write a very long and detailed story about a lighthouse and the sea."

_serial = itertools.count(1)


def params(text: str, **others: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **others}


def long_text(words: int = LONG_WORDS) -> str:
    """Never the same twice, from the first word on: no cached prefix can help."""
    filler = "The quick brown fox jumps over the lazy dog and runs away . " * (words // 12)
    return f"Report {next(_serial)}: {filler} What does the fox do?"


async def talk(client: Client, text: str, **others: Any) -> tuple[str, Done]:
    """A whole answer and its terminal."""
    async with client.open("chat", params(text, **others)) as stream:
        answer = "".join([item.data["content"] async for item in stream])
    assert isinstance(stream.terminal, Done)
    return answer, stream.terminal


async def reach(stream: Stream, phase: str) -> None:
    """Until the stream is in prefill (of a long prompt), or has three items in decode."""
    await stream.wait_started()
    for _ in range(3 if phase == "decode" else 0):
        await anext(stream)


def engine_gauges(server: LiveServer) -> tuple[float, float]:
    """(slots, KV bytes) by the engine's own account."""
    values = server.metrics()
    names = ("plait_engine_slots_used", "plait_kv_bytes")
    slots, kv_bytes = (sum(v for (n, _), v in values.items() if n == name) for name in names)
    return slots, kv_bytes


class CpuWatch:
    """Samples of a process's CPU seconds, taken by a thread while the test goes on."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._samples: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            times = self._process.cpu_times()
            self._samples.append((monotonic(), times.user + times.system))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def settled_at(self) -> float:
        """When the CPU time had all but reached its last value."""
        last = self._samples[-1][1]
        return next(at for at, cpu in self._samples if last - cpu <= IDLE_CPU_SECONDS)

    def used_since(self, moment: float) -> float:
        """CPU seconds from then to the last sample."""
        before = [cpu for at, cpu in self._samples if at <= moment]
        return self._samples[-1][1] - (before[-1] if before else self._samples[0][1])


@contextlib.contextmanager
def watched_cpu(process: psutil.Process) -> Iterator[CpuWatch]:
    watch = CpuWatch(process)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()
