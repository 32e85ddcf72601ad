"""What a session needs of a WebSocket. Does NOT know which library brings it."""

from __future__ import annotations

from typing import Protocol


class SocketClosed(Exception):
    """The peer is gone; nothing can be sent and nothing more arrives."""


class Socket(Protocol):
    async def receive(self) -> str | bytes:
        """The next frame. Raises SocketClosed."""

    async def send(self, frame: str | bytes) -> None:
        """Waits while the peer does not read. Raises SocketClosed."""

    async def close(self, code: int, reason: str) -> None: ...
