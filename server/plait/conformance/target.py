"""Which server, and how one gets in: its address, a token, an Origin; handshakes by hand.

Does NOT know what is asked over a connection.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.protocol import Event
from websockets.typing import Origin, Subprotocol

from plait.conformance.unreachable import not_connected, refused

ENDPOINT = "/v1/ws"
SUBPROTOCOL = "plait.v1"
HANDSHAKE_KEY = base64.b64encode(b"plait conformant").decode()
CLOSE_SECONDS = 2.0


class Connection(ClientConnection):
    """A client that notes the server's pings; the library answers them."""

    _pinged: asyncio.Event | None = None

    def process_event(self, event: Event) -> None:
        if isinstance(event, Frame) and event.opcode is Opcode.PING and self._pinged:
            self._pinged.set()
        super().process_event(event)

    async def next_ping(self) -> None:
        self._pinged = asyncio.Event()
        await self._pinged.wait()


class TargetError(Exception):
    """The server cannot be asked at all; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """`url`: ws:// or wss://, with the endpoint. `token` empty: none is shown."""

    url: str
    token: str = field(default="", repr=False)
    origin: str = ""
    seconds: float = 30.0

    @classmethod
    def of(cls, url: str, token: str = "", origin: str = "", seconds: float = 30.0) -> Target:
        """From http(s):// or ws(s)://host:port. Raises TargetError for anything else."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        scheme = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}.get(parts.scheme)
        if scheme is None or not parts.hostname:
            raise TargetError(f"{url} is not an address. Give http://host:port.")
        if parts.query or "@" in parts.netloc:
            raise TargetError("The address may not hold a secret. Use --token or PLAIT_TOKEN.")
        path = parts.path.rstrip("/") or ENDPOINT
        return cls(f"{scheme}://{parts.netloc}{path}", token, origin, seconds)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    def as_page(self) -> Target:
        """Without a token, and with an Origin: the server's own where none was given."""
        own = "http" + self.url.removeprefix("ws").removesuffix(self.path)
        return replace(self, token="", origin=self.origin or own)

    async def connect(
        self,
        *,
        subprotocols: Sequence[str] = (SUBPROTOCOL,),
        compression: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Connection:
        """Raises websockets' InvalidHandshake, or OSError."""
        shown = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connected = await connect(
            self.url,
            create_connection=Connection,
            subprotocols=[Subprotocol(each) for each in subprotocols],
            compression=compression,
            origin=Origin(self.origin) if self.origin else None,
            additional_headers=shown | dict(headers or {}),
            max_size=None,
            ping_interval=None,
            close_timeout=CLOSE_SECONDS,
            open_timeout=self.seconds,
            proxy=None,
        )
        assert isinstance(connected, Connection)
        return connected

    async def reach(self) -> Connection:
        """As `connect`; raises TargetError with what to do."""
        try:
            return await self.connect()
        except InvalidStatus as error:
            raise TargetError(refused(self.url, error.response.status_code, error)) from error
        except InvalidHandshake as error:
            raise TargetError(refused(self.url, await self._status_given(), error)) from error
        except OSError as error:
            raise TargetError(not_connected(self.url, error)) from error

    async def _status_given(self) -> int:
        """Read leniently: HTTP/1.0 is none to the library, yet its status tells what is there."""
        try:
            status, _ = await self.status(self.upgrade())
        except (OSError, asyncio.LimitOverrunError):
            return 0
        return status

    # --- by hand ---------------------------------------------------------------------------------

    def upgrade(self, **changed: str | None) -> dict[str, str]:
        """Headers of a good handshake; a value None leaves one out, `_` stands for `-`."""
        headers: dict[str, str | None] = {
            "Host": self.host,
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": HANDSHAKE_KEY,
            "Sec-WebSocket-Protocol": SUBPROTOCOL,
            "Authorization": f"Bearer {self.token}" if self.token else None,
            "Origin": self.origin or None,
        }
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        return {name: value for name, value in headers.items() if value is not None}

    async def status(
        self, headers: Mapping[str, str], path: str = "", method: str = "GET"
    ) -> tuple[int, str]:
        """The HTTP status a request gets, and what follows it, as far as it came at once."""
        parts = urlsplit(self.url)
        secure = ssl.create_default_context() if parts.scheme == "wss" else None
        port = parts.port or (443 if secure else 80)
        async with asyncio.timeout(self.seconds):
            reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure)
            try:
                lines = [f"{method} {path or self.path} HTTP/1.1"]
                lines += [f"{name}: {value}" for name, value in headers.items()]
                writer.write("\r\n".join([*lines, "", ""]).encode())
                head = await reader.readuntil(b"\r\n\r\n")
                status = int(head.split(b" ", 2)[1])
                body = await _body(reader, head) if status != 101 else b""
            except (asyncio.IncompleteReadError, IndexError, ValueError):
                return 0, "the connection ended without an HTTP answer"
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        return status, (head + body).decode(errors="replace")


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return await reader.readexactly(int(value))
    return b""
