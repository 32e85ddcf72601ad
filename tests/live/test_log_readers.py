"""A server whose log nobody takes any more serves on, and ends as ever."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.peer import peer
from tests.live.server import SERVER

FULL = Path("/dev/full")  # each write fails, as on a full disk
COMMAND = ["serve", "--no-open", "--port=0", "--chat-engine=scripted"]
OTHERS_OFF = ["--speech-engine=off", "--transcribe-engine=off", "--embed-engine=off"]


@contextlib.contextmanager
def serving(stderr: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Its process and where it listens."""
    with subprocess.Popen(
        [sys.executable, "-m", "plait", *COMMAND, *OTHERS_OFF],
        env={**os.environ, "PYTHONPATH": str(SERVER), "PLAIT_LOG_LEVEL": "debug"},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as process:
        os.close(stderr)
        try:
            assert process.stdout is not None
            listening = re.search(r"at http://([^ /]*)", process.stdout.readline())
            assert listening is not None
            yield process, listening[1]
        finally:
            process.kill()


def unread_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_disk() -> int:
    if not FULL.exists():
        pytest.skip("there is no device here that is always full")
    return os.open(FULL, os.O_WRONLY)


@pytest.mark.parametrize("stderr", [unread_pipe, full_disk], ids=["unread", "full"])
async def test_a_log_that_cannot_be_written_costs_no_stream_and_no_exit_status(
    stderr: Callable[[], int],
) -> None:
    with serving(stderr()) as (process, address):
        async with peer(f"ws://{address}/v1/ws") as client:
            await client.open(1, "tokens=100000 step_ms=5", window=0)
            await client.open(2, "tokens=3")
            assert (await client.hear_until("done", 2))["finish_reason"] == "stop"
            await client.say({"type": "cancel", "id": 1})
            assert (await client.hear_until("cancelled", 1))["by"] == "client"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
