"""Hundreds of cancels at random moments leave the server as it was: able, and no bigger."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable

import pytest

from plait.client import Client, connect
from plait.wire.messages import Cancelled, Done
from tests.live.server import LiveServer
from tests.proofs.rig import ENDLESS, engine_gauges, long_text, params, talk
from tests.proofs.sizes import CANCELS, MAX_TOKENS, SLOTS, TEST_SECONDS

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

LANES = SLOTS + 2  # so that some wait in the queue
LATEST_SECONDS = 0.6
RSS_GROWTH_BYTES = 64 * 2**20


async def cancel_at_random(client: Client, rng: random.Random) -> str:
    """-> the terminal's kind. Cancelled while pending, in prefill or in decode."""
    text = long_text(100) if rng.random() < 0.3 else ENDLESS
    async with client.open("chat", params(text, max_tokens=MAX_TOKENS)) as stream:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(rng.uniform(0, LATEST_SECONDS)):
                await stream.collect()
        await stream.cancel()
    assert isinstance(stream.terminal, Cancelled | Done)
    return "done" if isinstance(stream.terminal, Done) else "cancelled"


async def run_lane(server: LiveServer, count: int, seed: int) -> Counter[str]:
    rng = random.Random(seed)
    async with connect(server.ws_url) as client:
        return Counter([await cancel_at_random(client, rng) for _ in range(count)])


async def cancel_many(server: LiveServer, count: int, seed: int) -> Counter[str]:
    async with asyncio.TaskGroup() as tasks:
        lanes = [
            tasks.create_task(run_lane(server, -(-count // LANES), 100 * seed + lane))
            for lane in range(LANES)
        ]
    return sum((lane.result() for lane in lanes), Counter())


async def test_random_cancels_leave_no_slot_no_kv_and_no_memory_behind(
    server: LiveServer, request: pytest.FixtureRequest, record_property: Callable[..., None]
) -> None:
    count = CANCELS[request.node.callspec.params["server"]]
    worker = server.worker
    await cancel_many(server, count // 5, seed=1)  # pools and threads come with the first use
    before, kept_before = worker.memory_info().rss, kept_bytes(server)

    ends = await cancel_many(server, count, seed=2)

    took = await asyncio.to_thread(server.wait_idle, 10.0)
    kept = max(0.0, kept_bytes(server) - kept_before)
    grown = worker.memory_info().rss - before - kept
    record_property("cancels", ends["cancelled"])
    record_property("idle after ms", round(1000 * took))
    record_property("prefixes kept, MiB", round(kept / 2**20, 1))
    record_property("worker RSS grown by MiB, without these", round(grown / 2**20, 1))
    assert ends.total() >= count
    assert ends["cancelled"] > 0.9 * count
    assert engine_gauges(server) == (0, 0)
    assert server.worker.pid == worker.pid
    assert grown < RSS_GROWTH_BYTES
    await four_chats_complete(server)


def kept_bytes(server: LiveServer) -> float:
    """Prefixes of chats that are over: they may stay, within their cap."""
    values = server.metrics().items()
    return sum(value for (name, _), value in values if name == "plait_prefix_cache_bytes")


async def four_chats_complete(server: LiveServer) -> None:
    async with connect(server.ws_url) as client, asyncio.TaskGroup() as tasks:
        chats = [
            tasks.create_task(talk(client, ENDLESS, max_tokens=8, temperature=0)) for _ in range(4)
        ]
    assert [chat.result()[1].usage["completion_tokens"] for chat in chats] == [8] * 4
