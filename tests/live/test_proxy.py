"""Behind nginx with the block of docs/operations.md: the same items, no bursts, the same ending."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.peer import Peer, peer
from tests.live.server import LiveServer, live_server

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
CONFIG = """
daemon off; pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
  server {{ listen 127.0.0.1:{port}; {location} }}
}}
"""


@contextlib.contextmanager
def nginx(upstream_port: int, directory: Path) -> Iterator[int]:
    """nginx with the documented location block; yields its port."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None and "CI" not in os.environ:
        pytest.skip("nginx is not installed (apt-get install nginx-light)")
    assert program, "CI installs nginx: see .ci/system-packages"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    block = re.search(r"location / \{.*?\n    \}", OPERATIONS.read_text(), re.S)
    assert block
    location = block[0].replace(":8760", f":{upstream_port}")
    config = directory / "nginx.conf"
    config.write_text(CONFIG.format(directory=directory, port=port, location=location))
    process = subprocess.Popen([program, "-c", str(config), "-p", str(directory)])
    try:
        wait_for_port(port)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        assert time.monotonic() < deadline, "nginx did not start"


async def span(client: Peer, id: int) -> float:
    """Seconds from its first token to its last."""
    await client.open(id, "tokens=100 step_ms=30", window=0)
    times = []
    while (message := await client.hear())["type"] != "done":
        if message["type"] == "item":
            times.append(time.monotonic())
    return times[-1] - times[0]


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[LiveServer, str]]:
    with live_server() as server, nginx(server.port, tmp_path) as port:
        yield server, f"ws://127.0.0.1:{port}/v1/ws"


async def test_tokens_pass_a_documented_proxy_one_by_one(proxied: tuple[LiveServer, str]) -> None:
    server, proxy_url = proxied
    async with peer(server.ws_url) as direct, peer(proxy_url) as through:
        # At the same time, as what else the machine does slows both. Four KiB hold most of it.
        spans = await asyncio.gather(span(through, 1), span(direct, 1))
        assert spans[0] > spans[1] / 2


async def test_a_cancel_through_a_proxy_is_as_good_as_a_direct_one(
    proxied: tuple[LiveServer, str],
) -> None:
    server, proxy_url = proxied
    async with peer(proxy_url) as client:
        await client.open(1, "tokens=100000 step_ms=5", window=0)
        await client.hear_until("item")
        await client.say({"type": "cancel", "id": 1})
        assert (await client.hear_until("cancelled", 1))["by"] == "client"
        await asyncio.to_thread(server.wait_idle)
