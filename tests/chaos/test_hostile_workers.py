"""Workers that send what is no frame, frames of jobs that are none, or stop hearing commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.engines.base import Feed
from plait.engines.restart import Limits
from tests.chaos.rig import bystander, unharmed, wait_ready
from tests.engines.recording import Lost, ready_engine
from tests.live.peer import peer
from tests.live.server import LiveServer

LONG = "tokens=100000 step_ms=5"
UNREADABLE = "it sent an unreadable frame"


class HostileServer(LiveServer):
    program = (sys.executable, str(Path(__file__).with_name("hostile_gateway.py")))


@pytest.fixture(scope="module")
def hostile() -> Iterator[LiveServer]:
    server = HostileServer(embed="scripted", slots=4, max_tokens=1 << 20, context_tokens=1 << 20)
    try:
        yield server
        wait_ready(server)
        lines = [line for line in server.output.splitlines() if "worker.output" not in line]
        assert not any("Traceback" in line for line in lines), server.output[-5000:]
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("deed", "cause"),
    [
        ("garbage", UNREADABLE),
        ("oversized", UNREADABLE),
        ("empty", UNREADABLE),
        ("nonsense", UNREADABLE),
        ("truncated", ""),  # the end of its socket or of its process, whichever is seen first
    ],
)
async def test_what_is_no_frame_costs_that_worker_alone_and_is_named(
    hostile: LiveServer, deed: str, cause: str
) -> None:
    async with unharmed(hostile), bystander(hostile, "embed"), peer(hostile.ws_url) as client:
        await client.open(1, LONG, window=0)
        await client.hear_until("item", 1)
        await client.open(2, f"tokens=100 step_ms=5 say={deed}!", window=0)
        ends = await client.hear_terminals(1, 2)
        for end in ends.values():
            assert end["error"]["code"] == "engine_crashed"
            assert cause in end["error"]["message"]
        await client.open(3)
        assert (await client.hear_terminals(3))[3]["type"] == "done"


@pytest.mark.parametrize("deed", ["strangers", "ghosts"])
async def test_events_of_jobs_that_are_none_reach_nobody(hostile: LiveServer, deed: str) -> None:
    async with (
        unharmed(hostile),
        bystander(hostile, "chat"),
        bystander(hostile, "embed"),
        peer(hostile.ws_url) as client,
    ):
        await client.open(1, "tokens=2")
        assert (await client.hear_terminals(1))[1]["type"] == "done"
        await client.open(2, f"tokens=20 say={deed}!")
        end = (await client.hear_terminals(2))[2]
    assert (end["type"], end["usage"]["completion_tokens"]) == ("done", 20)


@pytest.mark.waits
async def test_a_worker_that_hears_its_commands_too_late_is_given_up(hostile: LiveServer) -> None:
    async with unharmed(hostile), bystander(hostile, "embed"), peer(hostile.ws_url) as client:
        await client.open(1, f"{LONG} say=slowly", window=0)
        await client.hear_until("item", 1)
        for id in (2, 3):
            await client.open(id, LONG, window=0)
        await client.say({"type": "cancel", "id": 1})
        assert (await client.hear_terminals(1))[1]["released"] is False
        ends = await client.hear_terminals(2, 3)
        assert {end["error"]["code"] for end in ends.values()} == {"engine_crashed"}
        assert hostile.get("/healthz")[0] == 200


async def test_what_waits_for_a_worker_that_does_not_read_is_bounded_and_then_given_up() -> None:
    limits = Limits(max_backlog_bytes=1 << 20)
    async with ready_engine(limits) as (engine, told):
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGSTOP)
        for _ in range(16):
            engine.send(Feed(1, audio=b"x" * (1 << 18)))
        lost = await told.expect(Lost)
    assert "it stopped reading its commands" in lost.error.message
