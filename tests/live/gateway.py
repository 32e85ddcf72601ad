"""A whole gateway in this process, with real workers, for tests that set what nobody configures:
how much memory the machine has left, what a model takes, how soon a failed load is tried again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plait.access.keyring import ANYBODY
from plait.app import Gateway
from plait.config import Config
from plait.engines.base import LoadSpec
from plait.hosting import HostPolicy
from plait.scheduling.pressure import Floor
from tests.fakes import MemorySocket
from tests.live.peer import TERMINALS

MB = 1_000_000
WAIT_SECONDS = 40.0  # generous: two shared cores


class Client(MemorySocket):
    """A connection whose owner can wait for what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self._heard = asyncio.Event()

    def send(self, frames: Sequence[str | bytes]) -> None:
        super().send(frames)
        self._heard.set()

    def ask(self, id: int, model: str, script: str = "tokens=3", **fields: Any) -> None:
        params = {"messages": [{"role": "user", "content": script}], "model": model}
        self.open(id, params=params, window=0, **fields)

    async def hear_one(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message, past or future, that fits."""
        seen = 0
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                for message in self.received[seen:]:
                    if fits(message):
                        return message
                seen = len(self.received)
                self._heard.clear()
                await self._heard.wait()

    async def hear_of(self, id: int, *types: str) -> dict[str, Any]:
        return await self.hear_one(lambda m: m.get("id") == id and m["type"] in types)

    async def hear_end(self, id: int) -> dict[str, Any]:
        return await self.hear_of(id, *TERMINALS)


@dataclass
class Host:
    gateway: Gateway
    tasks: asyncio.TaskGroup

    def connect(self) -> Client:
        client = Client()
        self.tasks.create_task(self.gateway.run_session(client, ANYBODY))  # type: ignore[arg-type]
        return client

    def model(self, name: str) -> dict[str, Any]:
        return next(m for m in self.gateway.status()["models"] if m["name"] == name)

    def metric(self, name: str, **labels: str) -> float | None:
        return self.gateway.metrics.registry.get_sample_value(name, labels)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Of what only its status tells."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110 - asked, not told
                await asyncio.sleep(0.01)


def spec(name: str, megabytes: int = 400, **options: Any) -> LoadSpec:
    """A scripted chat model that is said to take so much."""
    return LoadSpec("scripted", name, 4, 4096, 2048, memory_bytes=megabytes * MB, options=options)


def policy(**fields: Any) -> HostPolicy:
    """A machine with plenty of memory, where nothing is ever killed for the want of it."""
    plenty = {"available_bytes": lambda: 1 << 40, "oom_kills": lambda: None}
    return HostPolicy(**({"floor": Floor(100, 150)} | plenty | fields))


@contextlib.asynccontextmanager
async def gateway(
    home: Path,
    *specs: LoadSpec,
    megabytes: int = 1000,
    preload: Collection[str] = (),
    how: HostPolicy | None = None,
    **settings: Any,
) -> AsyncIterator[Host]:
    """Runs until the block ends; then every connection hangs up."""
    config = Config(memory_budget_bytes=megabytes * MB, **settings)
    built = await asyncio.to_thread(Gateway, config, list(specs), preload, how or policy())
    clients: list[Client] = []
    async with built.running(), asyncio.TaskGroup() as tasks:
        host = Host(built, tasks)
        connect = host.connect

        def connect_and_remember() -> Client:
            clients.append(connect())
            return clients[-1]

        host.connect = connect_and_remember  # type: ignore[method-assign]
        yield host
        for client in clients:
            client.hang_up()
