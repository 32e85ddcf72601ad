"""What a request must show before anything is done for it: Host, Origin, and a token if asked for.

Host guards against DNS rebinding and is checked on every route; the names come from configuration,
never from the request. Origin, when present, must match exactly. Absent Origin means a program and
is allowed. Tokens are compared in constant time, come in a header or a subprotocol, never in a URL.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
SUBPROTOCOL = "plait.v1"
TOKEN_PREFIX = "plait.token."
WILDCARDS = ("", "0.0.0.0", "::", "*")


@dataclass(frozen=True, slots=True)
class Perimeter:
    """Who may ask. `hosts` are names without port; `origins` are scheme://host:port."""

    hosts: frozenset[str]
    origins: frozenset[str]
    tokens: tuple[bytes, ...]

    @classmethod
    def build(
        cls,
        host: str,
        port: int,
        allowed_hosts: Iterable[str],
        allowed_origins: Iterable[str],
        tokens: Iterable[str],
    ) -> Perimeter:
        """The server's own names and origins plus what is configured."""
        own = {*LOOPBACK_NAMES, *allowed_hosts}
        if host not in WILDCARDS:
            own.add(f"[{host}]" if ":" in host else host)
        names = frozenset(name.lower() for name in own)
        origins = {f"http://{name}:{port}" for name in names}
        if port == 80:
            origins |= {f"http://{name}" for name in names}
        return cls(
            names, frozenset(origins | set(allowed_origins)), tuple(t.encode() for t in tokens)
        )

    def host_allowed(self, host: str | None) -> bool:
        if host is None:
            return False
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        return (name if port.isdigit() else host).lower() in self.hosts

    def origin_allowed(self, origin: str | None) -> bool:
        return origin is None or origin in self.origins

    @property
    def token_required(self) -> bool:
        return bool(self.tokens)

    def token_allowed(self, token: bytes | None) -> bool:
        if not self.tokens:
            return True
        # Compare with all, so that timing does not tell which one came close.
        matches = [hmac.compare_digest(token or b"", known) for known in self.tokens]
        return any(matches)


def bearer(authorization: str | None) -> bytes | None:
    """The token of an `Authorization: Bearer` header."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    # Starlette reads header bytes as Latin-1. Most programs send UTF-8, some Latin-1 itself.
    sent = token.strip().encode("latin-1")
    try:
        sent.decode()
    except UnicodeDecodeError:
        return token.strip().encode()
    return sent


def subprotocol_token(offered: Sequence[str]) -> bytes | None:
    """The token a browser offered as `plait.token.<base64url, unpadded>`."""
    for name in offered:
        if name.startswith(TOKEN_PREFIX):
            encoded = name.removeprefix(TOKEN_PREFIX)
            try:
                padded = encoded + "=" * (-len(encoded) % 4)
                return base64.b64decode(padded, altchars=b"-_", validate=True)
            except (binascii.Error, ValueError):
                return None
    return None


class PerimeterMiddleware:
    """Refuses with HTTP 403, before routing and before a WebSocket is accepted."""

    def __init__(self, app: ASGIApp, perimeter: Perimeter) -> None:
        self._app = app
        self._perimeter = perimeter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            refusal = self._refusal(Headers(scope=scope))
            if refusal is not None:
                await deny(scope, receive, send, 403, refusal)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers) -> str | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._perimeter.host_allowed(hosts[0]):
            return "This Host is not served here; add its name to allowed_hosts.\n"
        if len(origins) > 1 or not self._perimeter.origin_allowed(next(iter(origins), None)):
            return "This Origin may not use this server; add it to allowed_origins.\n"
        return None


async def deny(scope: Scope, receive: Receive, send: Send, status: int, text: str) -> None:
    """Answer a request, or a WebSocket handshake before it is accepted, with plain HTTP."""
    response = PlainTextResponse(text, status_code=status)
    if scope["type"] != "websocket":
        await response(scope, receive, send)
        return
    await receive()  # websocket.connect
    headers = [(name, value) for name, value in response.raw_headers]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})
