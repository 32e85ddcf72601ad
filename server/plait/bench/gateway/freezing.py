"""Processes that stand still for as long as a block, and never longer than the bench is there.

One that is stopped cannot see that the bench was killed, nor end itself. So a shell of ours waits
for the end of its stdin, which comes however the bench ends, and lets them go on.
Does NOT know what is frozen, nor why.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Sequence

WAKER = ("/bin/sh", "-c", 'read -r _; kill -CONT "$@"', "sh")


@contextlib.asynccontextmanager
async def frozen(pids: Sequence[int]) -> AsyncIterator[None]:
    """Stopped from the last to the first, and woken from the first to the last."""
    waker = await asyncio.create_subprocess_exec(
        *(*WAKER, *map(str, pids)),
        stdin=PIPE,
        stderr=DEVNULL,
        start_new_session=True,  # or a Ctrl-C would end it alone
    )
    assert waker.stdin is not None
    try:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        waker.stdin.close()
        await waker.wait()
