"""A listener that remembers, and a running `EngineProcess` with the scripted engine behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from plait.engines.base import (
    Cancel,
    EngineInfo,
    JobEvent,
    Loading,
    LoadSpec,
    Prepare,
    Start,
    Stats,
)
from plait.engines.process import EngineProcess
from plait.engines.restart import Limits
from plait.errors import PlaitError

T = TypeVar("T")
WAIT_SECONDS = 60  # generous: two shared cores


@dataclass(frozen=True, slots=True)
class Lost:
    error: PlaitError


@dataclass(frozen=True, slots=True)
class Unloaded:
    """No process of it is left."""


class RecordingListener:
    """All calls in order, `on_events` flattened; `expect` takes them until one of a type fits."""

    def __init__(self) -> None:
        self._told: asyncio.Queue[object] = asyncio.Queue()  # bounded by what the test asks for
        self.passed: list[object] = []

    def on_loading(self, phase: str, percent: int | None) -> None:
        self._told.put_nowait(Loading(phase, percent))

    def on_ready(self, info: EngineInfo) -> None:
        self._told.put_nowait(info)

    def on_events(self, events: list[JobEvent]) -> None:
        for event in events:
            self._told.put_nowait(event)

    def on_worker_lost(self, error: PlaitError) -> None:
        self._told.put_nowait(Lost(error))

    def on_unloaded(self) -> None:
        self._told.put_nowait(Unloaded())

    def on_stats(self, stats: Stats) -> None:
        self._told.put_nowait(stats)

    async def expect(self, kind: type[T], fits: Callable[[T], bool] = lambda _: True) -> T:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                told = await self._told.get()
                self.passed.append(told)
                if isinstance(told, kind) and fits(told):
                    return told

    def take_all_nowait(self) -> list[object]:
        return [self._told.get_nowait() for _ in range(self._told.qsize())]


def scripted_spec(**options: Any) -> LoadSpec:
    return LoadSpec(
        engine="scripted",
        model="scripted",
        slots=4,
        context_tokens=4096,
        max_tokens=2048,
        options=options,
    )


async def model_ready(told: RecordingListener) -> EngineInfo:
    """A model takes long to load where everything is busy."""
    for _ in range(5):
        with suppress(TimeoutError):
            event = await told.expect(object, lambda event: isinstance(event, EngineInfo | Lost))
            assert isinstance(event, EngineInfo), event
            return event
    raise AssertionError("the worker did not become ready")


@asynccontextmanager
async def model_worker(spec: LoadSpec) -> AsyncIterator[tuple[EngineProcess, RecordingListener]]:
    """Ready, until the block ends."""
    listener = RecordingListener()
    engine = EngineProcess(spec, listener)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        try:
            await model_ready(listener)
            yield engine, listener
        finally:
            await engine.close(grace_seconds=5)


@asynccontextmanager
async def running_engine(
    limits: Limits | None = None, **options: Any
) -> AsyncIterator[tuple[EngineProcess, RecordingListener]]:
    """Spawned but not necessarily ready; closed with the block."""
    listener = RecordingListener()
    engine = EngineProcess(scripted_spec(**options), listener, limits=limits)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        try:
            yield engine, listener
        finally:
            await engine.close(grace_seconds=5)


@asynccontextmanager
async def ready_engine(
    limits: Limits | None = None, **options: Any
) -> AsyncIterator[tuple[EngineProcess, RecordingListener]]:
    async with running_engine(limits, **options) as (engine, told):
        await told.expect(EngineInfo)
        yield engine, told


def prepare(job: int, script: str, **params: Any) -> Prepare:
    message = {"role": "user", "content": script}
    return Prepare(job, "chat", {"messages": [message], **params}, scope="test")


def open_job(engine: EngineProcess, job: int, script: str, **params: Any) -> None:
    engine.send(prepare(job, script, **params))
    engine.send(Start(job))


def cancel_job(engine: EngineProcess, job: int) -> None:
    engine.send(Cancel(job, asyncio.get_running_loop().time()))
