"""The speech adapter in its real worker process, on the starter model.

What a cancel does to its own job, to the others' bytes and to the process is seen from outside.
Texts are short: on busy cores a second of speech takes seconds.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

import psutil
import pytest

from plait.engines.base import (
    Cancel,
    Failed,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Start,
)
from plait.engines.process import EngineProcess
from plait.models import ModelStore
from plait.wire.frames import BinaryKind
from tests.engines.recording import Lost, RecordingListener, model_worker
from tests.proofs.sizes import FULL

pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.model, pytest.mark.timeout(300)]

TEXTS = ["Good morning.", "It is nine.", "Boats go by."]
LONG = "The old bridge carried nobody that winter, and the river was quiet. " * 20
MIB = 1024 * 1024
BEFORE, AFTER = (30, 90) if FULL else (10, 40)  # cancels; every tenth one is heard first


def speech_spec() -> LoadSpec:
    model = ModelStore().ensure("kokoro-82m", "kokoro-onnx")
    return LoadSpec(
        "kokoro-onnx",
        model.name,
        slots=4,
        context_tokens=0,
        max_tokens=0,
        weights=str(model.form("kokoro-onnx")),
        options={"voices": str(model.voices_dir), "runtime": "onnxruntime"},
    )


class Speaking:
    """One worker, and the audio its jobs sent so far."""

    def __init__(self, engine: EngineProcess, told: RecordingListener) -> None:
        self.engine = engine
        self.told = told

    async def open(self, job: int, text: str) -> None:
        params = {"text": text, "voice": "af_heart", "language": "en-us"}
        self.engine.send(Prepare(job, "synthesize", params, scope="test"))
        await self.told.expect(Prepared)
        self.engine.send(Start(job))

    def cancel(self, job: int) -> float:
        now = asyncio.get_running_loop().time()
        self.engine.send(Cancel(job, now))
        return now

    async def released(self, job: int) -> Released:
        for event in self.told.passed:
            if isinstance(event, Released) and event.job == job:
                return event
        return await self.told.expect(Released, lambda event: event.job == job)

    async def heard(self, job: int) -> None:
        if not self.pcm(job):
            await self.told.expect(Item, lambda item: item.job == job and bool(item.kind))

    def pcm(self, job: int) -> bytes:
        return b"".join(
            event.data
            for event in self.told.passed
            if isinstance(event, Item)
            if event.job == job and event.kind == BinaryKind.AUDIO_OUT
        )


@pytest.fixture(scope="module")
async def worker() -> AsyncIterator[Speaking]:
    """One for all tests, as loading takes longer than speaking; the last one ends it."""
    async with model_worker(speech_spec()) as (engine, listener):
        yield Speaking(engine, listener)


async def test_a_cancel_in_the_midst_of_four_leaves_the_others_bytes_as_they_are_alone(
    worker: Speaking,
) -> None:
    for job, text in enumerate(TEXTS, 1):
        await worker.open(job, text)
        await worker.released(job)
    await worker.open(10, LONG)
    await worker.heard(10)
    for job, text in enumerate(TEXTS, 11):
        await worker.open(job, text)
    await worker.heard(12)

    sent = worker.cancel(10)
    released = await worker.released(10)
    for job in (11, 12, 13):
        await worker.released(job)

    assert released.at - sent < 20  # all of it would take longer still; the benchmark measures
    assert [worker.pcm(job) for job in (11, 12, 13)] == [worker.pcm(job) for job in (1, 2, 3)]
    assert not any(isinstance(event, Failed) for event in worker.told.passed)


async def cancel_many(worker: Speaking, first: int, count: int) -> tuple[int, int]:
    """-> (resident bytes, threads) of the process after them. Every tenth one is heard first."""
    for job in range(first, first + count):
        await worker.open(job, f"{job}. {LONG}")
        if job % 10 == 0:
            await worker.heard(job)
        worker.cancel(job)
        await worker.released(job)
    process = psutil.Process(worker.engine.pid)
    return process.memory_info().rss, process.num_threads()


async def test_after_many_cancels_the_worker_is_as_large_as_before(worker: Speaking) -> None:
    before, threads_before = await cancel_many(worker, 101, BEFORE)
    after, threads_after = await cancel_many(worker, 101 + BEFORE, AFTER)

    assert after - before < 16 * MIB
    assert threads_after == threads_before
    assert (worker.engine.stats.slots_used, worker.engine.stats.kv_bytes) == (0, 0)


async def test_the_death_of_the_worker_is_told(worker: Speaking) -> None:
    await worker.open(1001, LONG)
    await worker.heard(1001)

    psutil.Process(worker.engine.pid).send_signal(signal.SIGKILL)

    assert (await worker.told.expect(Lost)).error.code == "engine_crashed"
