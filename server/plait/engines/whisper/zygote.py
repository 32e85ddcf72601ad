"""The process that stream processes come from: `python -m plait.engines.whisper.zygote`.

It loads what they share, gives a process to each stream, stops, continues and kills them, and says
when one is gone, whatever ended it. As their parent it can kill without mistaking one pid for
another. Single-threaded, and it never decodes: a fork of a process with threads, or with a
started OpenMP pool, would hang. It ends, and they with it, when the adapter closes the socket.
How processes come and go is `forking`'s or `spawning`'s; does NOT know streams.
"""

from __future__ import annotations

import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn, Protocol

from plait.engines.base import Fault
from plait.engines.dying import (
    EXIT_BUG,
    EXIT_OK,
    begin,
    exit_now,
)
from plait.engines.whisper.forking import ForkedStreams
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
    decode_to_zygote,
    frame,
    reader,
)
from plait.engines.whisper.spawning import SpawnedStreams
from plait.errors import PlaitError

MOST_SOCKETS = 16  # in one message; each `Open` brings one


class Streams(Protocol):
    """Processes for streams, by job. What has ended is told by `gone`, once per `open`."""

    def load(self) -> bool:
        """Whether the model knows several languages. Raises ModelLoadFailed."""

    def open(self, job: int, sock: socket.socket) -> None:
        """Takes the socket over. Raises OSError when there is no process to be had."""

    def kill(self, job: int) -> None: ...

    def stop(self, job: int) -> None: ...

    def go(self, job: int) -> None: ...

    def reap(self) -> list[Gone]:
        """After a SIGCHLD, or something on `sockets`, or at `deadline`: which jobs are gone."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...

    @property
    def deadline(self) -> float | None:
        """When `reap` wants to be called at the latest, in monotonic seconds."""

    def close(self) -> None:
        """Kill all."""


def main() -> NoReturn:
    sock = begin("plait.engines.whisper.zygote")
    try:
        Zygote(sock).run()
    except BaseException:  # noqa: BLE001 - the end of the process is how it is raised further
        traceback.print_exc()
        exit_now(EXIT_BUG)
    exit_now(EXIT_OK)


class Zygote:
    """Its loop: what the adapter asks, and what ends by itself."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = reader()
        self._sockets: list[socket.socket] = []  # that came for an `Open` not yet read
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)
        self._bell = _ring_at_child_deaths()
        self._selector.register(self._bell, selectors.EVENT_READ)

    def run(self) -> None:
        """Until the adapter closes its end."""
        messages = self._receive()
        if not messages:
            return
        load = messages[0]
        assert isinstance(load, Load), "the first message says what to load"
        streams = self._load(load)
        if streams is None:
            return
        try:
            self._serve(streams, messages[1:])
        finally:
            streams.close()

    def _load(self, load: Load) -> Streams | None:
        self._send(Loading("reading weights"))
        streams: Streams = ForkedStreams(load) if load.isolation == "fork" else SpawnedStreams(load)
        try:
            self._send(Loaded(streams.load()))
        except PlaitError as error:
            self._send(LoadRefused(Fault.of(error)))
            return None
        return streams

    def _serve(self, streams: Streams, messages: list[ToZygote] | None) -> None:
        watched: set[socket.socket] = set()
        while messages is not None:
            for message in messages:
                self._apply(streams, message)
            self._send(*streams.reap())
            watched = self._watch(watched, set(streams.sockets))
            messages = self._wait(streams.deadline)

    def _wait(self, deadline: float | None) -> list[ToZygote] | None:
        """What the adapter says, if that is what woke us; None at its end."""
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = [key.fileobj for key, _ in self._selector.select(seconds)]
        if self._bell in ready:
            self._bell.recv(RECEIVE_BYTES)
        if self._sock not in ready:
            return []
        return self._receive()

    def _watch(self, before: set[socket.socket], now: set[socket.socket]) -> set[socket.socket]:
        for sock in before - now:
            self._selector.unregister(sock)
        for sock in now - before:
            self._selector.register(sock, selectors.EVENT_READ)
        return now

    def _apply(self, streams: Streams, message: ToZygote) -> None:
        match message:
            case Open(job):
                try:
                    streams.open(job, self._sockets.pop(0))
                except OSError as error:
                    sys.stderr.write(f"no process for a stream: {error.strerror}\n")
                    self._send(Gone(job, None))
            case Kill(job):
                streams.kill(job)
            case Stop(job):
                streams.stop(job)
            case Go(job):
                streams.go(job)
            case Load():
                raise AssertionError("loaded twice")

    def _receive(self) -> list[ToZygote] | None:
        """At least one message; None at the end."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self._sock, RECEIVE_BYTES, MOST_SOCKETS)
            except ConnectionResetError:
                return None
            self._sockets += [socket.socket(fileno=fd) for fd in fds]
            if not data:
                return None
            if frames := self._reader.feed(data):
                return [decode_to_zygote(payload) for payload in frames]

    def _send(self, *messages: FromZygote) -> None:
        if messages:
            try:
                self._sock.sendall(b"".join(map(frame, messages)))
            except (BrokenPipeError, ConnectionResetError):
                exit_now(EXIT_OK)  # the adapter is gone; nobody waits for anything


def _ring_at_child_deaths() -> socket.socket:
    """A socket that becomes readable with each SIGCHLD."""
    bell, hammer = socket.socketpair()
    for end in (bell, hammer):
        end.setblocking(False)
    signal.set_wakeup_fd(hammer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return bell


if __name__ == "__main__":
    main()
