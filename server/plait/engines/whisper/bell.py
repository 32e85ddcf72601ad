"""Wakes whoever waits on sockets, from any thread. Does NOT know why."""

from __future__ import annotations

import socket

ROOM_BYTES = 4096


class Bell:
    def __init__(self) -> None:
        self._bell, self._hammer = socket.socketpair()
        for end in (self._bell, self._hammer):
            end.setblocking(False)

    def fileno(self) -> int:
        """To select on: readable once it was rung, until `quiet`."""
        return self._bell.fileno()

    def ring(self) -> None:
        try:
            self._hammer.send(b"\0")
        except OSError:
            return  # it rings already, many times over; or it is closed

    def quiet(self) -> None:
        """After it was rung."""
        self._bell.recv(ROOM_BYTES)

    def close(self) -> None:
        self._bell.close()
        self._hammer.close()
