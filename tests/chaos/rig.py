"""What must be as before when the chaos is over, and somebody who must not notice it.

`unharmed` compares a server's gauges, descriptors and processes before and after; a `bystander` has
a connection of its own and counts every item of streams that follow each other without a break.
Does NOT know what the chaos is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import psutil

from tests.live.peer import TERMINALS, Peer, peer
from tests.live.server import LiveServer
from tests.proofs.test_soak import USED, gauges_of

LOADED = "plait_model_bytes"  # measured when it loads: no two workers take the same
QUIET_SECONDS = 60.0  # until a worker is back, on a machine that does much else
BYSTANDER_TOKENS = 20

Gauges = dict[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass(frozen=True, slots=True)
class Holdings:
    """Of one server, by its own gauges and by the kernel's account."""

    gauges: Gauges
    descriptors: int
    tasks: float
    workers: int

    @classmethod
    def of(cls, server: LiveServer) -> Holdings:
        gateway = psutil.Process(server.process.pid)
        gauges = gauges_of(server)
        for key in [key for key in gauges if key[0] == LOADED]:
            gauges[USED, frozenset()] -= gauges.pop(key)
        tasks = server.metric("plait_tasks")
        return cls(gauges, gateway.num_fds(), tasks, len(server.workers))

    def beyond(self, before: Holdings) -> list[str]:
        """What differs, in words; of descriptors and tasks, which a scrape has too, only more."""
        differing = self.gauges.items() ^ before.gauges.items()
        found = [f"{name} {dict(labels)}: {value}" for (name, labels), value in differing]
        for name in ("descriptors", "tasks"):
            now, then = getattr(self, name), getattr(before, name)
            if now > then:
                found.append(f"{name}: {now}, and {then} before")
        if self.workers != before.workers:
            found.append(f"workers: {self.workers}, and {before.workers} before")
        return found


@contextlib.asynccontextmanager
async def unharmed(server: LiveServer, seconds: float = QUIET_SECONDS) -> AsyncIterator[None]:
    """After the block the server is ready, holds what it held before, and says so truthfully."""
    before = await asyncio.to_thread(_settled, server, seconds)
    yield
    await asyncio.to_thread(_wait_as, server, before, seconds)


def _settled(server: LiveServer, seconds: float) -> Holdings:
    wait_ready(server, seconds)
    server.wait_idle(seconds)
    server.wait_until(lambda: server.metric("plait_connections") == 0, seconds, "no connections")
    return Holdings.of(server)


def _wait_as(server: LiveServer, before: Holdings, seconds: float) -> None:
    wait_ready(server, seconds)
    try:
        server.wait_until(lambda: not Holdings.of(server).beyond(before), seconds, "as before")
    except AssertionError as late:
        raise AssertionError(f"still held: {Holdings.of(server).beyond(before)}") from late
    assert server.get("/healthz")[0] == 200


def wait_ready(server: LiveServer, seconds: float = QUIET_SECONDS) -> None:
    server.wait_until(lambda: server.get("/readyz")[0] == 200, seconds, "ready")


def readiness(server: LiveServer) -> dict[str, str]:
    """Per model, as `/readyz` has it; asserts that status and body agree."""
    status, body = server.get("/readyz")
    told = json.loads(body)
    assert (status == 200) == told["ready"], told
    states: dict[str, str] = told["models"]
    return states


class Bystander:
    """One connection with one short stream after the other; `streams` is how many are done."""

    def __init__(self, client: Peer, method: str, pause_seconds: float) -> None:
        self.streams = 0
        self.leaves = False
        self._client = client
        self._method = method
        self._pause_seconds = pause_seconds

    async def run(self) -> None:
        """Until it leaves, after the end of a stream."""
        while not self.leaves:
            await self._live_one(self.streams + 1)
            self.streams += 1
            await asyncio.sleep(self._pause_seconds)

    async def _live_one(self, id: int) -> None:
        if self._method == "chat":
            await self._client.open(id, f"tokens={BYSTANDER_TOKENS} step_ms=2", window=0)
        else:
            await self._client.embed(id, [f"text {n}" for n in range(BYSTANDER_TOKENS)], window=0)
        content, end = await self._hear_end()
        assert end["type"] == "done", end
        if self._method == "chat":
            assert content == "".join(f"w{n} " for n in range(BYSTANDER_TOKENS)), content
        else:
            assert end["usage"]["texts"] == BYSTANDER_TOKENS, end

    async def _hear_end(self) -> tuple[str, dict[str, Any]]:
        content = ""
        while (message := await self._client.hear())["type"] not in TERMINALS:
            if message["type"] == "item":
                content += message["data"]["content"]
        return content, message


@contextlib.asynccontextmanager
async def bystander(
    server: LiveServer, method: str = "chat", pause_seconds: float = 0.05
) -> AsyncIterator[Bystander]:
    """Its streams follow each other for as long as the block, and none of them notices it."""
    # No pings of its own: a suspended server answers none, and is to be found where it was.
    async with peer(server.ws_url, ping_interval=None) as client, asyncio.TaskGroup() as tasks:
        somebody = Bystander(client, method, pause_seconds)
        tasks.create_task(somebody.run())
        yield somebody
        somebody.leaves = True
