"""Workers that die, stop, starve or lose their memory at any moment, under a mixed load."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys

import psutil
import pytest

from tests.chaos.mixing import mixed_load
from tests.chaos.rig import QUIET_SECONDS, bystander, readiness, unharmed, wait_ready
from tests.chaos.sizes import DEATHS, SEEDS, SHORT_STOPS, TEST_SECONDS
from tests.live.peer import peer
from tests.live.server import LiveServer
from tests.proofs.test_soak import ended_streams

pytestmark = pytest.mark.timeout(TEST_SECONDS)

LONG = "tokens=100000 step_ms=5"


def worker_of(server: LiveServer, model: str) -> psutil.Process:
    """The one that became ready last."""
    lines = [json.loads(line) for line in server.output.splitlines() if '"worker.ready"' in line]
    return psutil.Process([line["pid"] for line in lines if line["model"] == model][-1])


def losses(server: LiveServer) -> float:
    return sum(
        v for (name, _), v in server.metrics().items() if name == "plait_worker_losses_total"
    )


def wait_lost(server: LiveServer, more_than: float) -> None:
    server.wait_until(lambda: losses(server) > more_than, QUIET_SECONDS, "a death is known")
    wait_ready(server)


@pytest.mark.parametrize("seed", SEEDS)
async def test_workers_killed_at_random_cost_typed_errors_and_nothing_else(
    all_methods: LiveServer, seed: int
) -> None:
    rng = random.Random(seed)
    async with unharmed(all_methods):
        ended = ended_streams(all_methods)
        async with mixed_load(all_methods, seed) as load:
            for _ in range(DEATHS):
                await asyncio.sleep(rng.uniform(0, 0.4))
                before = losses(all_methods)
                rng.choice(all_methods.workers).kill()
                await asyncio.to_thread(wait_lost, all_methods, before)
        await asyncio.to_thread(all_methods.wait_idle, QUIET_SECONDS)
        told = load.ends["done"] + load.ends["cancelled"] + load.ends["error"]
        ended = ended_streams(all_methods) - ended
        assert told <= ended <= told + load.ends["lost"], load.ends
    assert load.ends["done"] > 0, load.ends


@pytest.mark.parametrize("seed", SEEDS)
async def test_workers_stopped_for_moments_lose_no_stream(
    all_methods: LiveServer, seed: int
) -> None:
    rng = random.Random(seed)
    async with unharmed(all_methods), mixed_load(all_methods, seed) as load:
        for _ in range(SHORT_STOPS):
            worker = rng.choice(all_methods.workers)
            worker.suspend()
            await asyncio.sleep(rng.uniform(0, 0.3))
            worker.resume()
            await asyncio.sleep(rng.uniform(0, 0.1))
    assert load.ends["error"] == load.ends["rejected"] == 0, load.ends


@pytest.mark.waits
async def test_a_worker_that_stays_stopped_is_told_unready_then_killed_and_replaced(
    all_methods: LiveServer,
) -> None:
    stopped = worker_of(all_methods, "scripted")
    before = losses(all_methods)
    ids = range(1, 9)  # four run, four wait
    async with (
        unharmed(all_methods),
        bystander(all_methods, "embed"),
        peer(all_methods.ws_url) as client,
    ):
        for id in ids:
            await client.open(id, LONG, window=0)
        await client.hear_until("item", 4)
        stopped.suspend()
        await asyncio.to_thread(
            all_methods.wait_until,
            lambda: readiness(all_methods)["scripted"] == "stalled",
            QUIET_SECONDS,
            "told to be stalled",
        )
        await client.say(*({"type": "cancel", "id": id} for id in ids))
        ends = await client.hear_terminals(*ids)
        released = {id: end["released"] for id, end in ends.items()}
        assert released == {id: id > 4 for id in ids}
        assert all_methods.metric("plait_slots_used", model="scripted") == 4
        await asyncio.to_thread(wait_lost, all_methods, before)
        await client.open(9)
        assert (await client.hear_terminals(9))[9]["type"] == "done"


@pytest.mark.parametrize("where", ["prepare", "start"])
async def test_memory_that_runs_out_for_one_stream_costs_that_stream_alone(
    all_methods: LiveServer, where: str
) -> None:
    async with (
        unharmed(all_methods),
        bystander(all_methods, "chat"),
        peer(all_methods.ws_url) as client,
    ):
        await client.open(1, f"memory={where}")
        await client.speak(2, f"memory={where} one")
        await client.embed(3, [f"memory={where}"])
        ends = await client.hear_terminals(1, 2, 3)
    assert {end["error"]["code"] for end in ends.values()} == {"out_of_memory"}


async def test_memory_that_runs_out_in_a_step_costs_that_worker_alone(
    all_methods: LiveServer,
) -> None:
    async with (
        unharmed(all_methods),
        bystander(all_methods, "embed"),
        peer(all_methods.ws_url) as client,
    ):
        await client.open(1, LONG, window=0)
        await client.hear_until("item", 1)
        await client.open(2, "memory=step")
        ends = await client.hear_terminals(1, 2)
    messages = {(end["error"]["code"], end["error"]["message"]) for end in ends.values()}
    ((code, message),) = messages
    assert code == "engine_crashed"
    assert "it ran out of memory" in message


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are Linux's to set")
async def test_a_worker_without_address_space_refuses_what_does_not_fit_and_lives_or_is_replaced(
    all_methods: LiveServer,
) -> None:
    worker = worker_of(all_methods, "scripted-embed")
    unlimited = worker.rlimit(psutil.RLIMIT_AS)
    async with (
        unharmed(all_methods),
        bystander(all_methods, "chat"),
        peer(all_methods.ws_url) as client,
    ):
        size = worker.memory_info().vms
        worker.rlimit(psutil.RLIMIT_AS, (size, unlimited[1]))
        for id in range(1, 9):
            await client.embed(id, ["many words " * 80_000], window=0)
        ends = await client.hear_terminals(*range(1, 9))
        told = [end["error"] for end in ends.values() if end["type"] != "done"]
        assert told
        assert {error["code"] for error in told} <= {"out_of_memory", "engine_crashed"}
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.rlimit(psutil.RLIMIT_AS, unlimited)
        await asyncio.to_thread(wait_ready, all_methods)
        await client.embed(9, ["one"])
        assert (await client.hear_terminals(9))[9]["type"] == "done"
