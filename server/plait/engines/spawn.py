"""Starts a worker process and turns what it prints into log lines.

The child gets one end of a socketpair, its own session (a terminal's Ctrl-C is the gateway's
alone), none of the gateway's secrets, and one pipe for stdout and stderr. Reading that pipe never
stops, so the child cannot block on it; what is logged of it is bounded. Knows no frames.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from dataclasses import dataclass

from plait.installation import child_environment

WORKER_MODULE = "plait.engines.worker"
MAX_LINE_BYTES = 2000
MAX_LINES_PER_SECOND = 100

# Tokens are the gateway's business; a worker runs model code and third-party parsers.
SECRET_VARIABLES = frozenset({"PLAIT_TOKEN", "PLAIT_TOKENS"})

# OpenMP threads (llama.cpp, torch) that wait for each other sleep. Told to spin they would, where
# they have fewer cores than threads or share them, keep busy the core that the last one needs:
# two threads of llama.cpp on one core wrote 24 tokens/s asleep, and 3 spinning.
WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True, slots=True)
class Child:
    """A worker process, our non-blocking end of its socket and the transport of its output.

    Its owner closes the socket and the output and reaps the process.
    """

    process: Process
    sock: socket.socket
    output: asyncio.BaseTransport


async def spawn_worker(output: WorkerOutput) -> Child:
    """Raises OSError when the machine has no process or file descriptor to spare."""
    ours, theirs = socket.socketpair()
    try:
        read_fd, write_fd = os.pipe()
    except OSError:
        ours.close()
        theirs.close()
        raise
    try:
        ours.setblocking(False)
        process = await asyncio.create_subprocess_exec(
            # -P: no module is ever imported from the current directory.
            *(sys.executable, "-P", "-X", "faulthandler", "-m", WORKER_MODULE),
            *("--fd", str(theirs.fileno()), "--parent", str(os.getpid())),
            stdin=DEVNULL,
            stdout=write_fd,
            stderr=write_fd,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env=_environment(),
        )
    except BaseException:
        ours.close()
        os.close(read_fd)
        raise
    finally:
        theirs.close()
        os.close(write_fd)
    try:
        pipe = os.fdopen(read_fd, "rb", buffering=0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: output, pipe)
    except BaseException:
        ours.close()
        kill_group(process)
        await process.wait()
        raise
    return Child(process, ours, transport)


def kill_group(process: Process) -> None:
    """SIGKILL the worker and whatever it forked; nothing when it has been reaped."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # it leads its own session, so pgid == pid
        except ProcessLookupError:
            return  # reaped, but the loop does not know yet


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in SECRET_VARIABLES}
    return child_environment(WAITING | kept)


class WorkerOutput(asyncio.Protocol):
    """Lines the worker prints, each at most `MAX_LINE_BYTES`, so many a second, the rest counted.

    `emit(line)` and `dropped(lines)` are called on the loop.
    """

    def __init__(
        self,
        emit: Callable[[str], None],
        dropped: Callable[[int], None],
        clock: Callable[[], float],
    ) -> None:
        self._emit = emit
        self._dropped = dropped
        self._clock = clock
        self._line = bytearray()
        self._second = -1
        self._lines = 0

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            self._end_line()
        self._add(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._line:
            self._end_line()
        self._report_dropped()

    def _add(self, part: bytes) -> None:
        self._line += part[: MAX_LINE_BYTES - len(self._line)]

    def _end_line(self) -> None:
        second = int(self._clock())
        if second != self._second:
            self._report_dropped()
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= MAX_LINES_PER_SECOND:
            self._emit(self._line.decode(errors="replace"))
        self._line.clear()

    def _report_dropped(self) -> None:
        if self._lines > MAX_LINES_PER_SECOND:
            self._dropped(self._lines - MAX_LINES_PER_SECOND)
            self._lines = 0
