"""Which models belong in memory, as one pure function: whom to load, to evict, to refuse.

Re-run after every change; it returns a plan and does nothing. Those who want memory, models to be
loaded for their streams and streams of loaded models, are served in order of arrival:

- what fits is loaded at once, and what would fit without the idle models has them evicted, least
  recently used first, and only if that is enough: nobody is evicted in vain;
- what could fit only once something in use ends waits. A load that waits so keeps nothing from
  those behind it, for nobody knows how long others are used; a stream that waits for other
  streams to end does, so that small ones cannot starve it;
- what can never fit is refused and evicts nobody;
- where models in use have filled the memory so that no stream of any of them fits and none holds
  anything whose end would help, the last of these streams in line is refused.

A model is in use while any stream is with it, whatever that stream does. A load that nobody waits
for any more is stopped, unless it was meant to stay. Does NOT know: time, processes, streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Place = Literal["out", "coming", "in", "leaving"]


@dataclass(frozen=True, slots=True)
class ModelState:
    """`size_bytes`: what it takes, or would; charged unless it is out. `used`: when it last was.

    `kept`: it stays without anybody waiting for it (preloaded, or was ready before).
    """

    name: str
    size_bytes: int
    place: Place = "out"
    in_use: bool = False
    used: float = 0.0
    kept: bool = True
    holds: bool = False  # a stream of it holds memory, which comes back with its end

    @property
    def evictable(self) -> bool:
        return self.place in ("coming", "in") and not self.in_use


@dataclass(frozen=True, slots=True)
class Want:
    """Somebody waits for memory since `since`: a load of `model`, or its first stream in line.

    `beside_bytes`: what must be left beside a load, or its streams could not run.
    """

    model: str
    size_bytes: int
    since: float
    load: bool = True
    beside_bytes: int = 0


@dataclass(slots=True)
class Plan:
    """`refuse`: loads that can never fit. `holds`: what is kept for the streams that wait. `stuck`:
    whose first stream in line is to be refused, for nothing that could end would help it."""

    load: list[str] = field(default_factory=list)
    evict: list[str] = field(default_factory=list)
    refuse: list[str] = field(default_factory=list)
    holds: dict[str, int] = field(default_factory=dict)
    stuck: str | None = None


def plan(
    models: Sequence[ModelState],
    wants: Iterable[Want],
    room_bytes: int,
    limit_bytes: int,
    *,
    pressed: bool = False,
    relieve: bool = False,
) -> Plan:
    """What to do now. `room_bytes` is what nobody has been granted of `limit_bytes`.

    `pressed`: the machine itself is short, so nothing is loaded. `relieve`: evict one idle model
    for that; one per reading, so that each may prove enough.
    """
    result = Plan()
    room = _Room(models, room_bytes, limit_bytes, result)
    if pressed:
        if relieve:
            room.relieve()
        return result
    room.pay_debts()
    for want in sorted(wants, key=lambda want: (want.since, want.model)):
        if want.load:
            room.load(want)
        else:
            room.serve_stream(want)
    result.stuck = room.stuck(models)
    return result


class _Room:
    """What is left while a plan is made: free now, and free once what leaves has left."""

    def __init__(
        self, models: Sequence[ModelState], room_bytes: int, limit_bytes: int, result: Plan
    ) -> None:
        self._free_bytes = room_bytes
        self._limit_bytes = limit_bytes
        self._result = result
        self._unserved: list[Want] = []  # streams
        self._leaving = any(model.place == "leaving" for model in models)
        self._leaving_bytes = sum(m.size_bytes for m in models if m.place == "leaving")
        self._idle = sorted((m for m in models if m.evictable), key=lambda m: (m.used, m.name))
        self._used_bytes = sum(
            m.size_bytes for m in models if m.place in ("coming", "in") and m.in_use
        )
        for model in [m for m in self._idle if m.place == "coming" and not m.kept]:
            self._evict(model)  # a load that nobody waits for

    def load(self, want: Want) -> None:
        needs_bytes = min(want.size_bytes + want.beside_bytes, self._limit_bytes)
        if want.size_bytes > self._limit_bytes:
            self._result.refuse.append(want.model)
        elif needs_bytes <= self._free_bytes:
            self._result.load.append(want.model)
            self._free_bytes -= needs_bytes
        elif self._evict_for(needs_bytes):
            self._reserve(needs_bytes)

    def serve_stream(self, want: Want) -> None:
        if want.size_bytes > self._free_bytes and not self._evict_for(want.size_bytes):
            if want.size_bytes > self._limit_bytes - self._used_bytes:
                self._unserved.append(want)
                return  # not before another model's streams have ended: as a load
            self._evict_all()
        self._result.holds[want.model] = want.size_bytes
        self._reserve(want.size_bytes)

    def stuck(self, models: Sequence[ModelState]) -> str | None:
        """See `Plan`; the last one in line."""
        if self._result.evict or self._leaving or not self._unserved:
            return None
        waiting = {want.model for want in self._unserved}
        using = [model for model in models if model.in_use and model.place != "out"]
        if any(model.holds or model.name not in waiting for model in using):
            return None
        return self._unserved[-1].model

    def pay_debts(self) -> None:
        """A model was larger than thought."""
        while self._free_bytes + self._leaving_bytes < 0 and self._idle:
            self._evict(self._idle[0])

    def relieve(self) -> None:
        if self._idle and not self._leaving and not self._result.evict:
            self._evict(self._idle[0])

    def _evict_for(self, size_bytes: int) -> bool:
        """Whether it fits once all that leaves has left; evicts only if it does."""
        short_bytes = size_bytes - self._free_bytes - self._leaving_bytes
        if short_bytes > sum(model.size_bytes for model in self._idle):
            return False
        while short_bytes > 0:
            short_bytes -= self._idle[0].size_bytes
            self._evict(self._idle[0])
        return True

    def _evict_all(self) -> None:
        for model in list(self._idle):
            self._evict(model)

    def _evict(self, model: ModelState) -> None:
        self._idle.remove(model)
        self._leaving_bytes += model.size_bytes
        self._result.evict.append(model.name)

    def _reserve(self, size_bytes: int) -> None:
        """Of what is free first, then of what will be; short when streams have to end first."""
        now_bytes = min(size_bytes, max(0, self._free_bytes))
        self._free_bytes -= now_bytes
        self._leaving_bytes -= min(size_bytes - now_bytes, max(0, self._leaving_bytes))
