"""How a process of an engine begins, and how it dies: with its parent, before the gateway, by no
stray signal.

Used by the worker and by what it starts. The gateway leads every stop: a terminal's Ctrl-C or a
service manager's SIGTERM to the whole group must not kill the engines while it is still draining.
Does NOT know what a process does while it lives.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import sys
from typing import NoReturn

EXIT_OK = 0
EXIT_BUG = 70
EXIT_MEMORY = 71

IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1
# When memory runs out the kernel takes the highest first. A stream's own process costs one stream.
OOM_SCORE = 500
STREAM_OOM_SCORE = 700

# Looked up once: a forked child must not load libraries.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def begin(module: str, score: int = OOM_SCORE) -> socket.socket:
    """First thing in `python -m <module> --fd N --parent PID`: its socket, of which it is N."""
    ignore_stops()
    parser = argparse.ArgumentParser(prog=module)
    parser.add_argument("--fd", type=int, required=True, help="connected stream socket")
    parser.add_argument("--parent", type=int, required=True, help="pid to die with")
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    die_before_the_gateway(score)
    return socket.socket(fileno=arguments.fd)


def ignore_stops() -> None:
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def die_with_parent(parent: int) -> None:
    """EOF would do, but a loop stuck in a library that holds the GIL cannot see it."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        exit_now(EXIT_OK)


def die_before_the_gateway(score: int = OOM_SCORE) -> None:
    """When the machine runs out of memory the kernel should take a worker: that is survivable."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(score))
    except OSError:
        return  # not Linux, or a sandbox that forbids it: the default order holds


def exit_now(status: int) -> NoReturn:
    """At once, from any thread: no interpreter teardown that a native thread could hang."""
    sys.stderr.flush()
    os._exit(status)
