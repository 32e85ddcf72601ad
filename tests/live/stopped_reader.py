"""A peer in its own process that opens streams, reads a first item, and is then stopped.

SIGSTOP is what a suspended laptop or a hung program looks like: the kernel still accepts bytes
until its buffers are full, and nobody answers a ping.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

from tests.live.peer import opening

PROGRAM = """
import sys
from websockets.sync.client import connect
ws = connect(sys.argv[1], subprotocols=["plait.v1"], ping_interval=None)
for frame in sys.argv[2:]:
    ws.send(frame)
for message in ws:
    if '"item"' in message:
        break
print("reading", flush=True)
sys.stdin.read()
"""


@contextlib.asynccontextmanager
async def stopped_reader(url: str, *prompts: str) -> AsyncIterator[None]:
    """Streams of these prompts (window 0), opened by a peer that has stopped; killed on leaving."""
    frames = [json.dumps(opening(i, p, window=0)) for i, p in enumerate(prompts, start=1)]
    with subprocess.Popen(  # noqa: ASYNC220 - starting it takes a moment, and nothing else runs
        [sys.executable, "-c", PROGRAM, url, *frames],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            await asyncio.to_thread(process.stdout.readline)
            process.send_signal(signal.SIGSTOP)
            yield
        finally:
            process.kill()
