"""Our end of the socket of one stream: messages of the adapter's in, what is said to it out.

Waiting is for the adapter, for an abort, and for a bell of our own. Does NOT know what is said.
"""

from __future__ import annotations

import select
import socket

from plait.engines.whisper.decoder import Aborted
from plait.engines.whisper.messages import (
    RECEIVE_BYTES,
    FromChild,
    ToChild,
    decode_to_child,
    frame,
    reader,
)


class LeftAlone(Exception):
    """The adapter closed its end: nobody waits for this stream."""


class Line:
    """`alarm`: another socket; anything on it is an abort."""

    def __init__(self, sock: socket.socket, alarm: socket.socket | None = None) -> None:
        self._sock = sock
        self._alarm = alarm
        self._watched = [sock] if alarm is None else [sock, alarm]
        self._reader = reader()

    def receive(
        self, patience_seconds: float | None, bell: socket.socket | None = None
    ) -> list[ToChild]:
        """What has come, waiting for it so long; None: until something comes. When `bell` has
        something to read the wait is over, too.

        Raises LeftAlone, and Aborted.
        """
        watched = self._watched if bell is None else [*self._watched, bell]
        readable, _, _ = select.select(watched, [], [], patience_seconds)
        if self._alarm is not None and self._alarm in readable:
            raise Aborted
        if self._sock not in readable:
            return []
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise LeftAlone
        return [decode_to_child(payload) for payload in self._reader.feed(data)]

    def say(self, *messages: FromChild) -> None:
        """Raises LeftAlone."""
        try:
            self._sock.sendall(frame(list(messages)))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise LeftAlone from error
