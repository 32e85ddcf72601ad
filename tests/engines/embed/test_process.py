"""The embedding adapter in its real worker process, on the starter model.

What a cancel does to its own job and to the others' vectors is seen from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
from numpy.typing import NDArray

from plait.engines.base import (
    Cancel,
    Consumed,
    Feed,
    Finished,
    FinishInput,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Start,
)
from plait.engines.process import EngineProcess
from plait.models import ModelStore
from tests.engines.recording import RecordingListener, model_worker

pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.model, pytest.mark.timeout(300)]

Worker = tuple[EngineProcess, RecordingListener]
TEXTS = [f"Text number {n} of those that go beside the others." for n in range(40)]


@pytest.fixture(scope="module")
def spec() -> LoadSpec:
    model = ModelStore().ensure("all-minilm-l6-v2", "onnx")
    return LoadSpec("onnx", model.name, 8, 0, 0, method="embed", weights=str(model.form("onnx")))


@pytest.fixture
async def worker(spec: LoadSpec) -> AsyncIterator[Worker]:
    async with model_worker(spec) as found:
        yield found


async def open_job(worker: Worker, job: int, texts: list[str] | None) -> None:
    engine, told = worker
    params = {} if texts is None else {"texts": texts}
    engine.send(Prepare(job, "embed", params, scope="test"))
    await told.expect(Prepared, lambda event: event.job == job)
    engine.send(Start(job))


async def released(worker: Worker, job: int) -> Released:
    for event in worker[1].passed:
        if isinstance(event, Released) and event.job == job:
            return event
    return await worker[1].expect(Released, lambda event: event.job == job)


def rows(worker: Worker, job: int) -> NDArray[np.float32]:
    items = [e for e in worker[1].passed if isinstance(e, Item) and e.job == job]
    return np.frombuffer(b"".join(item.data for item in items), "<f4").reshape(-1, 384)


async def test_a_cancel_gives_everything_back_and_leaves_the_others_their_vectors(
    worker: Worker,
) -> None:
    await open_job(worker, 1, TEXTS)
    await released(worker, 1)
    await open_job(worker, 2, ["This goes on and on. " * 12] * 2000)
    await worker[1].expect(Item, lambda item: item.job == 2)

    await open_job(worker, 3, TEXTS)
    worker[0].send(Cancel(2, asyncio.get_running_loop().time()))
    gone = await released(worker, 2)
    await released(worker, 3)

    assert gone.usage["texts"] < 2000
    assert (rows(worker, 1) * rows(worker, 3)).sum(axis=1).min() > 0.9999


async def test_texts_that_come_later_are_embedded_as_they_come(worker: Worker) -> None:
    engine, told = worker
    await open_job(worker, 1, None)

    engine.send(Feed(1, texts=["one", ""]))
    taken = await told.expect(Consumed)
    if taken.bytes < 3 + 2 * 16:  # in two batches
        taken.bytes += (await told.expect(Consumed)).bytes
    engine.send(Feed(1, texts=["two"]))
    engine.send(FinishInput(1))
    finished = await told.expect(Finished)

    assert taken.bytes == 3 + 2 * 16
    assert finished.usage["texts"] == 3
    assert len(rows(worker, 1)) == 3
