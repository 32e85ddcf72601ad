from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from plait.engines.base import (
    Cancel,
    Command,
    Consumed,
    EngineInfo,
    Event,
    Failed,
    Feed,
    Finished,
    FinishInput,
    Gauges,
    Item,
    Pause,
    Ping,
    Pong,
    Prepare,
    Prepared,
    Refused,
    Released,
    Resume,
    Shutdown,
    Start,
    Starved,
    Stats,
)
from plait.engines.loop import WorkerLoop
from plait.engines.mailbox import Mailbox
from plait.engines.scripted import ScriptedEngine
from plait.errors import InputOverflow, PlaitError, TemplateError
from plait.wire.frames import MAX_AUDIO_FRAME_BYTES
from tests.engines.recording import prepare, scripted_spec

Step = Callable[[], list[Event]]


@dataclass
class PlayedEngine:
    """An adapter the test plays: each step is the next function of `steps`, then it is idle."""

    steps: list[Step] = field(default_factory=list)
    refuse: PlaitError | MemoryError | None = None
    refuse_start: PlaitError | MemoryError | None = None
    refuse_feed: PlaitError | MemoryError | None = None
    prepare_takes: Callable[[], object] = list
    calls: list[tuple[str, int]] = field(default_factory=list)
    closed: bool = False

    @property
    def info(self) -> EngineInfo:
        return EngineInfo("played", "m", ["chat"], 4, 100, 50, 1000, "freed")

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

    def stats(self) -> Stats:
        return Stats(slots_used=2, kv_bytes=64)

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


def test_events_of_one_step_leave_in_one_frame_with_the_gauges_last() -> None:
    bench = Bench()
    batch = (item(1), Finished(1, "stop", {}), released(1))
    bench.engine.steps = [bench.step(*batch)]
    bench.put(*open_job(1))

    bench.run()

    gauges = Gauges(Stats(slots_used=2, kv_bytes=64, steps=1))
    assert bench.frames[0][0] == Prepared(1, 3, 10, 50)
    assert bench.frames[1] == [*batch, gauges]
    assert bench.engine.closed


def test_items_that_end_after_the_cancel_are_dropped_and_counted() -> None:
    bench = Bench()
    bench.engine.steps = [
        bench.step(item(1)),
        bench.step(item(1, units=2), item(2), meanwhile=(Cancel(1, 99.0),)),
        bench.step(item(1), released(1), item(2), released(2)),
    ]
    bench.put(*open_job(1), *open_job(2))

    events = bench.run()

    assert [e.job for e in events if isinstance(e, Item)] == [1, 2, 2]
    assert [(e.job, e.wasted) for e in events if isinstance(e, Released)] == [(1, 3), (2, 0)]


def test_what_the_adapter_itself_wasted_is_added() -> None:
    bench = Bench()
    own = Released(1, 0.0, wasted=5, usage={})
    bench.engine.steps = [bench.step(item(1), own, meanwhile=(Cancel(1, 99.0),))]
    bench.put(*open_job(1))

    (end,) = [e for e in bench.run() if isinstance(e, Released)]

    assert end.wasted == 6


def test_a_cancel_overtakes_what_was_sent_before_it() -> None:
    bench = Bench()
    late = (Prepare(2, "chat", {}, "c"), Cancel(1, 99.0))
    bench.engine.steps = [bench.step(meanwhile=late), bench.step(released(1))]
    bench.put(*open_job(1))

    bench.run()

    assert bench.engine.calls.index(("cancel", 1)) < bench.engine.calls.index(("prepare", 2))
    assert bench.engine.calls.count(("cancel", 1)) == 1


def test_a_job_cancelled_before_its_prepare_is_never_prepared() -> None:
    bench = Bench()
    bench.put(Prepare(1, "chat", {}, "c"), Cancel(1, 99.0))

    assert bench.run() == []
    assert bench.engine.calls == []
    assert bench.mailbox.flagged == []


def test_a_job_cancelled_between_prepare_and_start_is_released_and_never_started() -> None:
    bench = Bench()
    bench.put(Prepare(1, "chat", {}, "c"))
    bench.engine.steps = [bench.step(meanwhile=(Start(1), Cancel(1, 99.0)))]

    events = bench.run()

    usage = {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 0}
    assert events[1:] == [Released(1, 100.0, 0, usage)]
    assert ("start", 1) not in bench.engine.calls
    assert bench.mailbox.flagged == []


def test_a_prepared_job_is_cancelled_without_an_event() -> None:
    bench = Bench()
    bench.put(Prepare(1, "chat", {}, "c"))
    bench.engine.steps = [bench.step(meanwhile=(Cancel(1, 99.0),))]

    assert bench.run() == [Prepared(1, 3, 10, 50)]
    assert bench.engine.calls == [("prepare", 1), ("cancel", 1)]


def test_a_cancel_after_the_end_leaves_no_flag_behind() -> None:
    bench = Bench()
    bench.engine.steps = [bench.step(released(1)), bench.step(meanwhile=(Cancel(1, 99.0),))]
    bench.put(*open_job(1))

    bench.run()

    assert bench.mailbox.flagged == []


@pytest.mark.parametrize(
    ("error", "code"), [(TemplateError("no"), "template_error"), (MemoryError(), "out_of_memory")]
)
@pytest.mark.parametrize("where", ["refuse", "refuse_start"])
def test_refusals_are_typed_and_the_adapter_forgets_the_job(
    where: str, error: PlaitError | MemoryError, code: str
) -> None:
    bench = Bench(**{where: error})
    bench.put(*open_job(1))

    events = bench.run()

    refusals = [e for e in events if isinstance(e, Refused)]
    assert refusals[0].fault.code == code
    assert ("cancel", 1) in bench.engine.calls
    assert not [e for e in events if isinstance(e, Released)]


def test_a_prepare_that_breaks_costs_its_own_job_alone(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench()
    takes: Iterator[Callable[[], object]] = iter([lambda: [][0], list])
    bench.engine.prepare_takes = lambda: next(takes)()
    bench.put(open_job(1)[0], open_job(2)[0])

    events = bench.run()

    assert [(e.job, e.fault.code) for e in events if isinstance(e, Refused)] == [(1, "internal")]
    assert [e.job for e in events if isinstance(e, Prepared)] == [2]
    assert "IndexError" in capsys.readouterr().err


def test_bad_input_fails_the_job_once_and_releases_it() -> None:
    bench = Bench(refuse_feed=InputOverflow("too much"))
    bench.engine.steps = [
        bench.step(item(1), meanwhile=(Feed(1, audio=b""), Feed(1, audio=b""))),
        bench.step(item(1), Finished(1, "stop", {}), released(1)),
    ]
    bench.put(*open_job(1))

    events = bench.run()[1:]

    assert [type(e) for e in events] == [Item, Failed, Released]
    assert isinstance(events[1], Failed)
    assert (events[1].fault.code, events[1].usage) == ("input_overflow", {"completion_tokens": 9})
    assert bench.engine.calls.count(("feed", 1)) == 1


def test_input_before_the_start_reaches_the_job_and_what_it_took_is_told() -> None:
    bench = Bench()
    bench.engine.steps = [bench.step(Consumed(1, 1), released(1))]
    prepare_it, start_it = open_job(1)
    bench.put(prepare_it, Feed(1, texts=["x"]), FinishInput(1), start_it)

    events = bench.run()

    names = [name for name, _ in bench.engine.calls]
    assert names == ["prepare", "feed", "finish_input", "start"]
    assert [type(event) for event in events] == [Prepared, Consumed, Released]


def test_a_starving_job_says_how_much_input_it_had_been_told() -> None:
    bench = Bench()
    bench.engine.steps = [
        bench.step(Starved(1), meanwhile=(Feed(1, texts=["z"]), FinishInput(1))),
        bench.step(Starved(1), Starved(7), released(1)),
    ]
    prepare_it, start_it = open_job(1)
    bench.put(prepare_it, Feed(1, texts=["x"]), start_it)

    starved = [event for event in bench.run() if isinstance(event, Starved)]

    assert [(event.job, event.inputs) for event in starved] == [(1, 1), (1, 3)]


def test_an_audio_frame_longer_than_the_wire_allows_is_the_adapters_bug() -> None:
    bench = Bench()
    too_long = Item(1, bytes(MAX_AUDIO_FRAME_BYTES + 2), kind=1)
    bench.engine.steps = [bench.step(too_long, released(1))]
    bench.put(*open_job(1))

    with pytest.raises(AssertionError, match="too long"):
        bench.run()


def test_input_for_a_job_that_is_over_is_ignored() -> None:
    bench = Bench()
    late = (Feed(1, texts=["x"]), FinishInput(1), Pause(1), Resume(1))
    bench.engine.steps = [bench.step(released(1), meanwhile=late)]
    bench.put(*open_job(1))

    bench.run()

    assert bench.engine.calls == [("prepare", 1), ("start", 1)]


def test_a_second_release_and_items_of_strangers_never_leave_the_worker() -> None:
    bench = Bench()
    bench.engine.steps = [bench.step(released(1), released(1), item(1), released(7))]
    bench.put(*open_job(1))

    assert len(bench.run()) == 2


def test_dead_time_is_the_cancelled_jobs_share_from_arrival_to_release() -> None:
    bench = Bench()
    bench.engine.steps = [
        bench.step(seconds=4.0, meanwhile=(Cancel(1, 99.0),)),  # 2 s late, 2 jobs: 1 s dead
        bench.step(released(1, at=105.0), seconds=4.0),  # released 1 s in: 0.5 s dead
        bench.step(released(2), seconds=1.0),
    ]
    bench.put(*open_job(1), *open_job(2))

    bench.run()

    stats = bench.loop.stats()
    assert (stats.steps, stats.busy_seconds, stats.dead_seconds) == (4, 9.0, 1.5)
    assert (stats.slots_used, stats.kv_bytes) == (2, 64)


def test_a_paused_job_takes_no_share_of_a_step() -> None:
    bench = Bench()
    bench.engine.steps = [
        bench.step(meanwhile=(Pause(2),)),
        bench.step(seconds=4.0, meanwhile=(Cancel(1, 99.0),)),
        bench.step(released(1), released(2)),
    ]
    bench.put(*open_job(1), *open_job(2))

    bench.run()

    assert bench.loop.stats().dead_seconds == 2.0


def test_answers_do_not_wait_for_the_step_that_follows() -> None:
    bench = Bench()
    sent_before_the_step: list[Event] = []

    def step() -> list[Event]:
        sent_before_the_step.extend(bench.frames[0])
        return []

    bench.engine.steps = [step]
    bench.put(Ping(5))

    bench.run()

    assert [type(event) for event in sent_before_the_step] == [Pong]


def test_a_burst_of_slow_prepares_does_not_hold_up_the_step() -> None:
    bench = Bench()
    bench.engine.prepare_takes = lambda: bench.step(seconds=1.0)()
    prepared: list[int] = []

    def step() -> list[Event]:
        prepared.append(len(bench.engine.calls))
        return []

    bench.engine.steps = [step, step]
    bench.put(Prepare(1, "chat", {}, "c"), Prepare(2, "chat", {}, "c"))

    bench.run()

    assert prepared == [1, 2]


def test_shutdown_releases_what_runs_before_the_engine_closes() -> None:
    bench = Bench()
    bench.put(*open_job(1), Prepare(2, "chat", {}, "c"), Shutdown())
    bench.engine.steps = [bench.step(), bench.step(released(1))]

    bench.loop.run()

    assert bench.engine.calls[-2:] == [("cancel", 1), ("cancel", 2)]
    assert bench.frames[-1][0] == released(1)
    assert bench.engine.closed


class InjectedEngine(ScriptedEngine):
    """Puts the next batch of commands into the mailbox in each step, or when it is idle."""

    def __init__(self, mailbox: Mailbox, batches: list[list[Command]]) -> None:
        super().__init__(scripted_spec())
        self._mailbox = mailbox
        self._batches: list[list[Command]] = [batch for batch in batches if batch]
        self._batches.append([Shutdown()])

    def inject(self) -> None:
        if self._batches:
            for command in self._batches.pop(0):
                self._mailbox.put(command, 1)

    def step(self) -> list[Event]:
        self.inject()
        return super().step()

    @property
    def idle(self) -> bool:
        idle = super().idle
        if idle:
            self.inject()
        return idle


@st.composite
def lives(draw: st.DrawFn) -> list[list[Command]]:
    """Up to four jobs, each a run of commands in order, interleaved at random over batches."""
    runs: list[list[Command]] = []
    for job in range(draw(st.integers(1, 4))):
        script = draw(st.sampled_from(["tokens=3", "tokens=0", "fail_at=1", "tokens=99"]))
        begin: list[Command] = [prepare(job, script), Start(job)]
        middle: list[Command] = draw(
            st.lists(st.sampled_from([Pause(job), Resume(job)]), max_size=3)
        )
        end: list[Command] = (
            [Cancel(job, 0.0)] if script == "tokens=99" or draw(st.booleans()) else []
        )
        cut = draw(st.integers(0, 2)) if end else 2
        runs.append([*begin[:cut], *middle, *end])
    batches: list[list[Command]] = [[] for _ in range(6)]
    for run in runs:
        size = len(run)
        slots = sorted(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)))
        for slot, command in zip(slots, run, strict=True):
            batches[slot].append(command)
    return batches


@given(lives())
def test_every_started_job_is_released_exactly_once_and_nothing_stays(
    batches: list[list[Command]],
) -> None:
    mailbox = Mailbox()
    frames: list[list[Event]] = []
    engine = InjectedEngine(mailbox, batches)

    WorkerLoop(engine, mailbox, frames.append).run()

    events = [event for frame in frames for event in frame]
    started = [c.job for batch in batches for c in batch if isinstance(c, Start)]
    assert sorted(e.job for e in events if isinstance(e, Released | Refused)) == sorted(started)
    assert (engine.stats(), mailbox.flagged) == (Stats(), [])


def test_what_a_step_raises_is_a_crash() -> None:
    def broken() -> list[Event]:
        raise ZeroDivisionError

    bench = Bench(steps=[broken])

    with pytest.raises(ZeroDivisionError):
        bench.run()
