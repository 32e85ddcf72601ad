"""The adapter's handle of the zygote: start it, ask for streams' processes, hear of their ends.

A stream's socket is made here and works at once; what is written to it waits for its process. All
calls but `watch` are made by one thread and none waits for the zygote, but `load` and `close`. Does
NOT know what is said on those sockets (see `engine`), nor how the zygote does what it is asked.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

from plait.engines.base import Report
from plait.engines.whisper.messages import (
    RECEIVE_BYTES,
    FromZygote,
    Go,
    Gone,
    Kill,
    Load,
    Loaded,
    Loading,
    LoadRefused,
    Open,
    Stop,
    ToZygote,
    decode_from_zygote,
    frame,
    reader,
)
from plait.errors import ModelLoadFailed, OutOfMemory
from plait.installation import child_environment

CLOSE_SECONDS = 2.0
# A forked process must have no other threads, and a decode has one core (see `permits`).
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class ZygoteDied(RuntimeError):
    """All streams are gone with it; the worker must be started anew."""


class Nursery:
    """One zygote process. Raises ModelLoadFailed when it cannot be started."""

    def __init__(self, load: Load) -> None:
        self._sock, theirs = socket.socketpair()
        self._reader = reader()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-P", "-X", "faulthandler"),
                        *("-m", "plait.engines.whisper.zygote"),
                        *("--fd", str(theirs.fileno()), "--parent", str(os.getpid())),
                    ],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env=child_environment(os.environ | ONE_THREAD),
                )
            except OSError as error:
                self._sock.close()
                raise ModelLoadFailed(
                    f"The process that loads the Whisper model cannot be started "
                    f"({error.strerror}). Free some memory and start again."
                ) from error
        self._closing = False
        self._watch: threading.Thread | None = None
        self._send(load)

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        """To select on: readable when `receive` has something."""
        return self._sock.fileno()

    def load(self, report: Report) -> bool:
        """Wait until it is ready; whether the model knows several languages.

        Raises ModelLoadFailed, and ZygoteDied where it was killed, having closed it.
        """
        try:
            while True:
                for message in self.receive():
                    match message:
                        case Loading(phase):
                            report(phase, None)
                        case Loaded(multilingual):
                            return multilingual
                        case LoadRefused(fault):
                            self.close()
                            raise fault.to_error()
                        case Gone():
                            raise AssertionError("no stream was opened yet")
        except ZygoteDied as error:
            self.close()
            if self._process.returncode == -signal.SIGKILL:
                raise  # from outside, as when memory runs out: no fault of the model's
            raise ModelLoadFailed(
                "The process that loads the Whisper model died: its file is damaged, or there is "
                "not enough memory. Verify the model, or use a smaller one."
            ) from error

    def watch(self, on_death: Callable[[], None]) -> None:
        """From a thread of its own: `on_death` when it ends unasked, whatever we do then."""

        def wait() -> None:
            self._process.wait()
            if not self._closing:
                on_death()

        self._watch = threading.Thread(target=wait, daemon=True, name="zygote-watch")
        self._watch.start()

    def open(self, job: int) -> socket.socket:
        """Our end of the socket of the process of `job`, non-blocking. `Gone` comes once for it.

        Raises OutOfMemory when there is no descriptor to spare, and ZygoteDied.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise OutOfMemory(
                f"The machine has nothing to spare for another stream ({error.strerror}); "
                "try again when others have ended."
            ) from error
        with theirs:
            ours.setblocking(False)
            try:
                socket.send_fds(self._sock, [frame(Open(job))], [theirs.fileno()])
            except (BrokenPipeError, ConnectionResetError) as error:
                ours.close()
                raise ZygoteDied("the zygote died") from error
        return ours

    def kill(self, job: int) -> None:
        self._send(Kill(job))

    def stop(self, job: int) -> None:
        self._send(Stop(job))

    def go(self, job: int) -> None:
        self._send(Go(job))

    def receive(self) -> list[FromZygote]:
        """Waits for something. Raises ZygoteDied."""
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise ZygoteDied("the zygote died")
        return [decode_from_zygote(payload) for payload in self._reader.feed(data)]

    def close(self) -> None:
        """It ends at the end of its socket, and its streams with it; killed when it does not."""
        self._closing = True
        self._sock.close()
        if self._watch is not None:
            self._watch.join(CLOSE_SECONDS)
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: ToZygote) -> None:
        """Small, and read at once: blocks only behind a zygote that hangs."""
        try:
            self._sock.sendall(frame(message))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ZygoteDied("the zygote died") from error
