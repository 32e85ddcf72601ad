"""Streams in forks of this process: the weights are shared, a fork is ready in milliseconds.

Exact in both directions: nothing of a killed stream computes once it is reaped, and what a stream
writes is its own copy. For Linux, where a fork of a single-threaded process is safe. Does NOT know
who asks (see `zygote`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from plait.engines.dying import (
    EXIT_BUG,
    EXIT_OK,
    STREAM_OOM_SCORE,
    die_before_the_gateway,
    die_with_parent,
)
from plait.engines.whisper.child import serve
from plait.engines.whisper.ears import Ears, load_ears
from plait.engines.whisper.messages import Gone, Load

STANDARD_FDS = 3


class ForkedStreams:
    """Implements `Streams`; see `zygote`."""

    sockets: Sequence[socket.socket] = ()
    deadline: float | None = None

    def __init__(self, load: Load) -> None:
        self._load = load
        self._ears: Ears | None = None
        self._pids: dict[int, int] = {}  # by job
        self._jobs: dict[int, int] = {}  # by pid

    def load(self) -> bool:
        self._ears = load_ears(self._load.ears, self._load.weights, None)
        # Children must not write to what they share, as a collection would to every object.
        gc.collect()
        gc.freeze()
        return self._ears.multilingual

    def open(self, job: int, sock: socket.socket) -> None:
        assert self._ears is not None
        parent = os.getpid()
        with sock:
            pid = os.fork()
            if pid == 0:
                _live(sock, self._ears, parent)
        self._pids[job] = pid
        self._jobs[pid] = job

    def kill(self, job: int) -> None:
        self._signal(job, signal.SIGKILL)

    def stop(self, job: int) -> None:
        self._signal(job, signal.SIGSTOP)

    def go(self, job: int) -> None:
        self._signal(job, signal.SIGCONT)

    def reap(self) -> list[Gone]:
        gone: list[Gone] = []
        while self._jobs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            job = self._jobs.pop(pid)
            del self._pids[job]
            gone.append(Gone(job, os.waitstatus_to_exitcode(status)))
        return gone

    def close(self) -> None:
        for pid in self._jobs:
            os.kill(pid, signal.SIGKILL)
        for pid in self._jobs:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def _signal(self, job: int, number: signal.Signals) -> None:
        """A job that is gone has no pid; one that is not reaped keeps its pid from others."""
        if job in self._pids:
            os.kill(self._pids[job], number)


def _live(sock: socket.socket, ears: Ears, parent: int) -> NoReturn:
    """The forked child's whole life. It never returns into the zygote's code."""
    status = EXIT_BUG
    try:
        die_with_parent(parent)
        die_before_the_gateway(STREAM_OOM_SCORE)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _close_all_but(sock.fileno())
        if serve(sock, ears):
            status = EXIT_OK
    except BaseException as error:  # noqa: BLE001 - the end of the process is how it is told
        sys.stderr.write(f"a stream's process broke: {type(error).__name__}\n")
        traceback.print_tb(error.__traceback__)
    finally:
        sys.stderr.flush()
        os._exit(status)


def _close_all_but(kept: int) -> None:
    """Also the standard ones stay. Held open here, a socket of the zygote would outlive it."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd >= STANDARD_FDS and fd != kept:
            with contextlib.suppress(OSError):  # the listing's own, closed with it
                os.close(fd)
