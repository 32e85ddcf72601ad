"""One core budget for all workers, whatever they do at once, as the kernel has it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import pytest

from plait.client import Client, Stream, StreamCancelled, connect
from plait.machine_cores import core_ids
from plait.models import ModelStore
from tests.engines.bound import CAN_BIND, cpus_of
from tests.live.server import LiveServer, live_server
from tests.proofs.conftest import LISTENING_MODEL, MODEL, SPEECH_MODEL
from tests.proofs.rig import ENDLESS, params
from tests.proofs.sizes import FULL, TEST_SECONDS
from tests.proofs.speech_rig import paragraph
from tests.proofs.transcribe_rig import open_stream, said

pytestmark = [CAN_BIND, pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

Record = Callable[[str, object], None]

EMBEDDING_MODEL = "all-minilm-l6-v2"
ENGINES = {MODEL: "llamacpp", LISTENING_MODEL: "whisper", EMBEDDING_MODEL: "onnx"}
if FULL:  # its front end takes long to load, longest on one core
    ENGINES[SPEECH_MODEL] = "kokoro-onnx"
SPEECH_ENGINE = ENGINES.get(SPEECH_MODEL, "scripted")
SPOKEN = paragraph(4000) if FULL else "tokens=100000 step_ms=20"
TEXTS = [f"Sentence number {number} of a long list." for number in range(5000)]


@pytest.fixture(scope="module", params=[1, 2] if FULL else [1])
def budget(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture(scope="module")
def server(budget: int) -> Iterator[LiveServer]:
    for model, engine in ENGINES.items():
        ModelStore().ensure(model, engine)  # type: ignore[arg-type]
    with live_server(
        "llamacpp", speech=SPEECH_ENGINE, transcribe="whisper", embed="onnx", cores=budget
    ) as running:
        yield running


def open_all(client: Client) -> list[Stream]:
    """One of each method; they go on for long."""
    return [
        client.open("chat", params(ENDLESS, max_tokens=1000)),
        client.open("synthesize", {"text": SPOKEN}),
        open_stream(client, said(0)[0], ends=False),
        client.open("embed", {"texts": TEXTS}),
    ]


async def go_on(stream: Stream, begun: asyncio.Semaphore) -> None:
    """Read it until it is cancelled; `begun` counts first items."""
    with contextlib.suppress(StreamCancelled):
        await anext(stream)
        begun.release()
        async for _ in stream:
            continue


async def test_all_methods_at_once_compute_on_no_more_than_the_budget(
    server: LiveServer, budget: int, record_property: Record
) -> None:
    server.wait_idle(30)
    idle = {cpu for worker in server.workers for cpu in cpus_of(worker.pid)}
    async with connect(server.ws_url) as client, asyncio.TaskGroup() as tasks:
        streams, begun = open_all(client), asyncio.Semaphore(0)
        for stream in streams:
            tasks.create_task(go_on(stream, begun))
        for _ in streams:
            await begun.acquire()
        busy = {cpu for worker in server.workers for cpu in cpus_of(worker.pid)}
        used = server.metric("plait_cores_used")
        for stream in streams:
            stream.cancel_nowait()
    allowed = set(core_ids()[:budget])
    record_property("CPUs of all workers", len(busy))
    assert idle <= allowed
    assert busy <= allowed
    assert used == server.metric("plait_cores_budget") == len(allowed)
    server.wait_idle(30)
