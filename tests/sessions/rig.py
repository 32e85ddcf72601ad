"""One session over an in-memory socket, a real scheduler, and an engine the test plays."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from plait.metrics import Metrics
from plait.scheduling.offer import Offer
from plait.scheduling.routing import Models
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy
from plait.sessions.caller import Caller
from plait.sessions.session import Session, SessionPolicy
from plait.sessions.stream import StreamPolicy
from plait.wire.messages import Limits
from tests.fakes import (
    EMBED_USAGE,
    LISTENING_USAGE,
    SPEECH_USAGE,
    MemorySocket,
    PlayedEngine,
    embed_info,
    info,
    listening_info,
    speech_info,
)
from tests.virtual_time import settle

LIMITS = Limits(
    max_streams=64,
    max_queued=8,
    max_text_bytes=1 << 20,
    max_binary_bytes=1 << 18,
    window=64,
    opens_per_second=1000,
    ping_seconds=10,
)

VOICES = ("af_heart", "bf_emma")
LANGUAGES = ("en-us", "en-gb")
HEARD_LANGUAGES = ("en", "de")
INFOS = {"synthesize": speech_info, "transcribe": listening_info, "embed": embed_info}
USAGES = {"synthesize": SPEECH_USAGE, "transcribe": LISTENING_USAGE, "embed": EMBED_USAGE}


@dataclass
class Rig:
    """Everything of a server but processes and sockets."""

    scheduler: Scheduler
    engine: PlayedEngine
    metrics: Metrics
    policy: SessionPolicy
    tasks: asyncio.TaskGroup
    method: str = "chat"
    sessions: list[Session] = field(default_factory=list)

    @property
    def models(self) -> Models:
        return Models({self.method: {"m": self._offer()}})

    async def connect(self, caller: Caller | None = None) -> MemorySocket:
        socket = MemorySocket()
        name = f"s{len(self.sessions)}"
        caller = caller or Caller.anonymous(name, self.models)
        session = Session(name, socket, caller, self.metrics, self.policy)
        self.sessions.append(session)
        self.tasks.create_task(session.run())
        await settle()
        return socket

    def _offer(self) -> Offer:
        if self.method == "synthesize":
            return Offer(self.scheduler, VOICES, LANGUAGES)
        return Offer(
            self.scheduler, languages=HEARD_LANGUAGES if self.method == "transcribe" else ()
        )

    def gauge(self, name: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(name, labels)
        assert value is not None, name
        return value

    def assert_nothing_held(self) -> None:
        assert self.scheduler.idle, self.scheduler
        assert self.gauge("plait_slots_used", model="m") == 0
        assert self.gauge("plait_kv_reserved_bytes", model="m") == 0
        assert self.gauge("plait_streams_active", method=self.method) == 0
        assert self.gauge("plait_streams_queued", method=self.method) == 0


@contextlib.asynccontextmanager
async def rig(
    slots: int = 2,
    budget_bytes: int = 1000,
    ready: bool = True,
    streams: StreamPolicy | None = None,
    scheduling: SchedulerPolicy | None = None,
    method: str = "chat",
) -> AsyncIterator[Rig]:
    """Build it, and on leaving hang up every socket and wait for the sessions to end."""
    loop = asyncio.get_running_loop()
    metrics = Metrics()
    policy = scheduling or SchedulerPolicy(max_queued=8)
    scheduler = Scheduler("m", metrics, policy, loop.time, method)
    engine = PlayedEngine(scheduler, loop.time)
    scheduler.engine = engine
    if method in USAGES:
        engine.reserve_bytes = 0
        engine.usage = engine.finished_usage = dict(USAGES[method])
    engine_info = info(slots, budget_bytes) if method == "chat" else INFOS[method](slots)
    if ready:
        scheduler.on_ready(engine_info)
    sockets: list[MemorySocket] = []
    async with asyncio.TaskGroup() as tasks:
        shared = SessionPolicy(LIMITS, streams or StreamPolicy(), loop.time)
        built = Rig(scheduler, engine, metrics, shared, tasks, method)
        connect = built.connect

        async def connect_and_remember(caller: Caller | None = None) -> MemorySocket:
            sockets.append(await connect(caller))
            return sockets[-1]

        built.connect = connect_and_remember  # type: ignore[method-assign]
        yield built
        for socket in sockets:
            socket.hang_up()
