"""A server of ours that ends when whoever started it is gone, in whatever way that went.

`python -m plait.bench.tethered serve …` is `plait serve …` with a pipe as stdin. The bench holds
the other end and never writes to it; the system closes that end even after a SIGKILL, and the end
of the pipe is taken for a SIGTERM: the server's ordinary shutdown. Does NOT know what is served.
"""

from __future__ import annotations

import os
import runpy
import signal
import threading


def end_with_stdin() -> None:
    """From now on the end of stdin is a SIGTERM to this process."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    end_with_stdin()
    runpy.run_module("plait", run_name="__main__", alter_sys=True)
