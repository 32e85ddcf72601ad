"""One HTTP request on a TCP connection of its own, read as it comes and left as a client leaves.

A hang-up is exact: `close` sends a FIN (what has arrived is read first, or the kernel would turn it
into a reset), `reset` sends a TCP RST. HTTP/1.1 by h11, over a bare socket so that nothing buffers
in between. Plain http only. Does NOT know what is asked nor what the answer means.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import monotonic
from typing import Literal
from urllib.parse import urlsplit

import h11

from plait.bench.serving import BenchError

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 900.0  # between two pieces; a request may wait in a long queue
RECEIVE_BYTES = 65536
ERROR_BYTES = 4096  # of an error's body
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Address:
    """`base`: path before `/v1`. `api_key` is sent as a bearer token. `model`: "" if not named."""

    host: str
    port: int
    base: str = ""
    api_key: str | None = None
    model: str = ""

    @classmethod
    def of(cls, url: str, api_key: str | None = None) -> Address:
        """From `http://host:port`, also with `/v1` and with `#model`. Raises BenchError."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or 80
        except ValueError as error:
            raise BenchError(f"{url} is not a URL ({error}); give http://host:port") from error
        if parts.scheme != "http" or not host:
            raise BenchError(
                f"{url}: hang-ups are made on plain TCP connections, so the bench needs "
                "http://host:port; reach a server behind TLS through a tunnel"
            )
        base = parts.path.rstrip("/").removesuffix("/v1")
        return cls(host, port, base, api_key, parts.fragment)

    def __str__(self) -> str:
        return f"http://{self.host}:{self.port}{self.base}"


class HttpExchange:
    """`send` once, then read the body by `next_piece` or `leave`. One task at a time reads."""

    def __init__(self, address: Address, connection: socket.socket) -> None:
        self.address = address
        self.socket = connection
        self.status: int | None = None
        self.content_type = ""
        self.left_at: float | None = None
        self._http = h11.Connection(h11.CLIENT)
        self._waiting: asyncio.Future[bool] | None = None

    async def send(self, method: Literal["GET", "POST"], path: str, body: bytes = b"") -> None:
        """Raises BenchError."""
        host, port = self.address.host, self.address.port
        headers = [("Host", f"{host}:{port}"), ("Accept", "text/event-stream, application/json")]
        if body:
            headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        if self.address.api_key:
            headers.append(("Authorization", f"Bearer {self.address.api_key}"))
        target = self.address.base + path
        sent = self._http.send(h11.Request(method=method, target=target, headers=headers)) or b""
        sent += (self._http.send(h11.Data(body)) or b"") if body else b""
        sent += self._http.send(h11.EndOfMessage()) or b""
        try:
            await asyncio.get_running_loop().sock_sendall(self.socket, sent)
        except OSError as error:
            raise BenchError(f"{self.address} did not take the request: {error}") from error

    async def next_piece(self) -> bytes | None:
        """The next bytes of the body, none when woken; None at its end.

        Safe to cancel: nothing that has arrived is lost. Raises BenchError, also for an
        error status.
        """
        while True:
            piece = self._next_received()
            if piece is not h11.NEED_DATA:
                assert piece is None or isinstance(piece, bytes)
                if self.status is not None and self.status >= 400:
                    raise await self._refusal(piece or b"")
                return piece
            received = await self._recv()
            if received is None:
                return b""
            self._http.receive_data(received)

    def wake(self) -> None:
        """Whoever waits in `next_piece` gets an empty piece."""
        if self._waiting is not None:
            _resolve(self._waiting, False)

    def arrived(self) -> list[bytes]:
        """What of the body has arrived and was not read yet; does not wait."""
        with contextlib.suppress(BlockingIOError, OSError, h11.RemoteProtocolError):
            while data := self.socket.recv(RECEIVE_BYTES):
                self._http.receive_data(data)
        pieces: list[bytes] = []
        with contextlib.suppress(BenchError):
            while isinstance(piece := self._next_received(), bytes):
                pieces.append(piece)
        return pieces

    def leave(self, *, reset: bool) -> float:
        """The monotonic moment. Idempotent."""
        if self.left_at is None:
            with contextlib.suppress(OSError):  # the other side may have left sooner
                if reset:
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
                else:
                    self.socket.shutdown(socket.SHUT_RDWR)
            self.socket.close()
            self.left_at = monotonic()
        return self.left_at

    # --- bytes ---------------------------------------------------------------------------------

    def _next_received(self) -> bytes | type[h11.NEED_DATA] | None:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise BenchError(f"{self.address} does not answer in HTTP: {error}") from error
            if isinstance(event, h11.Response):
                self.status = event.status_code
                self.content_type = dict(event.headers).get(b"content-type", b"").decode("latin-1")
            elif isinstance(event, h11.Data):
                return bytes(event.data)
            elif event is h11.NEED_DATA:
                return h11.NEED_DATA
            elif not isinstance(event, h11.InformationalResponse):
                return None

    async def _recv(self) -> bytes | None:
        """None when woken. A read that is cancelled has taken nothing from the socket."""
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                while True:
                    with contextlib.suppress(BlockingIOError):
                        return self.socket.recv(RECEIVE_BYTES)
                    if not await self._readable():
                        return None
        except TimeoutError as error:
            raise BenchError(f"{self.address} said nothing for {SILENCE_SECONDS:g} s") from error
        except OSError as error:
            raise BenchError(f"{self.address} broke the connection off: {error}") from error

    async def _readable(self) -> bool:
        """False when woken."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        self._waiting = waiting
        loop.add_reader(self.socket, _resolve, waiting, True)
        try:
            return await waiting
        finally:
            loop.remove_reader(self.socket)
            self._waiting = None

    async def _refusal(self, begun: bytes) -> BenchError:
        body = begun
        with contextlib.suppress(BenchError):
            while len(body) < ERROR_BYTES:
                piece = self._next_received()
                if piece is h11.NEED_DATA:
                    self._http.receive_data(await self._recv() or b"")
                    continue
                if not isinstance(piece, bytes):
                    break
                body += piece
        lines = body.decode("utf-8", "replace").strip().splitlines() or ["(no body)"]
        return BenchError(
            f"{self.address} answered HTTP {self.status}: {lines[0][:300]}; "
            "is it an OpenAI-compatible server, and does it take this request?"
        )


@contextlib.asynccontextmanager
async def connected(address: Address) -> AsyncIterator[HttpExchange]:
    """A new connection, closed with the block. Raises BenchError when there is none."""
    exchange = HttpExchange(address, await _connect(address))
    try:
        yield exchange
    finally:
        exchange.leave(reset=False)


async def get(address: Address, path: str) -> bytes:
    """The whole body. Raises BenchError."""
    async with connected(address) as exchange:
        await exchange.send("GET", path)
        pieces = []
        while (piece := await exchange.next_piece()) is not None:
            pieces.append(piece)
    return b"".join(pieces)


def _resolve(waiting: asyncio.Future[bool], readable: bool) -> None:
    if not waiting.done():
        waiting.set_result(readable)


async def _connect(address: Address) -> socket.socket:
    loop = asyncio.get_running_loop()
    why: Exception | None = None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await loop.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
            for family, kind, proto, _, sockaddr in found:
                connection = socket.socket(family, kind, proto)
                try:
                    connection.setblocking(False)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    await loop.sock_connect(connection, sockaddr)
                except OSError as error:
                    connection.close()
                    why = error
                except BaseException:
                    connection.close()
                    raise
                else:
                    return connection
    except (TimeoutError, OSError) as error:
        why = error
    raise BenchError(
        f"{address} cannot be reached ({why or 'no address'}); start the server or correct the URL"
    )
