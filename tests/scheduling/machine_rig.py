"""A machine whose engines the test plays: loads take virtual time, streams end when told to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from plait.engines.base import (
    EngineInfo,
    Item,
    JobEvent,
    KeepPrefixes,
    LoadSpec,
    Prepared,
    Released,
    Stats,
    Usage,
)
from plait.errors import EngineCrashed, ModelLoadFailed, PlaitError
from plait.metrics import Metrics
from plait.scheduling.ledger import Ledger
from plait.scheduling.machine import Machine, MachinePolicy
from plait.scheduling.resident import Resident
from plait.scheduling.scheduler import Scheduler, SchedulerPolicy
from plait.scheduling.ticket import Ticket, TicketState
from plait.wire.messages import FinishReason, Format, Phase
from tests.fakes import PlayedEngine, info


@dataclass
class PlayedModel(PlayedEngine):
    """Also loads, within `load_seconds`, and leaves, within `unload_seconds`, of virtual time."""

    resident: Resident = field(init=False)
    slots: int = 2
    load_seconds: float = 0.5
    unload_seconds: float = 0.25
    fails: bool = False
    loaded_bytes: int = 0
    in_memory: bool = False
    stats: Stats = field(default_factory=Stats)
    _load: asyncio.TimerHandle | None = None

    def load(self) -> None:
        assert not self.in_memory
        self.in_memory = True
        self.resident.on_loading("weights", 0)
        self._load = asyncio.get_running_loop().call_later(self.load_seconds, self._loaded)

    def unload(self) -> None:
        assert not self.running, "a model in use is never evicted"
        self._stop_loading()
        asyncio.get_running_loop().call_later(self.unload_seconds, self._gone)

    def crash(self) -> None:
        """Its worker dies, and another one is started."""
        self._stop_loading()
        self.running.clear()
        self.resident.on_worker_lost(EngineCrashed("the worker died"))
        self._load = asyncio.get_running_loop().call_later(self.load_seconds, self._loaded)

    def keep(self, cache_bytes: int) -> None:
        """It keeps prefixes of that size."""
        self.stats = Stats(cache_bytes=cache_bytes)
        self.resident.on_stats(self.stats)

    @property
    def caps(self) -> list[int]:
        return [command.max_bytes for command in self.sent if isinstance(command, KeepPrefixes)]

    def _loaded(self) -> None:
        self._load = None
        if self.fails:
            self.resident.on_worker_lost(ModelLoadFailed("the file is damaged"))
            self._gone()
        else:
            ready: EngineInfo = info(self.slots, 10**6)
            self.resident.on_ready(msgspec.structs.replace(ready, loaded_bytes=self.loaded_bytes))

    def _gone(self) -> None:
        self.in_memory = False
        self.resident.on_unloaded()

    def _stop_loading(self) -> None:
        if self._load is not None:
            self._load.cancel()
            self._load = None

    def _emit(self, event: JobEvent) -> None:
        self.resident.on_events([event])


class Stream:
    """What one stream was told; its ticket, and its end once it has one."""

    def __init__(self) -> None:
        self.ticket: Ticket | None = None
        self.phases: list[tuple[Phase, int | None]] = []
        self.started = False
        self.error: PlaitError | None = None
        self.ended = False

    def on_phase(self, phase: Phase, position: int, percent: int | None, eta: int | None) -> None:
        self.phases.append((phase, percent))

    def on_started(self, model: str, prepared: Prepared, format: Format | None) -> None:
        self.started = True

    def on_consumed(self, size_bytes: int) -> None:
        raise AssertionError(size_bytes)

    def on_item(self, item: Item) -> None:
        raise AssertionError(item)

    def on_finished(self, finish_reason: FinishReason, usage: Usage) -> None:
        pass

    def on_failed(self, error: PlaitError, usage: Usage) -> None:
        raise AssertionError(error)

    def on_refused(self, error: PlaitError) -> None:
        self.error, self.ended = error, True

    def on_lost(self, error: PlaitError) -> None:
        self.error, self.ended = error, True

    def on_released(self, released: Released) -> None:
        self.ended = True

    @property
    def code(self) -> str | None:
        return None if self.error is None else self.error.code


class World:
    """`sizes`: what each model takes. A stream takes 100 bytes of KV and its buffers."""

    def __init__(
        self,
        limit_bytes: int,
        sizes: dict[str, int],
        policy: MachinePolicy | None = None,
        app_limits: dict[str, int] | None = None,
        prefix_cache_bytes: int = 0,
    ) -> None:
        clock = asyncio.get_running_loop().time
        policy = policy or MachinePolicy()
        self.metrics = Metrics()
        self.ledger = Ledger(limit_bytes, app_limits)
        self.machine = Machine(self.ledger, self.metrics, policy, clock)
        self.models: dict[str, PlayedModel] = {}
        scheduling = SchedulerPolicy(queue_timeout_seconds=policy.queue_timeout_seconds)
        for name, size in sizes.items():
            spec = LoadSpec("played", name, 2, 100, 50, memory_bytes=size)
            spec.prefix_cache_bytes = prefix_cache_bytes
            scheduler = Scheduler(name, self.metrics, scheduling, clock, ledger=self.ledger)
            model = self.models[name] = PlayedModel(scheduler, clock)
            model.resident = self.machine.add(spec, scheduler)
            model.resident.engine = scheduler.engine = model
        self.streams: list[tuple[str, Stream]] = []

    def open(self, model: str, owner: str = "a", buffer_bytes: int = 10) -> Stream:
        """Raises what a `rejected` would say."""
        stream = Stream()
        scheduler = self.models[model].scheduler
        stream.ticket = scheduler.submit("chat", {}, owner, False, stream, buffer_bytes)
        self.streams.append((model, stream))
        return stream

    def cancel(self, model: str, stream: Stream) -> None:
        assert stream.ticket is not None
        if self.models[model].scheduler.cancel(stream.ticket, 0.0):
            stream.ended = True

    def finish(self, model: str, stream: Stream) -> bool:
        """It comes to its natural end, if it runs."""
        assert stream.ticket is not None
        runs = stream.ticket.state is TicketState.RUNNING
        if runs:
            self.models[model].finish(stream.ticket.job)
        return runs

    def in_memory(self) -> set[str]:
        return {name for name, model in self.models.items() if model.in_memory}

    def check(self) -> None:
        """Nothing is over its budget, and the books say what is so."""
        assert self.ledger.used_bytes <= self.ledger.limit_bytes, self.machine
        taken = sum(m.resident.size_bytes for m in self.models.values() if m.in_memory)
        assert sum(self.ledger.models.values()) == taken
        tickets = [stream.ticket for _, stream in self.streams if stream.ticket is not None]
        held = sum(ticket.reserved_bytes + ticket.buffered_bytes for ticket in tickets)
        assert self.ledger.streams_bytes == held
        for model, stream in self.streams:
            if not stream.ended and stream.started:
                assert self.models[model].in_memory
