"""A server of ours that ends when whoever started it is gone, in whatever way that went.

`python -m plait.bench.tethered serve …` is `plait serve …` with a pipe as stdin. The bench holds
the other end and never writes to it; the system closes that end even after a SIGKILL, and the end
of the pipe is taken for a SIGTERM: the server's ordinary shutdown. Does NOT know what is served.
"""

from __future__ import annotations

import io
import os
import runpy
import signal
import sys
import threading
from typing import Any


def end_with_stdin() -> None:
    """From now on the end of stdin is a SIGTERM to this process."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


class _Unheard(io.FileIO):
    """What nobody reads any more is dropped: who read it is gone, at the same moment."""

    def write(self, data: Any) -> int:  # a buffer
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def _without_readers(descriptor: int) -> io.TextIOWrapper:
    raw = _Unheard(descriptor, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), line_buffering=True)


if __name__ == "__main__":
    sys.stdout, sys.stderr = _without_readers(1), _without_readers(2)
    end_with_stdin()
    runpy.run_module("plait", run_name="__main__", alter_sys=True)
