"""The whisper adapter in its worker process, as the gateway has it: with scripted ears, then with
the starter model.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest

from plait.engines.base import (
    Cancel,
    Failed,
    Feed,
    Finished,
    FinishInput,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Start,
    UseCores,
)
from plait.engines.process import EngineProcess
from plait.machine_cores import core_ids
from plait.models import ModelStore
from tests.engines.bound import CAN_BIND, cpus_of
from tests.engines.recording import Lost, RecordingListener, model_ready, model_worker
from tests.engines.whisper.rig import whisper_spec
from tests.proofs.transcribe_rig import likeness, said


class Listening:
    """One worker, and what its jobs sent so far."""

    def __init__(self, engine: EngineProcess, told: RecordingListener) -> None:
        self.engine = engine
        self.told = told

    @property
    def worker(self) -> psutil.Process:
        assert self.engine.pid is not None
        return psutil.Process(self.engine.pid)

    @property
    def zygote(self) -> psutil.Process:
        (zygote,) = self.worker.children()
        return zygote

    async def open(self, job: int, audio: bytes = b"", **params: object) -> None:
        self.engine.send(Prepare(job, "transcribe", {"sample_rate": 16_000, **params}, "test"))
        await self.told.expect(Prepared)
        self.engine.send(Start(job))
        if audio:
            self.engine.send(Feed(job, audio=audio))

    def cancel(self, job: int) -> None:
        self.engine.send(Cancel(job, asyncio.get_running_loop().time()))

    async def said(self, job: int) -> None:
        if not self.items(job):
            await self.told.expect(Item, lambda item: item.job == job)

    async def released(self, job: int) -> Released:
        for event in self.told.passed:
            if isinstance(event, Released) and event.job == job:
                return event
        return await self.told.expect(Released, lambda event: event.job == job)

    async def patiently_released(self, job: int) -> Released:
        """Decoding takes long where everything is busy."""
        for _ in range(8):
            with contextlib.suppress(TimeoutError):
                return await self.released(job)
        raise AssertionError(f"job {job} was not released")

    def items(self, job: int) -> list[dict[str, object]]:
        passed = self.told.passed
        mine = [event for event in passed if isinstance(event, Item) and event.job == job]
        return [msgspec.json.decode(item.data) for item in mine]

    def text(self, job: int) -> str:
        """All finals."""
        segments = [item["segment"] for item in self.items(job) if "segment" in item]
        return " ".join(one["text"] for one in segments if one["is_final"])  # type: ignore[index]

    def failures(self, job: int) -> list[str]:
        passed = self.told.passed
        return [one.fault.code for one in passed if isinstance(one, Failed) and one.job == job]


@contextlib.asynccontextmanager
async def worker_of(spec: LoadSpec) -> AsyncIterator[Listening]:
    async with model_worker(spec) as (engine, listener):
        yield Listening(engine, listener)


# --- with scripted ears -------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def scripted() -> AsyncIterator[Listening]:
    async with worker_of(whisper_spec()) as worker:
        yield worker


async def test_input_wakes_the_worker_at_once(scripted: Listening) -> None:
    await scripted.open(1, b"one ")
    await scripted.said(1)
    loop = asyncio.get_running_loop()

    begin = loop.time()
    for number in range(20):
        scripted.engine.send(Feed(1, audio=b"word%d " % number))
        await scripted.told.expect(Item)
    took = loop.time() - begin
    scripted.cancel(1)
    await scripted.released(1)

    assert took < 10  # each would wait for a step's whole second


async def test_a_killed_stream_is_told_and_the_worker_goes_on(scripted: Listening) -> None:
    await scripted.open(11, b"hello ")
    await scripted.open(12, b"hello ")
    await scripted.said(11)
    await scripted.said(12)

    psutil.Process(int(str(scripted.items(11)[0]["pid"]))).kill()
    await scripted.released(11)
    scripted.engine.send(FinishInput(12))
    await scripted.released(12)

    assert scripted.failures(11) == ["engine_crashed"]
    assert any(isinstance(e, Finished) and e.job == 12 for e in scripted.told.passed)


@CAN_BIND
async def test_streams_compute_on_the_cpus_that_the_worker_is_told(scripted: Listening) -> None:
    cpus = core_ids()
    await scripted.open(21, b"before ")
    await scripted.said(21)

    scripted.engine.send(UseCores(cpus[-1:]))
    await scripted.open(22, b"after ")
    await scripted.said(22)
    bound = cpus_of(scripted.worker.pid)
    scripted.engine.send(UseCores(cpus))
    for job in (21, 22):
        scripted.cancel(job)
        await scripted.released(job)

    assert bound == {cpus[-1]}


async def test_the_whole_group_of_processes_ends_with_the_worker() -> None:
    async with worker_of(whisper_spec()) as worker:
        await worker.open(1, b"hello ")
        await worker.said(1)
        everybody = [worker.worker, worker.zygote, *worker.zygote.children()]
        assert len(everybody) == 3

    _, alive = await asyncio.to_thread(psutil.wait_procs, everybody, 20)
    assert not alive


@pytest.mark.parametrize("idle", [True, False])
async def test_the_death_of_the_zygote_is_the_workers_and_it_comes_back(idle: bool) -> None:
    async with worker_of(whisper_spec()) as worker:
        if not idle:
            await worker.open(1, b"hello ")
            await worker.said(1)
        before = [worker.worker, worker.zygote, *worker.zygote.children()]

        worker.zygote.send_signal(signal.SIGKILL)
        lost = await worker.told.expect(Lost)
        await model_ready(worker.told)
        await worker.open(2, b"again ")
        await worker.said(2)

        _, alive = await asyncio.to_thread(psutil.wait_procs, before, 20)
        assert lost.error.code == "engine_crashed"
        assert not alive


@pytest.mark.parametrize("ears", ["killed_once", "measured_killed_once"])
async def test_a_load_that_is_killed_from_outside_is_tried_again(ears: str, tmp_path: Path) -> None:
    spec = whisper_spec(ears=ears)
    weights = tmp_path / "weights"
    weights.touch()
    spec.weights = str(weights)
    told = RecordingListener()
    engine = EngineProcess(spec, told)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())

        lost = await told.expect(Lost)
        info = await model_ready(told)
        await engine.close(grace_seconds=5)

    assert lost.error.code == "engine_crashed"
    assert info.slots == spec.slots


async def test_the_death_of_the_worker_takes_all_with_it() -> None:
    async with worker_of(whisper_spec()) as worker:
        await worker.open(1, b"hello ")
        await worker.said(1)
        everybody = [worker.worker, worker.zygote, *worker.zygote.children()]

        os.kill(everybody[0].pid, signal.SIGKILL)

        await worker.told.expect(Lost)
        _, alive = await asyncio.to_thread(psutil.wait_procs, everybody, 20)
        assert not alive


# --- with the starter model ---------------------------------------------------------------------


@pytest.fixture
def spawned_spec() -> LoadSpec:
    """Outside the event loop: it reads files."""
    model = ModelStore().ensure("whisper-tiny.en", "whisper")
    return LoadSpec(
        "whisper",
        model.name,
        slots=1,
        context_tokens=0,
        max_tokens=0,
        method="transcribe",
        weights=str(model.form("whisper")),
        threads=2,
        options={"isolation": "spawn"},
    )


async def listen(worker: Listening, job: int, audio: bytes) -> None:
    await worker.open(job, audio)
    worker.engine.send(FinishInput(job))


@pytest.mark.model
@pytest.mark.timeout(300)
async def test_a_spawned_stream_is_aborted_in_its_decode_and_the_next_one_hears_all(
    spawned_spec: LoadSpec,
) -> None:
    audio, text = said(3)
    async with worker_of(spawned_spec) as worker:
        await listen(worker, 1, said(0)[0])
        await asyncio.sleep(0.5)  # into its first decode, or near it
        worker.cancel(1)
        await worker.patiently_released(1)
        await listen(worker, 2, audio)
        await worker.patiently_released(2)

        assert worker.failures(1) == worker.failures(2) == []
        assert likeness(worker.text(2), text) > 0.7, worker.text(2)
