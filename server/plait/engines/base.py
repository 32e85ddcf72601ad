"""The worker contract: what an adapter must do. The values that cross the process border for it
are in `commands` (gateway -> worker) and `events` (worker -> gateway), and offered here too.

An adapter satisfies `Engine`: it is driven by one thread (the worker loop), knows jobs and nothing
of sockets, streams or scheduling. A paused job that is resumed by recomputation carries its
sampler state, or its usage says `reseeded: 1`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from plait.engines.commands import (
    Cancel as Cancel,
    Command as Command,
    Feed as Feed,
    FinishInput as FinishInput,
    KeepPrefixes as KeepPrefixes,
    LoadSpec as LoadSpec,
    Pause as Pause,
    Ping as Ping,
    Prepare as Prepare,
    Resume as Resume,
    Shutdown as Shutdown,
    Start as Start,
    UseCores as UseCores,
)
from plait.engines.events import (
    Consumed as Consumed,
    EngineInfo as EngineInfo,
    Event as Event,
    Failed as Failed,
    Fault as Fault,
    Finished as Finished,
    Gauges as Gauges,
    Item as Item,
    JobEvent as JobEvent,
    LoadFailed as LoadFailed,
    Loading as Loading,
    Pong as Pong,
    Prepared as Prepared,
    Ready as Ready,
    Refused as Refused,
    Released as Released,
    Starved as Starved,
    Stats as Stats,
    Usage as Usage,
)


class CancelFlags(Protocol):
    """Sticky per-job flags, set by the command reader thread the moment a cancel arrives."""

    def stamp(self, job: int) -> float | None:
        """When the cancel of `job` arrived at the worker, or None."""


class Engine(Protocol):
    """An adapter around one model library. All calls but `interrupt` come from one thread.

    Built by `load(spec, flags, report)` of its module (see `Loader`). Errors for the
    peer are raised as `plait.errors` leaves; anything else that `step` raises is a crash.
    """

    @property
    def info(self) -> EngineInfo: ...

    def prepare(self, job: Prepare) -> Prepared:
        """Template, tokenize, size. Holds no slot and no KV. Raises a typed error to refuse."""

    def start(self, job: int) -> None:
        """Take the slot. Called only after `prepare`, and never above `info.slots` running jobs."""

    def feed(self, feed: Feed) -> None:
        """More input, from `prepare` on: also before `start`, and while paused. Take it quickly;
        what is done with it belongs into `step`, and `Consumed` says when it was, `Starved` that
        nothing is left to do."""

    def finish_input(self, job: int) -> None:
        """No more `feed`; at most once per job."""

    def pause(self, job: int) -> None: ...

    def resume(self, job: int) -> None: ...

    def cancel(self, job: int) -> None:
        """Release everything of `job`, prepared or started. Idempotent; unknown ids are ignored.

        A started job's `Released` comes from this or a later `step`; a merely prepared one holds
        nothing and yields no event.
        """

    def interrupt(self) -> None:
        """From the command reader thread: a command waits, so cut a long or blocking step short."""

    def step(self) -> list[Event]:
        """One bounded unit of work for all jobs (aim <= 50 ms). [] when there was nothing to do.

        May block up to its bound while jobs run elsewhere (llama.cpp's threads); never when idle.
        """

    @property
    def idle(self) -> bool:
        """No job would make progress in `step`: the worker loop may sleep until a command."""

    def keep_prefixes(self, max_bytes: int) -> None:
        """What is kept of jobs that are over may take so much; an engine that keeps nothing ignores
        it."""

    def stats(self) -> Stats:
        """`slots_used`, `kv_bytes` and `cache_bytes` as the engine itself knows them."""

    def close(self) -> None: ...


Report = Callable[[str, int | None], None]
"""Tells the gateway how a load goes: (phase, percent or None)."""


class Loader(Protocol):
    """The module-level `load` of an adapter. Raises `ModelLoadFailed`."""

    def __call__(self, spec: LoadSpec, flags: CancelFlags, report: Report) -> Engine: ...
