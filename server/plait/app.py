"""The composition root: builds the gateway from a `Config`, serves it, and ends it in order.

Everything long-lived is built here and owned here: metrics, the models and their engines (see
`hosting`), the set of sessions. SIGTERM is ours, not uvicorn's: say goaway, drain, cancel what is
left, and only then let uvicorn close sockets and the lifespan stop the workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Generator
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from plait import __version__, logs, machine_memory
from plait.access.access import Access
from plait.access.app_metrics import AppMetrics
from plait.access.apps import Apps
from plait.access.keyring import Grant
from plait.config import Config
from plait.descriptors import AcceptTrouble, allow_connections
from plait.engines.base import LoadSpec
from plait.hosting import Hosting, HostPolicy
from plait.http.pages import Pages, SecurityHeaders
from plait.http.security import Perimeter, PerimeterMiddleware
from plait.http.visits import MOST_VISITS, VisitProtocol, Visits
from plait.http.websocket import AsgiSocket, PlaitWebSocketProtocol, WebSocketEndpoint
from plait.metrics import Metrics
from plait.scheduling.pressure import Floor
from plait.sessions.session import Session, SessionPolicy
from plait.sessions.stream import StreamPolicy
from plait.wire.messages import DEFAULT_WINDOW, Limits

PING_SECONDS = 10
LAG_SAMPLE_SECONDS = 0.1
BACKLOG = 128  # accepted at one go, with everybody else waiting

Say = Callable[[str], None]  # one line to the operator's terminal

log = structlog.get_logger("plait.app")


class Gateway:
    """All that lives as long as the server. Single event loop; nothing here computes."""

    def __init__(
        self, config: Config, specs: list[LoadSpec], preload: Collection[str], policy: HostPolicy
    ) -> None:
        """`config.memory_budget_bytes` is the budget itself here, never 0."""
        self.metrics = Metrics()
        self._config = config
        self._sessions: set[Session] = set()
        self._sessions_gone = asyncio.Event()
        self._sessions_gone.set()
        self._draining = False
        self._grace: asyncio.Timeout | None = None
        self._names = itertools.count(1)
        self._started = time.monotonic()
        self.hosting = Hosting(config, specs, preload, self.metrics, policy)
        self.models = self.hosting.models
        self.access = Access.of(config)
        self.apps = Apps(config.apps, self.models)
        ledger = self.hosting.ledger
        self.metrics.registry.register(AppMetrics(self.apps, ledger.app_used_bytes))
        self._session_policy = SessionPolicy(
            limits_of(config), StreamPolicy(max_outbox_bytes=config.max_outbox_bytes)
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run workers and the loop monitor for as long as the block."""
        async with self.hosting.running(), asyncio.TaskGroup() as tasks:
            monitor = tasks.create_task(self._watch_loop())
            tokens = tasks.create_task(self.access.watch())
            yield
            monitor.cancel()
            tokens.cancel()

    def refusal(self) -> str | None:
        """Why no further connection is taken, or None."""
        if self._draining:
            return "The server is shutting down; reconnect in a moment.\n"
        if len(self._sessions) >= self._config.max_connections:
            return f"All {self._config.max_connections} connections are taken; try again later.\n"
        return None

    async def run_session(self, socket: AsgiSocket, grant: Grant) -> None:
        # The random part keeps names from colliding over restarts in one log.
        name = f"{next(self._names)}-{secrets.token_hex(3)}"
        caller = self.apps.caller(grant.app, name)
        session = Session(name, socket, caller, self.metrics, self._session_policy)
        self._sessions.add(session)
        self._sessions_gone.clear()
        try:
            with self.access.holding(grant, session.revoke):
                await session.run()
        finally:
            self._sessions.discard(session)
            if not self._sessions:
                self._sessions_gone.set()

    def readiness(self) -> dict[str, str]:
        """Per model: "ready", or what it does instead."""
        return self.hosting.readiness()

    def status(self) -> dict[str, Any]:
        """The body of `/v1/status`."""
        return {
            "server": f"plait/{__version__}",
            "uptime_seconds": round(time.monotonic() - self._started, 1),
            **self.hosting.status(),
            "apps": [
                {
                    "name": name,
                    "connections": app.account.connections,
                    "active": app.account.active,
                    "queued": app.account.queued,
                    "memory_bytes": self.hosting.ledger.app_used_bytes(name),
                    "memory_budget_bytes": self.hosting.ledger.app_limit_bytes(name) or 0,
                }
                for name, app in self.apps.by_name.items()
            ],
        }

    def render_metrics(self) -> bytes:
        """Prometheus text, with the engines' own account as of now."""
        self.hosting.observe_stats()
        return self.metrics.render()

    async def drain(self) -> None:
        """Goaway; `drain_seconds` for what runs; then cancel it and see the terminals out."""
        self._draining = True
        log.info("drain.started", sessions=len(self._sessions))
        self.hosting.drain()
        for session in list(self._sessions):
            session.drain(self._config.drain_seconds)
        if not await self._wait_sessions(self._config.drain_seconds):
            for session in list(self._sessions):
                session.stop()
            if not await self._wait_sessions(1.0):
                for session in list(self._sessions):
                    session.abandon()
        log.info("drain.finished", sessions=len(self._sessions))

    def stopping(self) -> str:
        """What a stop now would mean to the operator who asked for it."""
        running = sum(session.running for session in self._sessions)
        if not running:
            return "Stopping."
        streams = "1 stream has" if running == 1 else f"{running} streams have"
        grace = f"{self._config.drain_seconds:g} s"
        return f"Stopping: {streams} up to {grace}; press Ctrl-C again to stop now."

    def hurry(self) -> None:
        """The grace of a drain under way is over now."""
        if self._grace is not None:
            self._grace.reschedule(asyncio.get_running_loop().time())

    async def _wait_sessions(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds) as self._grace:
                await self._sessions_gone.wait()
        self._grace = None
        return not self._sessions

    async def _watch_loop(self) -> None:
        """Sample how late the loop wakes us; the figure behind `plait_loop_lag_seconds`."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_SAMPLE_SECONDS
            await asyncio.sleep(LAG_SAMPLE_SECONDS)
            self.metrics.loop_lag.observe(max(0.0, loop.time() - due))


def limits_of(config: Config) -> Limits:
    return Limits(
        max_streams=config.max_streams,
        max_queued=config.max_queued,
        max_text_bytes=config.max_text_bytes,
        max_binary_bytes=config.max_binary_bytes,
        window=DEFAULT_WINDOW,
        opens_per_second=round(config.opens_per_second),
        ping_seconds=PING_SECONDS,
    )


def create_app(gateway: Gateway, perimeter: Perimeter) -> PerimeterMiddleware:
    """The ASGI application over a gateway; the checks come before routing."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with gateway.running():
            yield

    routes = [
        *Pages(gateway, perimeter).routes(),
        WebSocketRoute("/v1/ws", WebSocketEndpoint(gateway, perimeter)),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    return PerimeterMiddleware(SecurityHeaders(app), perimeter)


class PlaitServer(uvicorn.Server):
    """Uvicorn without its signal handlers: it would close sockets before anyone was told."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def serve(
    config: Config,
    specs: list[LoadSpec],
    preload: Collection[str],
    listening: socket.socket,
    say: Say,
) -> int:
    """Serve until SIGTERM or SIGINT; a second one ends the grace. Returns the exit status.

    `preload` names the models that load at the start. `say` tells the operator, in words, that the
    server stops and that it has stopped.
    """
    logs.configure(config.log_level)
    allow_connections(config.max_connections + MOST_VISITS)
    total_bytes = machine_memory.total_bytes()
    policy = HostPolicy(Floor.of(total_bytes))
    if not config.memory_budget_bytes:
        config = replace(config, memory_budget_bytes=machine_memory.default_budget_bytes())
    gateway = Gateway(config, specs, preload, policy)
    code = asyncio.run(_serve(config, gateway, listening, say))
    say("Stopped.")
    return code


def _server_of(config: Config, gateway: Gateway, port: int) -> PlaitServer:
    perimeter = Perimeter.build(
        config.host,
        port,
        config.allowed_hosts,
        config.allowed_origins,
        {name: app.origins for name, app in config.apps.items()},
    )
    return PlaitServer(
        uvicorn.Config(
            create_app(gateway, perimeter),
            http=partial(VisitProtocol, visits=Visits(config.request_timeout_seconds)),  # type: ignore[arg-type]
            ws=PlaitWebSocketProtocol,
            ws_max_size=max(config.max_text_bytes, config.max_binary_bytes),
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
            ws_per_message_deflate=False,
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=1,
            backlog=BACKLOG,
        )
    )


async def _serve(config: Config, gateway: Gateway, listening: socket.socket, say: Say) -> int:
    server = _server_of(config, gateway, listening.getsockname()[1])
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(AcceptTrouble())

    def stop() -> None:
        if asked.is_set():
            gateway.hurry()
        else:
            say(gateway.stopping())
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[listening]))
        drain = tasks.create_task(_drain_when(asked, gateway, server))
        await serving
        drain.cancel()
    return 0


async def _drain_when(asked: asyncio.Event, gateway: Gateway, server: uvicorn.Server) -> None:
    await asked.wait()
    await gateway.drain()
    server.should_exit = True
