"""A process that serves streams one after the other: `python -m plait.engines.whisper.spawned`.

See `spawning`, whose other end this is. It loads the model for itself. Anything on its own socket
while it serves a stream is an abort; the end of that socket is its own end.
"""

from __future__ import annotations

import select
import socket
import traceback
from typing import NoReturn

from plait.engines.base import Fault
from plait.engines.dying import (
    EXIT_BUG,
    EXIT_OK,
    STREAM_OOM_SCORE,
    begin,
    exit_now,
)
from plait.engines.whisper.child import serve
from plait.engines.whisper.decoder import Aborted
from plait.engines.whisper.ears import Ears, load_ears
from plait.engines.whisper.messages import (
    RECEIVE_BYTES,
    Abort,
    Free,
    FromSpawned,
    Load,
    Loaded,
    LoadRefused,
    Serve,
    ToSpawned,
    decode_to_spawned,
    frame,
    reader,
)
from plait.errors import PlaitError


def main() -> NoReturn:
    sock = begin("plait.engines.whisper.spawned", STREAM_OOM_SCORE)
    try:
        status = SpawnedLoop(sock).run()
    except (BrokenPipeError, ConnectionResetError):
        status = EXIT_OK  # nobody is there any more
    except BaseException:  # noqa: BLE001 - the end of the process is how it is raised further
        traceback.print_exc()
        status = EXIT_BUG
    exit_now(status)


class SpawnedLoop:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = reader()
        self._messages: list[ToSpawned] = []
        self._streams: list[socket.socket] = []

    def run(self) -> int:
        """The exit status."""
        load = self._next()
        if load is None:
            return EXIT_OK
        assert isinstance(load, Load), "the first message says what to load"
        try:
            ears = load_ears(load.ears, load.weights, self._alarmed)
        except PlaitError as error:
            self._send(LoadRefused(Fault.of(error)))
            return EXIT_OK
        self._send(Loaded(ears.multilingual))
        while (message := self._next()) is not None:
            # An abort of a stream that has ended meanwhile means nothing.
            if isinstance(message, Serve) and not self._serve(self._streams.pop(0), ears):
                return EXIT_BUG
        return EXIT_OK

    def _serve(self, stream: socket.socket, ears: Ears) -> bool:
        with stream:
            if any(isinstance(message, Abort) for message in self._messages):
                sound = True  # it was aborted before it began
            else:
                try:
                    sound = serve(stream, ears, alarm=self._sock)
                except Aborted:
                    sound = True
        if sound:
            self._send(Free())
        return sound

    def _alarmed(self) -> bool:
        return bool(select.select([self._sock], [], [], 0)[0])

    def _next(self) -> ToSpawned | None:
        """Waits; None at the end."""
        while not self._messages:
            data, fds, _, _ = socket.recv_fds(self._sock, RECEIVE_BYTES, 1)
            self._streams += [socket.socket(fileno=fd) for fd in fds]
            if not data:
                return None
            self._messages += map(decode_to_spawned, self._reader.feed(data))
        return self._messages.pop(0)

    def _send(self, message: FromSpawned) -> None:
        self._sock.sendall(frame(message))


if __name__ == "__main__":
    main()
