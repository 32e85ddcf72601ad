"""The mlx adapter in its real worker process: what a cancel does is read off from outside."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from plait.engines.base import EngineInfo, Finished, Item, Prepared, Released, Start
from plait.engines.process import EngineProcess
from tests.engines.mlx.tiny import build_tiny_model, tiny_spec
from tests.engines.recording import Lost, RecordingListener, cancel_job, open_job, prepare

pytestmark = pytest.mark.model

Worker = tuple[EngineProcess, RecordingListener]

WINDOW_SECONDS = 0.5  # to measure CPU time in; nothing waits for it


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("tiny-mlx"))


@pytest.fixture(scope="module")
async def mlx_worker(tiny_model: Path) -> AsyncIterator[Worker]:
    """One for all tests of the module: each uses job ids of its own."""
    listener = RecordingListener()
    engine = EngineProcess(tiny_spec(tiny_model, max_tokens=2000), listener)
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


def of(job: int) -> Callable[[Item | Prepared | Released], bool]:
    return lambda event: event.job == job


@pytest.mark.parametrize(
    ("job", "prompt"), [(1, "hello"), (2, "word " * 370)], ids=["decode", "prefill"]
)
async def test_after_the_release_the_worker_computes_nothing(
    mlx_worker: Worker, job: int, prompt: str
) -> None:
    engine, told = mlx_worker
    open_job(engine, job, prompt, temperature=0)  # a drawn first token may be the end
    if prompt == "hello":
        await told.expect(Item, of(job))
    else:
        await told.expect(Prepared, of(job))
    cancel_job(engine, job)
    released = await told.expect(Released, of(job))

    assert released.wasted <= 2  # fast steps run ahead
    assert await cpu_seconds_of_a_window(engine) < WINDOW_SECONDS / 5
    assert (engine.stats.slots_used, engine.stats.kv_bytes) == (0, 0)


async def test_others_go_on_and_the_worker_serves_after_many_cancels(mlx_worker: Worker) -> None:
    engine, told = mlx_worker
    for job in range(11, 51):
        open_job(engine, job, f"number {job}")
        cancel_job(engine, job)
    for job in range(51, 55):
        open_job(engine, job, f"number {job}", temperature=0)  # a drawn token may be the end
        await told.expect(Item, of(job))
        cancel_job(engine, job)
        await told.expect(Released, of(job))
    engine.send(prepare(60, "still here?", max_tokens=5))
    engine.send(Start(60))

    finished = await told.expect(Finished)

    assert finished.job == 60
    assert not any(isinstance(event, Lost) for event in told.passed)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere mlx brings its own kernels")
async def test_the_worker_computes_with_the_fast_blas(mlx_worker: Worker) -> None:
    engine, _ = mlx_worker
    mapped = [file.path for file in psutil.Process(engine.pid).memory_maps()]

    assert any("libopenblas" in path for path in mapped)
