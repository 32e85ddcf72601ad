"""File descriptors: enough for the connections allowed, and calm when they run out all the same.

Common soft limits are 1,024 or less (256 on macOS), which is where the default number of
connections begins to fail. Does NOT know: sockets, what a descriptor is used for.
"""

from __future__ import annotations

import asyncio
import errno
import math
import resource
import time
from collections.abc import Callable
from typing import Any

import psutil
import structlog

OTHER_DESCRIPTORS = 128  # the loop's, the workers', files, and handshakes not yet refused
LOG_INTERVAL_SECONDS = 10.0
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

log = structlog.get_logger("plait.descriptors")


def allow_connections(connections: int) -> None:
    """Raise the soft limit as far as `connections` need and the hard limit lets us."""
    wanted = connections + OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if reachable > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    if reachable < wanted:
        log.warning("descriptors.few", limit=reachable, wanted=wanted, connections=connections)


def count_open() -> float:
    """Descriptors of this process; NaN when none is left to look with. Reads a directory."""
    try:
        return psutil.Process().num_fds()
    except OSError:
        return math.nan


class AcceptTrouble:
    """An event loop's exception handler: says now and then that nothing can be accepted.

    asyncio tries again every second, a whole backlog of times, and has a traceback for each: a
    hundred idle sockets too many were 30,000 lines a second, and nobody else was served.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        accepting = "accept" in str(context.get("message"))
        if not (accepting and isinstance(error, OSError) and error.errno in EXHAUSTED):
            loop.default_exception_handler(context)
            return
        now = self._clock()
        if self._said_at is None or now - self._said_at >= LOG_INTERVAL_SECONDS:
            self._said_at = now
            log.error("accept.failed", reason=error.strerror, open_files_limit=_soft_limit())


def _soft_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
