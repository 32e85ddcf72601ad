"""What is served over plain HTTP: the playground, health, readiness and metrics.

`/healthz` says the process answers; `/readyz` says every model makes forward progress, which a
live but stuck worker does not; `/v1/status` is for people who watch. The playground is the
repository's `web/` as it stands: no build.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

import jinja2
import structlog
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import plait
from plait.access.access import Access
from plait.access.apps import Apps
from plait.descriptors import EXHAUSTED, count_open
from plait.http.guard import Guard
from plait.http.security import Perimeter
from plait.metrics import Metrics
from plait.scheduling.routing import Models

log = structlog.get_logger("plait.http")

SECURITY_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data:; "
        b"media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),  # revalidate: files are small and an upgrade must show
]


# A model that is out, or goes, or comes because somebody asked for it, is as it should be.
READY = ("ready", "unloading", "unloaded", "loading on demand")


def web_directory() -> Path:
    """`web/`: beside `server/` in a checkout, inside the package when installed from a wheel."""
    package = Path(plait.__file__).parent
    packaged = package / "_web"
    return packaged if packaged.is_dir() else package.parents[1] / "web"


class SecurityHeaders:
    """Adds the headers that keep the playground to its own code and data."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *SECURITY_HEADERS]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class Files(StaticFiles):
    """Also when no file can be opened, for want of descriptors: that passes, and is no bug."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_noting_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await super().__call__(scope, receive, send_noting_start)
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
            log.warning("file.not_served", reason=error.strerror)
            if not started:  # else the connection is closed with half an answer
                text = "The server has too many files open; try again in a moment.\n"
                await PlainTextResponse(text, status_code=503)(scope, receive, send)


class Gateway(Protocol):
    """What the pages show; `plait.app` provides it."""

    models: Models
    access: Access
    apps: Apps
    metrics: Metrics

    def readiness(self) -> dict[str, str]: ...

    def render_metrics(self) -> bytes: ...

    def status(self) -> dict[str, Any]: ...


class Pages:
    """Handlers over one gateway. `routes` is what the app mounts."""

    def __init__(self, gateway: Gateway, perimeter: Perimeter) -> None:
        self._gateway = gateway
        self._guard = Guard(gateway.access, gateway.apps, perimeter)
        self._web = web_directory()
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self._web / "playground"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
        )

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._playground),
            Route("/healthz", self._healthz),
            Route("/readyz", self._readyz),
            Route("/metrics", self._metrics),
            Route("/v1/status", self._status),
            Route("/v1/ws", self._no_websocket),
            Route("/v1/ticket", self._guard.give_ticket, methods=["POST"]),
            Mount("/static/playground", Files(directory=self._web / "playground")),
            Mount("/static/sdk", Files(directory=self._web / "sdk")),
        ]

    async def _playground(self, request: Request) -> Response:
        methods = self._gateway.models.describe()
        page = self._templates.get_template("index.html.j2").render(
            version=plait.__version__,
            methods=list(methods),
            models=methods["chat"].models if "chat" in methods else [],
            token_required=self._gateway.access.token_required,
        )
        return HTMLResponse(page)

    async def _healthz(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, request: Request) -> Response:
        states = self._gateway.readiness()
        ready = all(state in READY for state in states.values())
        body = {"ready": ready, "models": states}
        return JSONResponse(body, status_code=200 if ready else 503)

    async def _no_websocket(self, request: Request) -> Response:
        text = "This is a WebSocket endpoint: connect with the subprotocol plait.v1.\n"
        return PlainTextResponse(text, status_code=426, headers={"upgrade": "websocket"})

    async def _metrics(self, request: Request) -> Response:
        if (refusal := self._guard.refusal(request, "metrics")) is not None:
            return refusal
        self._gateway.metrics.open_fds.set(await asyncio.to_thread(count_open))
        return Response(self._gateway.render_metrics(), media_type=CONTENT_TYPE_LATEST)

    async def _status(self, request: Request) -> Response:
        if (refusal := self._guard.refusal(request, "admin")) is not None:
            return refusal
        return JSONResponse(self._gateway.status())
