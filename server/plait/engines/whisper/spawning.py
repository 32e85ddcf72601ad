"""Streams in spawned processes, each with weights of its own: for systems where fork is unsafe.

A process serves one stream after the other and is kept while it is free, up to `Load.spares`; one
more is always under way, so that a stream rarely waits for a load. A stream is aborted by a word
on its process' own socket, which the model's abort callback looks at; who has not confirmed after
`CONFIRM_SECONDS` is killed. Does NOT know who asks (see `zygote`), nor what a stream says.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

from plait.engines.ipc import FrameReader
from plait.engines.whisper.messages import (
    RECEIVE_BYTES,
    Abort,
    Free,
    FromSpawned,
    Gone,
    Load,
    Loaded,
    LoadRefused,
    Serve,
    decode_from_spawned,
    frame,
    reader,
)
from plait.errors import ModelLoadFailed

CONFIRM_SECONDS = 0.05


@dataclass(eq=False, slots=True)
class Spawned:
    """A process of ours. `stream`: the socket of its job, until it is loaded and gets it."""

    process: subprocess.Popen[bytes]
    sock: socket.socket
    job: int | None = None
    stream: socket.socket | None = None
    loaded: bool = False
    stopped: bool = False
    abort_until: float | None = None
    words: FrameReader = field(default_factory=reader)

    def receive(self) -> list[FromSpawned] | None:
        """Waits for it. None: it is dead, or as good as."""
        try:
            data = self.sock.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            return None
        return [decode_from_spawned(one) for one in self.words.feed(data)] if data else None

    def serve(self) -> None:
        """Hand it its stream. That it is dead is seen when its end is read."""
        assert self.stream is not None
        with contextlib.suppress(BrokenPipeError), self.stream:
            socket.send_fds(self.sock, [frame(Serve())], [self.stream.fileno()])
        self.stream = None

    def end(self) -> int:
        """Kill it and wait: how it ended."""
        self.sock.close()
        if self.stream is not None:
            self.stream.close()
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()


class SpawnedStreams:
    """Implements `Streams`; see `zygote`."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._all: list[Spawned] = []
        self._gone: list[Gone] = []
        # What cannot even load would be spawned for ever: the next stream tries again.
        self._spares_fail = False

    @property
    def sockets(self) -> list[socket.socket]:
        return [one.sock for one in self._all]

    @property
    def deadline(self) -> float | None:
        return min((one.abort_until for one in self._all if one.abort_until), default=None)

    def load(self) -> bool:
        """By the first process, which is then free for the first stream."""
        first = self._spawn()
        while (messages := first.receive()) is not None:
            for message in messages:
                match message:
                    case Loaded(multilingual):
                        first.loaded = True
                        return multilingual
                    case LoadRefused(fault):
                        raise fault.to_error()
        first.end()
        raise ModelLoadFailed(
            "The process that loads the Whisper model died: its file is damaged, or there is not "
            "enough memory. Verify the model, or use a smaller one."
        )

    def open(self, job: int, sock: socket.socket) -> None:
        free = sorted((one for one in self._all if one.job is None), key=lambda one: not one.loaded)
        try:
            child = free[0] if free else self._spawn()
        except OSError:
            sock.close()
            raise
        child.job, child.stream = job, sock
        if child.loaded:
            child.serve()
        self._spares_fail = False

    def kill(self, job: int) -> None:
        child = self._of(job)
        if child is None or child.abort_until is not None:
            return
        if child.stream is not None:  # it never heard of it
            child.stream.close()
            child.stream = None
            self._free(child, 0)
        elif child.stopped:
            self._lose(child)
        else:
            child.abort_until = time.monotonic() + CONFIRM_SECONDS
            with contextlib.suppress(BrokenPipeError):
                child.sock.sendall(frame(Abort()))

    def stop(self, job: int) -> None:
        self._signal(job, signal.SIGSTOP)

    def go(self, job: int) -> None:
        self._signal(job, signal.SIGCONT)

    def reap(self) -> list[Gone]:
        readable, _, _ = select.select(self.sockets, [], [], 0) if self._all else ([], [], [])
        for child in [one for one in self._all if one.sock in readable]:
            self._hear(child)
        now = time.monotonic()
        for child in [one for one in self._all if one.abort_until and one.abort_until <= now]:
            self._lose(child)
        self._keep_spares()
        gone, self._gone = self._gone, []
        return gone

    def close(self) -> None:
        for child in self._all:
            child.end()

    def _hear(self, child: Spawned) -> None:
        messages = child.receive()
        if messages is None:
            self._lose(child)
            return
        for message in messages:
            match message:
                case Loaded():
                    child.loaded = True
                    if child.stream is not None:
                        child.serve()
                case Free():
                    self._free(child, 0)
                case LoadRefused(fault):
                    sys.stderr.write(f"a spawned process could not load: {fault.message}\n")

    def _free(self, child: Spawned, status: int) -> None:
        assert child.job is not None
        self._gone.append(Gone(child.job, status))
        child.job = child.abort_until = None

    def _lose(self, child: Spawned) -> None:
        self._all.remove(child)
        status = child.end()
        if child.job is not None:
            self._free(child, status)
        elif not child.loaded:
            self._spares_fail = True

    def _keep_spares(self) -> None:
        free = [one for one in self._all if one.job is None]
        for child in free[max(1, self._load.spares) :]:
            self._all.remove(child)
            child.end()
        if not free and not self._spares_fail:
            try:
                self._spawn()
            except OSError:  # the next stream will be told, if it lasts
                self._spares_fail = True

    def _of(self, job: int) -> Spawned | None:
        return next((one for one in self._all if one.job == job), None)

    def _signal(self, job: int, number: signal.Signals) -> None:
        child = self._of(job)
        if child is not None:
            child.stopped = number is signal.SIGSTOP
            child.process.send_signal(number)

    def _spawn(self) -> Spawned:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    [
                        *(sys.executable, "-P", "-X", "faulthandler"),
                        *("-m", "plait.engines.whisper.spawned"),
                        *("--fd", str(theirs.fileno()), "--parent", str(os.getpid())),
                    ],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                )
            except OSError:
                ours.close()
                raise
        ours.sendall(frame(self._load))
        child = Spawned(process, ours)
        self._all.append(child)
        return child
