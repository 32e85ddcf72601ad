"""The worker loop's books: one release a job, nothing of a cancelled one, who cost what."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from plait.engines.base import (
    Cancel,
    Event,
    Finished,
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
    Stats,
)
from plait.errors import PlaitError, TemplateError
from plait.wire.frames import MAX_AUDIO_FRAME_BYTES
from tests.engines.loop_rig import Bench, item, open_job, released


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


def test_an_audio_frame_longer_than_the_wire_allows_is_the_adapters_bug() -> None:
    bench = Bench()
    too_long = Item(1, bytes(MAX_AUDIO_FRAME_BYTES + 2), kind=1)
    bench.engine.steps = [bench.step(too_long, released(1))]
    bench.put(*open_job(1))

    with pytest.raises(AssertionError, match="too long"):
        bench.run()


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


def test_an_engine_whose_steps_only_wait_counts_for_itself_how_busy_it_is() -> None:
    bench = Bench(own_busy_seconds=0.5)
    bench.engine.steps = [bench.step(released(1), seconds=4.0)]
    bench.put(*open_job(1))

    bench.run()

    assert bench.loop.stats().busy_seconds == 0.5


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


def test_a_pause_and_a_resume_move_the_gauges_at_once() -> None:
    bench = Bench()
    bench.engine.steps = [bench.step(meanwhile=(Pause(1),)), bench.step(meanwhile=(Resume(1),))]
    bench.put(*open_job(1))

    bench.run()

    assert [sum(isinstance(e, Gauges) for e in frame) for frame in bench.frames] == [1, 1, 1]


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


def test_nothing_computed_after_the_shutdown_leaves_the_worker() -> None:
    bench = Bench()
    bench.engine.steps = [
        bench.step(item(1), meanwhile=(Shutdown(),)),
        bench.step(item(1), released(1)),
    ]
    bench.put(*open_job(1))

    bench.loop.run()

    events = [e for frame in bench.frames for e in frame if isinstance(e, Item | Released)]
    assert events == [item(1), released(1)]


def test_shutdown_releases_what_runs_before_the_engine_closes() -> None:
    bench = Bench()
    bench.put(*open_job(1), Prepare(2, "chat", {}, "c"), Shutdown())
    bench.engine.steps = [bench.step(), bench.step(released(1))]

    bench.loop.run()

    assert bench.engine.calls[-2:] == [("cancel", 1), ("cancel", 2)]
    assert bench.frames[-1][0] == released(1)
    assert bench.engine.closed


def test_what_a_step_raises_is_a_crash() -> None:
    def broken() -> list[Event]:
        raise ZeroDivisionError

    bench = Bench(steps=[broken])

    with pytest.raises(ZeroDivisionError):
        bench.run()
