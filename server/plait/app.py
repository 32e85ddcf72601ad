"""The composition root: builds the gateway from a `Config`, serves it, and ends it in order.

Everything long-lived is built here and owned here: metrics, one scheduler and one engine process
per model, the set of sessions. SIGTERM is ours, not uvicorn's: say goaway, drain, cancel what is
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
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from plait import logs
from plait.access.access import Access
from plait.access.apps import Apps
from plait.access.keyring import Grant
from plait.config import Config
from plait.descriptors import AcceptTrouble, allow_connections
from plait.engines.base import LoadSpec
from plait.engines.process import EngineProcess
from plait.http.pages import Pages, SecurityHeaders
from plait.http.security import Perimeter, PerimeterMiddleware
from plait.http.websocket import AsgiSocket, PlaitWebSocketProtocol, WebSocketEndpoint
from plait.machine_cores import core_ids
from plait.metrics import Metrics
from plait.scheduling.cores import Cores
from plait.scheduling.offer import Offer
from plait.scheduling.routing import Models
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy
from plait.sessions.session import Session, SessionPolicy
from plait.sessions.stream import StreamPolicy
from plait.speech.languages import BY_LETTER, LANGUAGES, missing
from plait.wire.messages import DEFAULT_WINDOW, Limits

PING_SECONDS = 10
LAG_SAMPLE_SECONDS = 0.1
ENGINE_CLOSE_SECONDS = 3.0
SCRIPTED_VOICES = ("af_heart", "bf_emma")
SCRIPTED_LANGUAGES = ("en-us", "en-gb")
SCRIPTED_HEARD_LANGUAGES = ("en", "de")
BACKLOG = 128  # accepted at one go, with everybody else waiting

Say = Callable[[str], None]  # one line to the operator's terminal

log = structlog.get_logger("plait.app")


class Gateway:
    """All that lives as long as the server. Single event loop; nothing here computes."""

    def __init__(self, config: Config, specs: list[LoadSpec]) -> None:
        self.metrics = Metrics()
        self._config = config
        self._sessions: set[Session] = set()
        self._sessions_gone = asyncio.Event()
        self._sessions_gone.set()
        self._draining = False
        self._grace: asyncio.Timeout | None = None
        self._names = itertools.count(1)
        self._engines: dict[str, EngineProcess] = {}
        self._schedulers: dict[str, Scheduler] = {}
        self.cores = Cores(_budget(specs), self._engines, self.metrics)
        offers: dict[str, dict[str, Offer]] = {}
        policy = SchedulerPolicy(config.max_queued, config.queue_timeout_seconds)
        for spec in specs:
            scheduler = Scheduler(spec.model, self.metrics, policy, method=spec.method)
            scheduler.engine = self._engines[spec.model] = EngineProcess(spec, scheduler)
            scheduler.activity.listener = self.cores
            self._schedulers[spec.model] = scheduler
            offers.setdefault(spec.method, {})[spec.model] = offer_of(config, spec, scheduler)
        self.models = Models(offers)
        self.access = Access.of(config)
        self.apps = Apps(config.apps, self.models)
        self._session_policy = SessionPolicy(
            limits_of(config), StreamPolicy(max_outbox_bytes=config.max_outbox_bytes)
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run workers and the loop monitor for as long as the block."""
        async with asyncio.TaskGroup() as tasks:
            for engine in self._engines.values():
                tasks.create_task(engine.run())
            monitor = tasks.create_task(self._watch_loop())
            tokens = tasks.create_task(self.access.watch())
            yield
            monitor.cancel()
            tokens.cancel()
            for engine in self._engines.values():
                await engine.close(ENGINE_CLOSE_SECONDS)

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
        """Per model: "ready", or the state that keeps it from making progress."""
        now = time.monotonic()
        return {
            name: ("ready" if engine.healthy(now) else "stalled")
            if engine.state == "ready"
            else engine.state
            for name, engine in self._engines.items()
        }

    def render_metrics(self) -> bytes:
        """Prometheus text, with the engines' own account as of now."""
        for name, engine in self._engines.items():
            self._schedulers[name].observe_stats(engine.stats)
        return self.metrics.render()

    async def drain(self) -> None:
        """Goaway; `drain_seconds` for what runs; then cancel it and see the terminals out."""
        self._draining = True
        log.info("drain.started", sessions=len(self._sessions))
        for scheduler in self._schedulers.values():
            scheduler.drain()
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


def _budget(specs: list[LoadSpec]) -> list[int]:
    """The CPUs that were planned with; specs made without a plan have those of this process."""
    return sorted({cpu for spec in specs for cpu in spec.cpus}) or core_ids()


def offer_of(config: Config, spec: LoadSpec, scheduler: Scheduler) -> Offer:
    """The model with the languages it knows and, where it speaks, its voices, default first."""
    if spec.method == "transcribe":
        return Offer(scheduler, languages=spec.options.get("languages", SCRIPTED_HEARD_LANGUAGES))
    if spec.method != "synthesize":
        return Offer(scheduler)
    languages = [code for code in LANGUAGES if missing(code) is None]
    if spec.engine == "scripted":
        return Offer(scheduler, SCRIPTED_VOICES, SCRIPTED_LANGUAGES)
    names = sorted(path.stem for path in Path(spec.options["voices"]).glob("*.bin"))
    names.sort(key=lambda name: name != config.speech_voice)
    spoken = [name for name in names if BY_LETTER.get(name[:1]) in languages]
    return Offer(scheduler, spoken, languages)


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
    listening: socket.socket,
    say: Say,
) -> int:
    """Serve until SIGTERM or SIGINT; a second one ends the grace. Returns the exit status.

    `say` tells the operator, in words, that the server stops and that it has stopped.
    """
    logs.configure(config.log_level)
    allow_connections(config.max_connections)
    code = asyncio.run(_serve(config, specs, listening, say))
    say("Stopped.")
    return code


async def _serve(
    config: Config,
    specs: list[LoadSpec],
    listening: socket.socket,
    say: Say,
) -> int:
    gateway = Gateway(config, specs)
    port = listening.getsockname()[1]
    perimeter = Perimeter.build(
        config.host,
        port,
        config.allowed_hosts,
        config.allowed_origins,
        {name: app.origins for name, app in config.apps.items()},
    )
    server = PlaitServer(
        uvicorn.Config(
            create_app(gateway, perimeter),
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
