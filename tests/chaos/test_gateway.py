"""The gateway itself: out of file descriptors, suspended, ended before it has begun."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from plait.engines.scripted.hearing import recite
from tests.chaos.raw import raw_peer
from tests.chaos.rig import QUIET_SECONDS, bystander, unharmed
from tests.chaos.sizes import STOPPED_GATEWAY_SECONDS
from tests.live.peer import peer
from tests.live.server import SERVER, LiveServer, live_server

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="another process's limits are Linux's to set"
)
CROWD = 60
LOG_BYTES = 40_000


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(
        transcribe="scripted", embed="scripted", slots=4, request_timeout_seconds=QUIET_SECONDS
    ) as running:
        yield running


@contextlib.contextmanager
def exhausted(server: LiveServer, spare: int) -> Iterator[None]:
    """Not one descriptor left for the gateway, and connections that wait for some; `spare` more
    than it has now are there for the first of them. As before after the block."""
    process = psutil.Process(server.process.pid)
    before = process.rlimit(psutil.RLIMIT_NOFILE)
    limit = process.num_fds() + spare
    process.rlimit(psutil.RLIMIT_NOFILE, (limit, before[1]))
    with contextlib.ExitStack() as crowd:
        crowd.callback(process.rlimit, psutil.RLIMIT_NOFILE, before)
        for _ in range(CROWD):
            sock = crowd.enter_context(contextlib.closing(socket.socket()))
            sock.connect(("127.0.0.1", server.port))
        server.wait_until(
            lambda: sum(number < limit for number in descriptors(process.pid)) == limit,
            QUIET_SECONDS,
            "no descriptor left",
        )
        yield


def descriptors(pid: int) -> list[int]:
    return [int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()]


@linux
async def test_without_descriptors_the_connected_are_served_at_no_cost_and_workers_come_back(
    server: LiveServer,
) -> None:
    said = len(gateway_log(server))
    async with unharmed(server), bystander(server, "embed"), peer(server.ws_url) as client:
        with exhausted(server, spare=3):
            await asyncio.to_thread(server.wait_for_line, "accept.failed", QUIET_SECONDS)
            worker = chat_worker(server)
            await client.open(1, "tokens=100000 step_ms=5", window=0)
            await client.hear_until("item", 1)
            worker.kill()
            end = (await client.hear_terminals(1))[1]
            assert end["error"]["code"] == "engine_crashed"
            await asyncio.to_thread(server.wait_for_line, "worker.spawn_failed", QUIET_SECONDS)
            await client.open(2)
        assert (await client.hear_terminals(2))[2]["type"] == "done"
    assert len(gateway_log(server)[said:]) < LOG_BYTES


def chat_worker(server: LiveServer) -> psutil.Process:
    lines = [json.loads(line) for line in server.output.splitlines() if '"worker.ready"' in line]
    return psutil.Process([line["pid"] for line in lines if line["model"] == "scripted"][-1])


def gateway_log(server: LiveServer) -> str:
    """Without what is said of each stream."""
    lines = server.output.splitlines(keepends=True)
    return "".join(line for line in lines if '"stream.' not in line and '"session.' not in line)


@linux
@pytest.mark.waits
async def test_waiting_for_descriptors_costs_no_cpu(server: LiveServer) -> None:
    gateway = psutil.Process(server.process.pid)
    async with unharmed(server):
        with exhausted(server, spare=1):
            used = sum(gateway.cpu_times()[:2])
            await asyncio.sleep(3)
            assert sum(gateway.cpu_times()[:2]) - used < 1.5


@linux
async def test_a_file_that_cannot_be_opened_for_want_of_descriptors_makes_no_traceback(
    server: LiveServer,
) -> None:
    async with unharmed(server), raw_peer(server.port) as client:
        client.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200 OK" in await client.read_head()
        client.send(b"GET /static/sdk/index.js HTTP/1.1\r\n")  # or it would not be kept for long
        with exhausted(server, spare=0):
            client.send(b"Host: 127.0.0.1\r\n\r\n")
            await asyncio.to_thread(server.wait_for_line, "file.not_served", QUIET_SECONDS)
            client.writer.write_eof()
            assert b"export" not in await client.read_to_end()


@pytest.mark.waits
async def test_a_gateway_that_was_suspended_times_nobody_out(server: LiveServer) -> None:
    async with (
        unharmed(server),
        bystander(server, "chat"),
        bystander(server, "embed"),
        peer(server.ws_url, ping_interval=None) as client,
    ):
        await client.open(1, "tokens=300 step_ms=10", window=0)
        await client.open(2, "tokens=50", window=4)
        await client.transcribe(3)
        await client.hear_until("started", 3)
        server.process.send_signal(signal.SIGSTOP)
        try:  # what comes meanwhile lies unread
            await client.send_audio(3, recite("one two three"))
            await client.say({"type": "end", "id": 3}, {"type": "ack", "id": 2, "seq": 4})
            await asyncio.sleep(STOPPED_GATEWAY_SECONDS)
        finally:
            server.process.send_signal(signal.SIGCONT)
        ends = await client.hear_terminals(1, 2, 3)
        assert {end["type"] for end in ends.values()} == {"done"}


def test_sigterm_before_it_listens_for_signals_ends_it_in_order() -> None:
    engines = [f"--{kind}-engine=off" for kind in ("speech", "transcribe", "embed")]
    command = [sys.executable, "-m", "plait", "serve", "--no-open", "--port=0", *engines]
    with subprocess.Popen(
        [*command, "--chat-engine=scripted"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=QUIET_SECONDS)
    assert first.startswith("Plait serves")
    assert (process.returncode, said.splitlines()[-1]) == (0, "Stopped.")
    assert "Traceback" not in said
