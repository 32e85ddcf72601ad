"""The one owner of the machine's memory: which models are in it, and what happens when it runs out.

Asks `residency` for a plan once at the end of each tick in which something changed, and applies
it at once: no await lies between choosing a model and using or evicting it. Whoever waits for
memory longer than the queue's time-out ends with `resource_not_available` and the numbers. Prefixes
that engines keep of their own go first: they have what the ledger has left, and no stream waits
for theirs. Knows schedulers by what they need, never tickets; costs O(models) per change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from plait.engines.base import LoadSpec
from plait.errors import PlaitError
from plait.metrics import Metrics
from plait.scheduling.ledger import Ledger, not_available
from plait.scheduling.machine_metrics import MemoryMetrics, ResidentMetrics
from plait.scheduling.pressure import Floor, Pressure
from plait.scheduling.residency import Want, plan
from plait.scheduling.resident import Resident, RetryPolicy
from plait.scheduling.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class MachinePolicy:
    """`floor`: what the machine itself must have left."""

    queue_timeout_seconds: float = 60.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    floor: Floor = field(default_factory=Floor)


class Machine:
    """Residents by model name, in the order of configuration."""

    def __init__(
        self,
        ledger: Ledger,
        metrics: Metrics,
        policy: MachinePolicy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.residents: dict[str, Resident] = {}
        self.ledger = ledger
        self.pressure = Pressure(policy.floor)
        self._metrics = metrics
        self._memory_metrics = MemoryMetrics(metrics)
        self._policy = policy
        self._clock = clock
        self._due = False
        self._freed = False
        self._relieve = False
        self._timeout_timer: asyncio.TimerHandle | None = None
        ledger.on_freed, ledger.on_crowded = self._on_freed, self.touch

    def __repr__(self) -> str:
        return f"<Machine {self.ledger}, {list(self.residents.values())}>"

    def add(self, spec: LoadSpec, scheduler: Scheduler) -> Resident:
        """Its `engine` is still to be set, and the scheduler's."""
        metrics = ResidentMetrics(self._metrics, spec.model)
        resident = Resident(
            spec, scheduler, self.ledger, metrics, self._policy.retry, self.touch, self._clock
        )
        resident.shortage = lambda: self._shortage(spec.model)
        scheduler.residence = resident
        self.residents[spec.model] = resident
        return resident

    def preload(self, names: Iterable[str]) -> list[str]:
        """Load them for good, in order, as far as they fit; those that do not."""
        left_out = []
        for name in names:
            resident = self.residents[name]
            if resident.size_bytes <= self.ledger.room_bytes:
                resident.load(kept=True)
            else:
                left_out.append(name)
        return left_out

    def touch(self) -> None:
        """Something changed: plan again at the end of this tick."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._run)

    def observe_memory(self, available_bytes: int) -> None:
        """The machine itself has so much left; to be told about once a second."""
        changed = self.pressure.observe(available_bytes)
        self._memory_metrics.available(available_bytes, pressed=self.pressure.pressed)
        if changed:
            for resident in self.residents.values():
                resident.scheduler.tenancy.halt(self.pressure.pressed)
        if changed or self.pressure.pressed:
            self._relieve = self.pressure.pressed
            self.touch()

    def observe_stats(self) -> None:
        """Bring the metrics up to date (on each scrape)."""
        self._memory_metrics.ledger(self.ledger)
        for resident in self.residents.values():
            resident.observe_stats()

    # --- the plan --------------------------------------------------------------------------------

    def _run(self) -> None:
        self._due = False
        self._refuse_late()
        result = plan(
            [resident.state for resident in self.residents.values()],
            self._wants(),
            self.ledger.room_bytes,
            self.ledger.limit_bytes,
            pressed=self.pressure.pressed,
            relieve=self._relieve,
        )
        self._relieve = False
        for name in result.evict:
            self.residents[name].evict()
        for name in result.refuse:
            resident = self.residents[name]
            resident.scheduler.refuse_loading(resident.too_large(), self._clock())
        for name in result.load:
            self.residents[name].load()
        if result.stuck is not None:
            self.residents[result.stuck].scheduler.tenancy.refuse_first()
        self._hold(result.holds)
        self._fit_prefixes()
        self._arm_timeout()

    def _wants(self) -> list[Want]:
        wants = []
        for name, resident in self.residents.items():
            tenancy = resident.scheduler.tenancy
            if resident.place == "out" and tenancy.loading_since is not None:
                since, beside_bytes = tenancy.loading_since, tenancy.loading_bytes
                wants.append(Want(name, resident.size_bytes, since, beside_bytes=beside_bytes))
            elif resident.place == "in" and tenancy.needs is not None:
                wants.append(Want(name, *tenancy.needs, load=False))
        return wants

    def _hold(self, holds: dict[str, int]) -> None:
        """Those who wait hear of it when it is their turn, or when memory came free."""
        turned = list(holds.items()) != list(self.ledger.holds.items())
        self.ledger.holds = holds
        if turned or self._freed:
            self._freed = False
            for resident in self.residents.values():
                resident.scheduler.tenancy.on_freed()

    def _on_freed(self) -> None:
        self._freed = True
        self.touch()

    def _fit_prefixes(self) -> None:
        """Kept prefixes may take what nobody else does; the model used last keeps its longest."""
        room_bytes = 0 if self.pressure.pressed else max(0, self.ledger.room_bytes)
        fits = self.ledger.cache_bytes <= room_bytes and not self.pressure.pressed
        for resident in sorted(self.residents.values(), key=lambda r: -r.used):
            if fits:
                resident.keep_prefixes(resident.spec.prefix_cache_bytes)
            else:
                keeps_bytes = min(resident.prefix_bytes, room_bytes)
                resident.keep_prefixes(keeps_bytes)
                room_bytes -= keeps_bytes

    # --- patience --------------------------------------------------------------------------------

    def _refuse_late(self) -> None:
        """Whoever has waited too long for a load that could not begin."""
        before = self._clock() - self._policy.queue_timeout_seconds
        for resident in self._kept_out():
            since = resident.scheduler.tenancy.loading_since
            if since is not None and since <= before:
                resident.scheduler.refuse_loading(self._no_room(resident), before)

    def _arm_timeout(self) -> None:
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
            self._timeout_timer = None
        since = [resident.scheduler.tenancy.loading_since for resident in self._kept_out()]
        first = min((moment for moment in since if moment is not None), default=None)
        if first is not None:
            delay = max(0.0, first + self._policy.queue_timeout_seconds - self._clock())
            loop = asyncio.get_running_loop()
            self._timeout_timer = loop.call_later(delay, self.touch)

    def _kept_out(self) -> list[Resident]:
        return [r for r in self.residents.values() if r.place in ("out", "leaving")]

    def _no_room(self, resident: Resident) -> PlaitError:
        seconds = self._policy.queue_timeout_seconds
        return self._shortage(resident.name) or not_available(
            resident.name,
            resident.size_bytes,
            self.ledger.room_bytes,
            f"after {seconds:g} s what other models in use leave is",
            "try again later",
        )

    def _shortage(self, model: str) -> PlaitError | None:
        """Why no new stream is taken now, where that is because the machine itself is short."""
        if not self.pressure.pressed:
            return None
        return not_available(
            model,
            self.pressure.floor.recover_bytes,
            self.pressure.available_bytes or 0,
            "the machine itself has left",
            "try again in a moment, or close other programs",
        )
