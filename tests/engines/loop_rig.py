"""A worker loop on a bench: an adapter the test plays, and the frames the loop sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from plait.engines.base import (
    Command,
    EngineInfo,
    Event,
    Feed,
    Gauges,
    Item,
    Prepare,
    Prepared,
    Released,
    Shutdown,
    Start,
    Stats,
)
from plait.engines.loop import WorkerLoop
from plait.engines.mailbox import Mailbox
from plait.errors import PlaitError

Step = Callable[[], list[Event]]


@dataclass
class PlayedEngine:
    """An adapter the test plays: each step is the next function of `steps`, then it is idle."""

    steps: list[Step] = field(default_factory=list)
    refuse: PlaitError | MemoryError | None = None
    refuse_start: PlaitError | MemoryError | None = None
    refuse_feed: PlaitError | MemoryError | None = None
    prepare_takes: Callable[[], object] = list
    own_busy_seconds: float | None = None  # None: it leaves that to the loop
    calls: list[tuple[str, int]] = field(default_factory=list)
    closed: bool = False

    @property
    def info(self) -> EngineInfo:
        counts = self.own_busy_seconds is not None
        return EngineInfo("played", "m", ["chat"], 4, 100, 50, 1000, "freed", counts_busy=counts)

    def prepare(self, job: Prepare) -> Prepared:
        self.calls.append(("prepare", job.job))
        self.prepare_takes()
        if self.refuse is not None:
            raise self.refuse
        return Prepared(job.job, prompt_tokens=3, reserve_bytes=10, max_tokens=50)

    def start(self, job: int) -> None:
        self.calls.append(("start", job))
        if self.refuse_start is not None:
            raise self.refuse_start

    def feed(self, feed: Feed) -> None:
        self.calls.append(("feed", feed.job))
        if self.refuse_feed is not None:
            raise self.refuse_feed

    def finish_input(self, job: int) -> None:
        self.calls.append(("finish_input", job))

    def pause(self, job: int) -> None:
        self.calls.append(("pause", job))

    def resume(self, job: int) -> None:
        self.calls.append(("resume", job))

    def cancel(self, job: int) -> None:
        self.calls.append(("cancel", job))

    def interrupt(self) -> None:
        """Steps are instant."""

    def step(self) -> list[Event]:
        return self.steps.pop(0)()

    @property
    def idle(self) -> bool:
        return not self.steps

    def keep_prefixes(self, max_bytes: int) -> None:
        """It keeps none."""

    def stats(self) -> Stats:
        return Stats(slots_used=2, kv_bytes=64, busy_seconds=self.own_busy_seconds or 0.0)

    def close(self) -> None:
        self.closed = True


class Bench:
    """A loop between a mailbox the test fills and the frames it sent, on a clock the test sets."""

    def __init__(self, **engine: object) -> None:
        self.now = 100.0
        self.engine = PlayedEngine(**engine)  # type: ignore[arg-type]
        self.mailbox = Mailbox(clock=lambda: self.now)
        self.frames: list[list[Event]] = []
        self.loop = WorkerLoop(
            self.engine, self.mailbox, self.frames.append, clock=lambda: self.now
        )

    def put(self, *commands: Command) -> None:
        for command in commands:
            self.mailbox.put(command, 1)

    def run(self) -> list[Event]:
        """Until the last step is done; returns all events but the gauges."""
        self.engine.steps.append(self.step(meanwhile=(Shutdown(),)))
        self.loop.run()
        return [e for frame in self.frames for e in frame if not isinstance(e, Gauges)]

    def step(
        self, *events: Event, seconds: float = 0.0, meanwhile: tuple[Command, ...] = ()
    ) -> Step:
        """A step that takes `seconds` while `meanwhile` arrives at its half."""

        def run() -> list[Event]:
            self.now += seconds / 2
            self.put(*meanwhile)
            self.now += seconds / 2
            return list(events)

        return run


def open_job(job: int) -> tuple[Prepare, Start]:
    return Prepare(job, "chat", {}, "c"), Start(job)


def item(job: int, units: int = 1) -> Item:
    return Item(job, b"{}", units)


def released(job: int, at: float = 0.0) -> Released:
    return Released(job, at, 0, {"completion_tokens": 9})
