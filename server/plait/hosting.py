"""What runs behind the gateway: each configured model's engine and scheduler, and the machine they
share.

Builds them from the specs, keeps their tasks for as long as the server lives, and reads the
machine's memory once a second. Does NOT know connections, HTTP, or who asks for a model.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from plait import machine_memory
from plait.config import Config
from plait.engines.base import LoadSpec
from plait.engines.process import EngineProcess
from plait.engines.restart import Limits
from plait.machine_cores import core_ids
from plait.metrics import Metrics
from plait.scheduling.cores import Cores
from plait.scheduling.ledger import Ledger
from plait.scheduling.machine import Machine, MachinePolicy
from plait.scheduling.offer import Offer
from plait.scheduling.pressure import Floor
from plait.scheduling.resident import Resident, RetryPolicy
from plait.scheduling.routing import Models
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy
from plait.speech.languages import BY_LETTER, LANGUAGES, missing

ENGINE_CLOSE_SECONDS = 3.0
MEMORY_SAMPLE_SECONDS = 1.0
SCRIPTED_VOICES = ("af_heart", "bf_emma")
SCRIPTED_LANGUAGES = ("en-us", "en-gb")
SCRIPTED_HEARD_LANGUAGES = ("en", "de")

log = structlog.get_logger("plait.hosting")


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """What tests set and nobody configures. The two functions may block: they run in a thread."""

    floor: Floor
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    available_bytes: Callable[[], int] = machine_memory.available_bytes
    oom_kills: Callable[[], int | None] = machine_memory.oom_kills
    sample_seconds: float = MEMORY_SAMPLE_SECONDS


class Hosting:
    """`models` is what clients may ask for. `preload` names those that load at the start."""

    def __init__(
        self,
        config: Config,
        specs: Sequence[LoadSpec],
        preload: Collection[str],
        metrics: Metrics,
        policy: HostPolicy,
    ) -> None:
        self._preload = [spec.model for spec in specs if spec.model in preload]
        self._config = config
        self._metrics = metrics
        self._policy = policy
        self._killed_for_memory = _Killings(policy.oom_kills)
        self.ledger = Ledger(config.memory_budget_bytes, app_limits_of(config))
        self.machine = Machine(
            self.ledger,
            metrics,
            MachinePolicy(config.queue_timeout_seconds, policy.retry, policy.floor),
        )
        self.engines: dict[str, EngineProcess] = {}
        cpus = sorted({cpu for spec in specs for cpu in spec.cpus}) or core_ids()
        self.cores = Cores(cpus, self.engines, metrics)
        offers: dict[str, dict[str, Offer]] = {}
        for spec in specs:
            offers.setdefault(spec.method, {})[spec.model] = self._host(spec)
        self.models = Models(offers)

    def _host(self, spec: LoadSpec) -> Offer:
        """One model: its scheduler, its place in memory, its engine, which has no worker yet."""
        config = self._config
        scheduler = Scheduler(
            spec.model,
            self._metrics,
            SchedulerPolicy(config.max_queued, config.queue_timeout_seconds),
            method=spec.method,
            ledger=self.ledger,
        )
        scheduler.activity.listener = self.cores
        resident = self.machine.add(spec, scheduler)
        engine = EngineProcess(
            spec,
            resident,
            limits=Limits(
                load_seconds=config.load_timeout_seconds,
                load_stalled_seconds=config.load_timeout_seconds,
            ),
            loaded=False,
            killed_for_memory=self._killed_for_memory.look,
        )
        resident.engine = scheduler.engine = self.engines[spec.model] = engine
        return offer_of(config, spec, scheduler)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Workers come and go for as long as the block; none is left after it."""
        async with asyncio.TaskGroup() as tasks:
            for engine in self.engines.values():
                tasks.create_task(engine.run())
            watch = tasks.create_task(self._watch_memory())
            if left_out := self.machine.preload(self._preload):
                log.warning(
                    "memory.not_preloaded", models=left_out, room_bytes=self.ledger.room_bytes
                )
            try:
                yield
            finally:
                watch.cancel()
                closing = (engine.close(ENGINE_CLOSE_SECONDS) for engine in self.engines.values())
                await asyncio.gather(*closing)

    def drain(self) -> None:
        """Take no new work."""
        for resident in self.machine.residents.values():
            resident.scheduler.drain()

    def readiness(self) -> dict[str, str]:
        """Per model: "ready", or what it does instead. One that is out is "unloaded", and one that
        comes in because somebody asked for it "loading on demand"."""
        now = time.monotonic()
        return {
            name: _readiness(self.engines[name], resident, now)
            for name, resident in self.machine.residents.items()
        }

    def observe_stats(self) -> None:
        """Bring the metrics up to date (on each scrape)."""
        self.machine.observe_stats()

    def status(self) -> dict[str, Any]:
        """`memory`, `cores` and `models` of `/v1/status`."""
        states = self.readiness()
        pressure = self.machine.pressure
        return {
            "memory": {
                "budget_bytes": self.ledger.limit_bytes,
                "used_bytes": self.ledger.used_bytes + self.ledger.cache_bytes,
                "machine_available_bytes": pressure.available_bytes,
                "pressure": pressure.pressed,
            },
            "cores": {"budget": self.cores.budget, "used": self.cores.used},
            "models": [
                _status_of(resident, states[name])
                for name, resident in self.machine.residents.items()
            ],
        }

    async def _watch_memory(self) -> None:
        while True:
            try:
                available_bytes = await asyncio.to_thread(self._policy.available_bytes)
            except OSError as error:  # no descriptor to spare: a reading is missed, not a server
                log.warning("memory.unreadable", why=error.strerror)
            else:
                self._observe_memory(available_bytes)
            await self._killed_for_memory.observe()
            await asyncio.sleep(self._policy.sample_seconds)

    def _observe_memory(self, available_bytes: int) -> None:
        was = self.machine.pressure.pressed
        self.machine.observe_memory(available_bytes)
        if (pressed := self.machine.pressure.pressed) != was:
            log.warning("memory.pressure", pressed=pressed, available_bytes=available_bytes)


class _Killings:
    """Whether the system has killed a process for want of memory since the last reading."""

    def __init__(self, read: Callable[[], int | None]) -> None:
        self._read = read
        self._seen: int | None = None

    async def observe(self) -> None:
        self._seen = await asyncio.to_thread(self._read)

    async def look(self) -> bool:
        now = await asyncio.to_thread(self._read)
        return now is not None and self._seen is not None and now > self._seen


def _readiness(engine: EngineProcess, resident: Resident, now: float) -> str:
    state = engine.state
    if state == "ready":
        return "ready" if engine.healthy(now) else "stalled"
    if state in ("starting", "loading") and resident.awaited:
        return "loading on demand"
    return state


def _status_of(resident: Resident, state: str) -> dict[str, Any]:
    figures = resident.scheduler.tenancy.figures()
    stats = resident.engine.stats
    return {
        "name": resident.name,
        "method": resident.spec.method,
        "engine": resident.spec.engine,
        "state": state,
        "slots": figures.slots,
        "slots_used": figures.slots_used,
        "active": figures.active,
        "queued": figures.queued,
        "kv_bytes": stats.kv_bytes,
        "kv_reserved_bytes": figures.kv_reserved_bytes,
        "loaded_bytes": resident.loaded_bytes,
        "prefix_cache_bytes": stats.cache_bytes,
        "loads": resident.loads,
        "evictions": resident.evictions,
    }


def app_limits_of(config: Config) -> dict[str, int]:
    """The memory of each app that has a budget of its own."""
    return {
        name: app.memory_budget_bytes
        for name, app in config.apps.items()
        if app.memory_budget_bytes
    }


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
