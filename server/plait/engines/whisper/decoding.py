"""A decode in a thread of its own, so that the stream's own thread goes on listening meanwhile.

One decode at a time. The thread is given a window, which is a copy, and gives words back; all
state stays with the stream's thread, which a bell tells when to fetch them. Thread and bell exist
from the first decode on, so a stream in silence has neither, and the zygote never has. Does NOT
know permits, nor what is made of the words.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from plait.engines.whisper.words import Decoded, Window


class Decoding:
    """`decode` is called in the other thread, and must let this one run while it computes."""

    def __init__(self, decode: Callable[[Window], Decoded]) -> None:
        self._decode = decode
        self._thread: ThreadPoolExecutor | None = None
        self._ends: tuple[socket.socket, ...] = ()
        self._window: Window | None = None
        self._result: Future[Decoded] | None = None

    @property
    def running(self) -> bool:
        """From `begin` until its words are taken."""
        return self._result is not None

    @property
    def bell(self) -> socket.socket | None:
        """Something can be read of it once a decode is over."""
        return self._ends[0] if self._ends else None

    def begin(self, window: Window) -> None:
        assert not self.running, "one decode at a time"
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "decode")
            self._ends = socket.socketpair()
        hammer = self._ends[1]
        self._window = window
        self._result = self._thread.submit(self._decode, window)
        self._result.add_done_callback(lambda _: hammer.sendall(b"\0"))

    def take(self) -> tuple[Window, Decoded] | None:
        """What was decoded; None while it is not over. Raises what the decode raised."""
        if self._result is None or not self._result.done():
            return None
        window, result = self._window, self._result
        assert window is not None
        self._ends[0].recv(1)  # at once or very soon: the bell is rung after it is done
        self._window = self._result = None
        return window, result.result()

    def close(self) -> None:
        """Waits for a decode that runs: nothing of this stream computes after it."""
        if self._thread is not None:
            self._thread.shutdown()
        for end in self._ends:
            end.close()
