"""The gateway's end of the socket to one worker process: frames in, frames out, signs of life.

One link per worker: when it is closed nothing of that worker is delivered any more, so a restarted
engine can never be mistaken for its predecessor. Knows no process and no restart policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from plait.engines import ipc
from plait.engines.base import Command, Event, LoadSpec, Ping

# What one read brings is delivered at one go, and the sessions that are to send it wait meanwhile:
# asyncio's own 256 KiB can hold thousands of tokens.
READ_BYTES = 16 * 1024


class WorkerLink(asyncio.BufferedProtocol):
    """`deliver(events)` is called per frame, in order, until `closed` is set.

    `fault` says why the link gave up on the worker, None when the worker's end went first.
    """

    def __init__(
        self,
        deliver: Callable[[list[Event]], None],
        *,
        clock: Callable[[], float],
        max_backlog_bytes: int,
    ) -> None:
        self.closed = asyncio.Event()
        self.fault: str | None = None
        self.last_progress = clock()
        self.silent_beats = 0
        self._deliver = deliver
        self._clock = clock
        self._max_backlog_bytes = max_backlog_bytes
        self._reader = ipc.FrameReader()
        self._incoming = memoryview(bytearray(READ_BYTES))
        self._transport: asyncio.Transport | None = None

    # --- asyncio.BufferedProtocol --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._incoming

    def buffer_updated(self, nbytes: int) -> None:
        self.last_progress = self._clock()
        self.silent_beats = 0
        try:
            for payload in self._reader.feed(self._incoming[:nbytes]):
                if self.fault is not None:
                    return
                self._deliver(ipc.decode_events(payload))
        except ipc.FrameError:
            self.give_up("it sent an unreadable frame")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.closed.set()

    # --- for the owner -------------------------------------------------------------------------

    def send(self, command: Command | LoadSpec) -> None:
        """Never blocks; nothing once closed.

        The write buffer is bounded: the scheduler bounds what a stream may have outstanding, so a
        backlog above the limit means a worker that stopped reading, and it is given up.
        """
        transport = self._transport
        if transport is None or self.fault is not None:
            return
        transport.write(ipc.encode_command(command))
        if transport.get_write_buffer_size() > self._max_backlog_bytes:
            self.give_up("it stopped reading its commands")

    def beat(self) -> None:
        """Once per heartbeat interval: ask for a sign of life and count how long none came.

        Beats are counted, not seconds: while the gateway itself does not run (a suspended machine,
        a stopped process) nothing is held against the worker.
        """
        self.silent_beats += 1
        self.send(Ping(self.silent_beats))

    def give_up(self, fault: str) -> None:
        """Deliver nothing more and close; idempotent, the first reason stays."""
        if self.fault is None:
            self.fault = fault
        if self._transport is not None:
            self._transport.abort()
