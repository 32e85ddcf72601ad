"""Input on its way through the worker loop, and what a job says of it."""

from __future__ import annotations

from plait.engines.base import (
    Consumed,
    Failed,
    Feed,
    Finished,
    FinishInput,
    Item,
    Pause,
    Prepared,
    Released,
    Resume,
    Starved,
)
from plait.errors import InputOverflow
from tests.engines.loop_rig import Bench, item, open_job, released


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


def test_input_for_a_job_that_is_over_is_ignored() -> None:
    bench = Bench()
    late = (Feed(1, texts=["x"]), FinishInput(1), Pause(1), Resume(1))
    bench.engine.steps = [bench.step(released(1), meanwhile=late)]
    bench.put(*open_job(1))

    bench.run()

    assert bench.engine.calls == [("prepare", 1), ("start", 1)]
