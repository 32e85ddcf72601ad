"""What a session needs of a WebSocket. Does NOT know which library brings it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class SocketClosed(Exception):
    """The peer is gone; nothing can be sent and nothing more arrives."""


class Socket(Protocol):
    async def receive(self) -> str | bytes:
        """The next frame. Raises SocketClosed."""

    async def writable(self) -> bool:
        """Waits while the peer does not read; whether it did."""

    def send(self, frames: Sequence[str | bytes]) -> None:
        """Hand over all of them at once; to be called when `writable`. Raises SocketClosed."""

    async def close(self, code: int, reason: str) -> None: ...
