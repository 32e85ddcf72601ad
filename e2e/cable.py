"""A network cable between browser and server that a test can pull: a TCP relay on loopback.

While cut, established connections are gone and new ones are refused by closing them.
"""

from __future__ import annotations

import contextlib
import socket
import threading

CHUNK_BYTES = 65536


class Cable:
    """Listens at `port` once built; `join` names the far end, `cut` and `mend` do what they say."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._target_port: int | None = None
        self._whole = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def join(self, target_port: int) -> None:
        self._target_port = target_port
        self.mend()

    def mend(self) -> None:
        with self._lock:
            self._whole = True

    def cut(self) -> None:
        with self._lock:
            self._whole = False
            sockets, self._sockets = self._sockets, set()
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            self._relay(near)

    def _relay(self, near: socket.socket) -> None:
        with self._lock:
            if not self._whole:
                near.close()
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target_port))
            except OSError:
                near.close()  # nobody there: as if cut
                return
            self._sockets |= {near, far}
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        """Until either end is gone; then both are. The reader closes, so no number is reused."""
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._sockets.discard(source)
        source.close()
