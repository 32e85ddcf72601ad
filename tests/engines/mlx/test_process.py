"""The mlx adapter in its real worker process: what a cancel does is read off from outside."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from plait.engines.base import EngineInfo, Finished, Item, Prepared, Released, Start
from plait.engines.process import EngineProcess
from tests.engines.mlx.tiny import build_tiny_model, tiny_spec
from tests.engines.recording import Lost, RecordingListener, cancel_job, open_job, prepare

pytestmark = pytest.mark.model

WINDOW_SECONDS = 0.5  # to measure CPU time in; nothing waits for it


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))


@asynccontextmanager
async def mlx_worker(directory: Path) -> AsyncIterator[tuple[EngineProcess, RecordingListener]]:
    listener = RecordingListener()
    engine = EngineProcess(tiny_spec(directory, max_tokens=2000), listener)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        try:
            await listener.expect(EngineInfo)
            yield engine, listener
        finally:
            await engine.close(grace_seconds=5)


async def cpu_seconds_of_a_window(engine: EngineProcess) -> float:
    worker = psutil.Process(engine.pid)
    before = worker.cpu_times()
    await asyncio.sleep(WINDOW_SECONDS)
    after = worker.cpu_times()
    return after.user + after.system - before.user - before.system


@pytest.mark.parametrize("prompt", ["hello", "word " * 370], ids=["decode", "prefill"])
async def test_after_the_release_the_worker_computes_nothing(tiny_model: Path, prompt: str) -> None:
    async with mlx_worker(tiny_model) as (engine, told):
        open_job(engine, 1, prompt, temperature=0)  # a drawn first token may be the end
        await told.expect(Item if prompt == "hello" else Prepared)
        cancel_job(engine, 1)
        released = await told.expect(Released)

        assert released.wasted <= 2  # fast steps run ahead
        assert await cpu_seconds_of_a_window(engine) < WINDOW_SECONDS / 5
        assert (engine.stats.slots_used, engine.stats.kv_bytes) == (0, 0)


def of(job: int) -> Callable[[Item | Released], bool]:
    return lambda event: event.job == job


async def test_others_go_on_and_the_worker_serves_after_many_cancels(tiny_model: Path) -> None:
    async with mlx_worker(tiny_model) as (engine, told):
        for job in range(1, 41):
            open_job(engine, job, f"number {job}")
            cancel_job(engine, job)
        for job in range(41, 45):
            open_job(engine, job, f"number {job}", temperature=0)  # a drawn token may be the end
            await told.expect(Item, of(job))
            cancel_job(engine, job)
            await told.expect(Released, of(job))
        engine.send(prepare(50, "still here?", max_tokens=5))
        engine.send(Start(50))

        finished = await told.expect(Finished)

        assert finished.job == 50
        assert not any(isinstance(event, Lost) for event in told.passed)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere mlx brings its own kernels")
async def test_the_worker_computes_with_the_fast_blas(tiny_model: Path) -> None:
    async with mlx_worker(tiny_model) as (engine, _):
        mapped = [file.path for file in psutil.Process(engine.pid).memory_maps()]

    assert any("libopenblas" in path for path in mapped)
