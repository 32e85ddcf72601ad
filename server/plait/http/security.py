"""What a request must show before anything is done for it: Host, Origin, and where its secrets are.

Host guards against DNS rebinding and is checked on every route; the names come from configuration,
never from the request. Origin, when present, must match exactly. Absent Origin means a program and
is allowed. An app's own origins pass on the routes that ask for a token, and there count for that
app's tokens only. A token comes in a header or a subprotocol; in a URL it is refused, unread.
Does NOT know: which tokens are good (see `access`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
SUBPROTOCOL = "plait.v1"
TOKEN_PREFIX = "plait.token."
WILDCARDS = ("", "0.0.0.0", "::", "*")
# Routes that ask for a token, where an app's own origins may come.
GUARDED: Final = ("/v1/ws", "/v1/ticket", "/v1/status", "/metrics")
ORIGIN_REFUSED: Final = "This Origin may not use this server; add it to allowed_origins.\n"
SECRET_IN_URL: Final = (
    "A token in a URL ends up in logs: revoke it, and send the new one as Authorization: Bearer.\n"
)
SECRET_PARAMETER: Final = re.compile(
    rb"(?:^|[&;])(?:(?:access_)?token|api_key|ticket|authorization)(?:[=&;]|$)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Perimeter:
    """Who may ask. `hosts` are names without port; `origins` are scheme://host:port, `app_origins`
    those of the apps that have their own."""

    hosts: frozenset[str]
    origins: frozenset[str]
    app_origins: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        host: str,
        port: int,
        allowed_hosts: Iterable[str],
        allowed_origins: Iterable[str],
        app_origins: Mapping[str, Iterable[str]],
    ) -> Perimeter:
        """The server's own names and origins plus what is configured."""
        own = {*LOOPBACK_NAMES, *allowed_hosts}
        if host not in WILDCARDS:
            own.add(f"[{host}]" if ":" in host else host)
        names = frozenset(name.lower() for name in own)
        origins = {f"http://{name}:{port}" for name in names}
        if port == 80:
            origins |= {f"http://{name}" for name in names}
        own_origins = {app: frozenset(given) for app, given in app_origins.items() if given}
        return cls(names, frozenset(origins | set(allowed_origins)), own_origins)

    def host_allowed(self, host: str | None) -> bool:
        if host is None:
            return False
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        return (name if port.isdigit() else host).lower() in self.hosts

    def origin_allowed(self, origin: str | None, path: str) -> bool:
        """Whether a page of that origin may ask at all; of an app's origin the token decides."""
        if origin is None or origin in self.origins:
            return True
        return path in GUARDED and any(origin in own for own in self.app_origins.values())

    def origin_counts(self, origin: str | None, app: str | None) -> bool:
        """Whether a page of that origin may use that app's tokens: the server's origins may, and
        the app's own."""
        own = self.app_origins.get(app, frozenset()) if app is not None else frozenset()
        return origin is None or origin in self.origins or origin in own


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
            if SECRET_PARAMETER.search(scope["query_string"]):
                await deny(scope, receive, send, 400, SECRET_IN_URL)
                return
            refusal = self._refusal(Headers(scope=scope), scope["path"])
            if refusal is not None:
                await deny(scope, receive, send, 403, refusal)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers, path: str) -> str | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._perimeter.host_allowed(hosts[0]):
            return "This Host is not served here; add its name to allowed_hosts.\n"
        origin = next(iter(origins), None)
        if len(origins) > 1 or not self._perimeter.origin_allowed(origin, path):
            return ORIGIN_REFUSED
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
