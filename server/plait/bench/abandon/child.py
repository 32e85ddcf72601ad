"""A foreign server in a child process of ours: started, listened to, ended with the block.

The child is a small module of ours that configures the foreign package. It gets its settings as one
line of JSON on stdin and ends when stdin does, so it never outlives the bench; it writes events as
lines of JSON on stdout (`{"url": …}`: ready; `{"error": …}`: why not), and its log goes to stderr.
Does NOT know which server it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Any

import msgspec
import psutil
from rich.console import Console

from plait.bench.serving import BenchError, spent_cpu_seconds, wait_or_kill

START_SECONDS = 300.0
STOP_SECONDS = 10.0
KEPT_LINES = 30
LINE_BYTES = 1 << 20

Listener = Callable[[str, float], None]
"""Gets a line and the monotonic moment it was read."""


class Child:
    """A running server. `url`: http://127.0.0.1:port."""

    def __init__(self, name: str, process: Process, tail: deque[str]) -> None:
        self.url = ""
        self._name = name
        self._process = process
        self._tail = tail
        self._heard = asyncio.Event()

    async def cpu_seconds(self) -> float:
        """Of all its processes so far."""
        return await asyncio.to_thread(tree_cpu_seconds, self._process.pid)

    def hear(self) -> None:
        """A line came, or the end."""
        self._heard.set()

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Look again at each line. False after so long. Raises BenchError once it has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._check()
                    self._heard.clear()
                    await self._heard.wait()
                return True
        return False

    def _check(self) -> None:
        if self._process.returncode is not None:
            raise BenchError(
                f"{self._name} ended by itself (status {self._process.returncode}):\n"
                + "".join(self._tail)
            )


def tree_cpu_seconds(pid: int) -> float:
    """Of a process and all below it; 0 when it is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return spent_cpu_seconds((root, *root.children(recursive=True)))
    return 0.0


@contextlib.asynccontextmanager
async def serving_child(
    name: str, module: str, settings: Any, on_event: Listener, on_log: Listener
) -> AsyncIterator[Child]:
    """`python -m module` from when it said where it listens. Raises BenchError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=LINE_BYTES,
        start_new_session=True,  # a Ctrl-C is ours to pass on
    )
    tail: deque[str] = deque(maxlen=KEPT_LINES)
    child = Child(name, process, tail)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(msgspec.json.encode(settings) + b"\n")

    def log(line: str, moment: float) -> None:
        tail.append(line + "\n")
        on_log(line, moment)

    readers = [
        asyncio.create_task(_read(process.stdout, _until_ready(ready, on_event), child.hear)),
        asyncio.create_task(_read(process.stderr, log, child.hear)),
    ]
    try:
        with Console(stderr=True).status(f"{name}: loading the model"):
            child.url = await _ready(name, ready, readers, tail)
        yield child
    finally:
        await _end(process)
        await asyncio.gather(*readers)


async def _ready(
    name: str,
    ready: asyncio.Future[str],
    readers: list[asyncio.Task[None]],
    tail: deque[str],
) -> str:
    """The URL. A reader that ends first means that the process has."""
    waited: list[asyncio.Future[Any]] = [ready, *readers]
    done, _ = await asyncio.wait(waited, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        return ready.result()
    why = "ended before it was ready" if done else f"was not ready within {START_SECONDS:g} s"
    raise BenchError(f"{name} {why}:\n" + "".join(tail))


def _until_ready(ready: asyncio.Future[str], on_event: Listener) -> Listener:
    def take(line: str, moment: float) -> None:
        if ready.done():
            on_event(line, moment)
            return
        told = msgspec.json.decode(line)
        if "error" in told:
            ready.set_exception(BenchError(told["error"]))
        else:
            ready.set_result(told["url"])

    return take


async def _read(
    stream: asyncio.StreamReader, listener: Listener, heard: Callable[[], None]
) -> None:
    while line := await stream.readline():
        listener(line.decode("utf-8", "replace").rstrip("\n"), monotonic())
        heard()
    heard()


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    await wait_or_kill(process, STOP_SECONDS)


# --- in the child ----------------------------------------------------------------------------


def take_stdout() -> Callable[[dict[str, Any]], None]:
    """-> how to tell an event. What the package prints goes to stderr from then on."""
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(event: dict[str, Any]) -> None:
        events.write(msgspec.json.encode(event) + b"\n")

    return tell
