"""A worker that is killed, crashes, stops or poisons itself costs its streams a typed error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests.live.peer import peer
from tests.live.server import LiveServer, live_server

LONG = "tokens=100000 step_ms=5"


@pytest.fixture(scope="module")
def mortal_server() -> Iterator[LiveServer]:
    with live_server(slots=4) as running:
        yield running


@pytest.fixture
def mortal(mortal_server: LiveServer) -> LiveServer:
    """A server whose worker may die; ready again before each test."""
    mortal_server.wait_until(lambda: mortal_server.get("/readyz")[0] == 200, 40, "ready")
    return mortal_server


async def test_kill_9_gives_eight_typed_terminals_and_recovers(
    mortal: LiveServer,
) -> None:
    async with peer(mortal.ws_url) as client:
        for id in range(1, 9):
            await client.open(id, LONG, window=0)
        await client.hear_until("started", 4)
        mortal.worker.kill()
        ends = await client.hear_terminals(*range(1, 9))
        codes = {(end["error"]["code"], end["error"]["retryable"]) for end in ends.values()}
        assert codes == {("engine_crashed", True)}
        await client.open(9, "tokens=3")
        assert (await client.hear_terminals(9))[9]["type"] == "done"
    await asyncio.to_thread(mortal.wait_idle)


async def test_an_engine_that_raises_takes_its_streams_along_and_not_the_service(
    mortal: LiveServer,
) -> None:
    async with peer(mortal.ws_url) as client:
        await client.open(1, "tokens=10 raise_at=2")
        assert (await client.hear_terminals(1))[1]["error"]["code"] == "engine_crashed"
        assert mortal.get("/healthz")[0] == 200


async def test_a_failing_generation_is_one_error_beside_three_answers(mortal: LiveServer) -> None:
    async with peer(mortal.ws_url) as client:
        await client.open(1, "tokens=50 fail_at=5 step_ms=1")
        for id in (2, 3, 4):
            await client.open(id, "tokens=50 step_ms=1")
        ends = await client.hear_terminals(1, 2, 3, 4)
        assert ends[1]["error"]["code"] == "generation_failed"
        assert ends[1]["usage"]["completion_tokens"] == 5
        assert {ends[id]["type"] for id in (2, 3, 4)} == {"done"}


async def test_a_stopped_worker_makes_the_service_unready_but_live_until_it_goes_on(
    mortal: LiveServer,
) -> None:
    worker = mortal.worker
    async with peer(mortal.ws_url) as client:
        await client.open(1, "tokens=2000 step_ms=5", window=0)
        await client.hear_until("item")
        worker.suspend()
        await asyncio.to_thread(
            mortal.wait_until, lambda: mortal.get("/readyz")[0] == 503, 30, "not ready"
        )
        assert mortal.get("/healthz")[0] == 200
        worker.resume()
        await asyncio.to_thread(
            mortal.wait_until, lambda: mortal.get("/readyz")[0] == 200, 30, "ready again"
        )
        await client.say({"type": "cancel", "id": 1})
        assert (await client.hear_until("cancelled", 1))["by"] == "client"
    await asyncio.to_thread(mortal.wait_idle)


async def test_a_cancel_of_a_stopped_worker_is_answered_unreleased_after_100_ms(
    mortal: LiveServer,
) -> None:
    worker = mortal.worker
    async with peer(mortal.ws_url) as client:
        await client.open(1, LONG, window=0)
        await client.hear_until("item")
        worker.suspend()
        begin = time.monotonic()
        await client.say({"type": "cancel", "id": 1})
        end = await client.hear_until("cancelled", 1)
        assert (end["released"], end["stop_ms"], end["wasted"]) == (False, None, None)
        assert time.monotonic() - begin > 0.09
        assert mortal.metric("plait_slots_used", model="scripted") == 1
        worker.resume()
    await asyncio.to_thread(mortal.wait_idle)


@pytest.mark.slow
@pytest.mark.waits
async def test_a_job_that_ignores_its_cancel_costs_the_worker_its_life_after_10_s(
    mortal: LiveServer,
) -> None:
    doomed = mortal.worker.pid
    async with peer(mortal.ws_url) as client:
        await client.open(1, "tokens=100000 hang_at=3", window=0)
        await client.hear_until("item")
        await client.say({"type": "cancel", "id": 1})
        assert (await client.hear_until("cancelled", 1))["released"] is False
        await asyncio.to_thread(mortal.wait_until, lambda: restarted(mortal, doomed), 60, "restart")
        await client.open(2, "tokens=3")
        assert (await client.hear_terminals(2))[2]["type"] == "done"
    await asyncio.to_thread(mortal.wait_idle)


def restarted(server: LiveServer, old_pid: int) -> bool:
    return server.get("/readyz")[0] == 200 and server.worker.pid != old_pid


@pytest.mark.slow
async def test_a_request_that_always_crashes_the_engine_is_not_retried_in_a_hot_loop(
    mortal: LiveServer,
) -> None:
    async with peer(mortal.ws_url) as client:
        before = len(gateway_lines(mortal))
        await client.open(1, "tokens=5 raise_at=0")
        await client.hear_terminals(1)
        await asyncio.to_thread(
            mortal.wait_until, lambda: mortal.get("/readyz")[0] == 200, 40, "ready"
        )
        worker = mortal.worker
        used = sum(worker.cpu_times()[:2])
        await asyncio.to_thread(worker.cpu_percent, 1.0)
        assert sum(worker.cpu_times()[:2]) - used < 0.2
        assert len(gateway_lines(mortal)) - before <= 10


def gateway_lines(server: LiveServer) -> list[str]:
    return [line for line in server.output.splitlines() if "worker.output" not in line]
