"""A bare `websockets` server to measure beside: the library alone, in a process of its own.

A message that is JSON comes back as it is; any other one is a command: `push STREAMS TEXT_BYTES`
(items as fast as the library sends them), `pace STREAMS TEXT_BYTES STEP_MS` (one item of each
stream per step, each with the time it was made) or `stop`, answered when no more will come. Items
are the gateway's, byte for byte but for their numbers. Does NOT know flow control but TCP's.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from plait import logs
from plait.bench.serving import BenchError, wait_or_kill
from plait.bench.tethered import end_with_stdin
from plait.descriptors import allow_connections

MOST_CONNECTIONS = 4096
FRAMES_PER_TURN = 16  # as the gateway does, so that connections share the loop
START_SECONDS = 30.0
STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BareServer:
    port: int
    pid: int


@contextlib.asynccontextmanager
async def own_bare() -> AsyncIterator[BareServer]:
    """Serve on a free port until the block ends. Raises BenchError when it does not come up."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "plait.bench.gateway.bare"),
        stdin=PIPE,  # held open: its end tells the server that we are gone
        stdout=PIPE,
        start_new_session=True,  # a Ctrl-C is ours to pass on
    )
    assert process.stdout is not None
    try:
        line = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                line = await process.stdout.readline()
        if not line.strip().isdigit():
            raise BenchError("the bare server did not start; is `websockets` installed?")
        yield BareServer(int(line), process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await wait_or_kill(process, STOP_SECONDS)


def item_text(id: int, seq: int, content: str) -> str:
    """An item as the gateway encodes it."""
    return f'{{"type":"item","id":{id},"seq":{seq},"data":{{"content":"{content}"}}}}'


async def _answer(socket: ServerConnection) -> None:
    sending: asyncio.Task[None] | None = None
    with contextlib.suppress(ConnectionClosed):
        async for message in socket:
            assert isinstance(message, str)
            if message.startswith("{"):
                await socket.send(message)
                continue
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            what, *numbers = message.split()
            if what == "push":
                sending = asyncio.create_task(_push(socket, int(numbers[0]), int(numbers[1])))
            elif what == "pace":
                pace = _pace(socket, int(numbers[0]), int(numbers[1]), float(numbers[2]) / 1000)
                sending = asyncio.create_task(pace)
            else:
                await socket.send('{"type":"stopped"}')
    if sending is not None:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _push(socket: ServerConnection, streams: int, text_bytes: int) -> None:
    content = "w1000 ".ljust(text_bytes)
    frames = [item_text(id, 1001, content) for id in range(1, streams + 1)]
    for number, frame in enumerate(itertools.cycle(frames), 1):
        await socket.send(frame)
        if number % FRAMES_PER_TURN == 0:
            await asyncio.sleep(0)


async def _pace(
    socket: ServerConnection, streams: int, text_bytes: int, step_seconds: float
) -> None:
    due, seq = time.monotonic(), 0
    while True:
        seq += 1
        for id in range(1, streams + 1):
            stamp = f"{time.monotonic_ns()} ".ljust(text_bytes)
            await socket.send(item_text(id, seq, stamp))
        due = max(due + step_seconds, time.monotonic())
        await asyncio.sleep(due - time.monotonic())


async def _serve() -> None:
    allow_connections(MOST_CONNECTIONS)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    end_with_stdin()
    async with serve(
        _answer, "127.0.0.1", 0, compression=None, ping_interval=None, backlog=1024
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await stopped.wait()
    os._exit(0)


if __name__ == "__main__":
    logs.configure("warning")  # to stderr: stdout is for the port
    asyncio.run(_serve())
