"""The child process around one engine: `python -m plait.engines.worker --fd N --parent PID`.

Two threads: the reader blocks on the socket, sets cancel flags, binds the process to the CPUs it
may use and fills the mailbox; the main thread loads the adapter and runs the loop. The process
never outlives its gateway: it ends at EOF and, on Linux, with its parent. Exit status 0: told to,
or the load failed (already reported); 70: a bug, 71: it ran out of memory, each with its traceback
on stderr. Knows no scheduling and no model.
"""

from __future__ import annotations

import importlib
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

import msgspec

from plait.engines import affinity, ipc
from plait.engines.base import (
    Engine,
    Event,
    Fault,
    Loader,
    LoadFailed,
    Loading,
    LoadSpec,
    Ready,
    UseCores,
)
from plait.engines.dying import (
    EXIT_BUG,
    EXIT_MEMORY,
    EXIT_OK,
    begin,
    exit_now,
)
from plait.engines.loop import WorkerLoop
from plait.engines.mailbox import Mailbox
from plait.engines.taken import taken_bytes
from plait.errors import ModelLoadFailed, PlaitError

ADAPTERS = {
    "kokoro-onnx": "plait.engines.kokoro.onnx_backend",
    "kokoro-torch": "plait.engines.kokoro.torch_backend",
    "llamacpp": "plait.engines.llamacpp.engine",
    "mlx": "plait.engines.mlx.engine",
    "onnx": "plait.engines.embed.loading",
    "scripted": "plait.engines.scripted.engine",
    "whisper": "plait.engines.whisper.engine",
}
# The extra that installs an adapter's library.
EXTRAS = {
    "kokoro-torch": "kokoro",
    "llamacpp": "llamacpp",
    "mlx": "mlx",
}

RECEIVE_BYTES = 256 * 1024
# Model threads hold the GIL for long; a cancel's reader must not wait 5 ms for its turn.
SWITCH_INTERVAL_SECONDS = 0.0005


def main() -> NoReturn:
    sock = begin("plait.engines.worker")
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        status = serve(sock)
    except MemoryError:
        traceback.print_exc()
        status = EXIT_MEMORY
    except BaseException:  # noqa: BLE001 - the end of the process is how it is raised further
        traceback.print_exc()
        status = EXIT_BUG
    exit_now(status)


def serve(sock: socket.socket) -> int:
    """Load what the first frame says, then run until told to end. Returns the exit status."""
    spec, reader, first = _receive_spec(sock)
    affinity.bind(spec.cpus)
    mailbox = Mailbox()
    commands = CommandReader(sock, reader, mailbox)

    def send(events: list[Event]) -> None:
        # Blocks while the gateway is slow to read; the kernel's socket buffer is the bound.
        try:
            sock.sendall(ipc.encode_events(events))
        except OSError:
            exit_now(EXIT_OK)  # the gateway is gone, so nobody waits for anything

    thread = threading.Thread(target=commands.run, args=(first,), daemon=True, name="commands")
    thread.start()
    engine = _load(spec, mailbox, send)
    if engine is None:
        return EXIT_OK
    commands.interrupt = engine.interrupt
    send([Ready(msgspec.structs.replace(engine.info, loaded_bytes=taken_bytes()))])
    WorkerLoop(engine, mailbox, send).run()
    return EXIT_OK


class CommandReader:
    """The reader thread: frames to commands, flags and interrupts. Ends the process at EOF."""

    def __init__(self, sock: socket.socket, reader: ipc.FrameReader, mailbox: Mailbox) -> None:
        self._sock = sock
        self._reader = reader
        self._mailbox = mailbox
        self.interrupt: Callable[[], None] = lambda: None

    def run(self, frames: list[bytes]) -> NoReturn:
        """`frames` came in the same read as the load spec."""
        try:
            self._deliver(frames)
            while data := _receive(self._sock):
                self._deliver(self._reader.feed(data))
        except MemoryError:
            traceback.print_exc()
            exit_now(EXIT_MEMORY)
        except BaseException:  # noqa: BLE001 - a worker that hears no cancels must not live on
            traceback.print_exc()
            exit_now(EXIT_BUG)
        exit_now(EXIT_OK)  # not sys.exit: the main thread may be deep inside a model library

    def _deliver(self, frames: list[bytes]) -> None:
        for payload in frames:
            command = ipc.decode_command(payload)
            if isinstance(command, UseCores):
                affinity.bind(command.cpus)
            self._mailbox.put(command, len(payload))
            # A step may wait for whatever its jobs want: input, or only that the worker answers.
            self.interrupt()


def _receive(sock: socket.socket) -> bytes:
    try:
        return sock.recv(RECEIVE_BYTES)
    except ConnectionResetError:  # the gateway died with our events unread: an end like any other
        return b""


def _receive_spec(sock: socket.socket) -> tuple[LoadSpec, ipc.FrameReader, list[bytes]]:
    reader = ipc.FrameReader()
    while data := _receive(sock):
        if frames := reader.feed(data):
            return ipc.decode_spec(frames[0]), reader, frames[1:]
    exit_now(EXIT_OK)


def _load(spec: LoadSpec, mailbox: Mailbox, send: Callable[[list[Event]], None]) -> Engine | None:
    """None when the load failed, which the gateway then knows already."""

    def report(phase: str, percent: int | None) -> None:
        send([Loading(phase, percent)])

    report("starting", None)
    try:
        return _loader(spec.engine)(spec, mailbox, report)
    except PlaitError as error:
        send([LoadFailed(Fault.of(error))])
    except MemoryError:
        failure = ModelLoadFailed(f"There is not enough memory to load model '{spec.model}'.")
        send([LoadFailed(Fault.of(failure))])
    except Exception as error:  # noqa: BLE001 - model libraries raise anything; it is typed here
        traceback.print_exc()
        message = (
            f"Engine '{spec.engine}' could not load model '{spec.model}' "
            f"({type(error).__name__}); the server's log says more."
        )
        send([LoadFailed(Fault.of(ModelLoadFailed(message)))])
    return None


def _loader(engine: str) -> Loader:
    module = ADAPTERS.get(engine)
    if module is None:
        known = ", ".join(sorted(ADAPTERS))
        raise ModelLoadFailed(f"There is no engine '{engine}'; choose one of: {known}.")
    try:
        load: Loader = importlib.import_module(module).load
    except ModuleNotFoundError as error:
        package = f"plait[{EXTRAS[engine]}]" if engine in EXTRAS else "plait"
        raise ModelLoadFailed(
            f"Engine '{engine}' needs the Python package '{error.name}', which is not installed "
            f"here: install {package} or choose another engine."
        ) from error
    return load


if __name__ == "__main__":
    main()
