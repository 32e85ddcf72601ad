from __future__ import annotations

import threading
import time
from typing import Any

import msgspec
import pytest

from plait.engines.base import (
    Event,
    Failed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Stats,
)
from plait.engines.scripted.engine import ScriptedEngine, load
from plait.errors import (
    ContextOverflow,
    InvalidRequest,
    ModelLoadFailed,
    TemplateError,
    UnsupportedMethod,
)
from tests.engines.recording import prepare, scripted_spec


class NoFlags:
    def stamp(self, job: int) -> float | None:
        return None


def engine_of(spec: LoadSpec | None = None, **options: Any) -> ScriptedEngine:
    return load(spec or scripted_spec(**options), NoFlags(), lambda phase, percent: None)


def opened(engine: ScriptedEngine, job: int, script: str, **params: Any) -> Prepared:
    prepared = engine.prepare(prepare(job, script, **params))
    engine.start(job)
    return prepared


def run_until_idle(engine: ScriptedEngine) -> list[Event]:
    events = []
    while not engine.idle:
        events += engine.step()
    return events


def text_of(events: list[Event], job: int) -> str:
    items = [msgspec.json.decode(e.data) for e in events if isinstance(e, Item) and e.job == job]
    return "".join(item["content"] for item in items)


def test_an_answer_is_deterministic_text_with_a_natural_end() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=3 say=a")

    *_, finished, released = events = run_until_idle(engine)

    usage = {"prompt_tokens": 2, "cached_tokens": 0, "completion_tokens": 3}
    assert text_of(events, 1) == "a0 a1 a2 "
    assert finished == Finished(1, "stop", usage)
    assert isinstance(released, Released)
    assert released.usage == usage


def test_a_text_has_the_size_asked_for_and_the_time_where_asked() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=1 size=64 clock=1 apart=1")

    items = [each for each in run_until_idle(engine) if isinstance(each, Item)]

    shown = msgspec.json.decode(items[0].data)
    assert len(shown["content"]) == 64
    assert 0 < int(shown["content"]) <= time.monotonic_ns()
    assert shown["apart"] is True


def test_plain_words_get_the_default_answer() -> None:
    engine = engine_of(tokens=2)
    opened(engine, 1, "What is a=b 2+2=4?")

    assert text_of(run_until_idle(engine), 1) == "w0 w1 "


def test_a_system_message_has_what_the_users_words_do_not_say() -> None:
    engine = engine_of()
    told = {"role": "system", "content": "tokens=2 say=a"}
    said = {"role": "user", "content": "three say=b"}
    engine.prepare(Prepare(1, "chat", {"messages": [told, said]}, scope="test"))
    engine.start(1)

    assert text_of(run_until_idle(engine), 1) == "b0 b1 "


def test_max_tokens_is_the_least_of_asked_cap_and_room() -> None:
    spec = LoadSpec("scripted", "m", 4, context_tokens=100, max_tokens=50)
    engine = engine_of(spec)

    assert opened(engine, 1, "tokens=9", max_tokens=5).max_tokens == 5
    assert opened(engine, 2, "tokens=9", max_tokens=10**9).max_tokens == 50
    assert opened(engine, 3, "prompt_tokens=90").max_tokens == 10


def test_hitting_the_bound_ends_with_length() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=9", max_tokens=2)

    finished = [e for e in run_until_idle(engine) if isinstance(e, Finished)]

    assert [(e.finish_reason, e.usage["completion_tokens"]) for e in finished] == [("length", 2)]


def test_a_prompt_above_the_context_is_refused_with_numbers() -> None:
    engine = engine_of()

    with pytest.raises(ContextOverflow) as refused:
        engine.prepare(prepare(1, "prompt_tokens=4096"))

    assert refused.value.data == {"prompt_tokens": 4096, "limit": 4096}


@pytest.mark.parametrize("script", ["tokens=many", "burst=0", "step_ms=nan", "memory=lots"])
def test_a_bad_script_is_a_typed_refusal(script: str) -> None:
    with pytest.raises(InvalidRequest):
        engine_of().prepare(prepare(1, script))


def test_only_chat_is_spoken() -> None:
    with pytest.raises(UnsupportedMethod):
        engine_of().prepare(Prepare(1, "embed", {}, "c"))


def test_prefill_takes_steps_and_grows_the_cache() -> None:
    engine = engine_of(kv_bytes_per_token=10)
    opened(engine, 1, "prompt_tokens=8 prefill_steps=2 tokens=2")

    gauges = [(len(engine.step()), engine.stats().kv_bytes) for _ in range(3)]

    assert gauges == [(0, 40), (0, 80), (1, 90)]


def test_a_release_brings_the_gauges_back() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=100")
    engine.step()
    assert engine.stats().slots_used == 1

    engine.cancel(1)
    (released,) = engine.step()

    assert isinstance(released, Released)
    assert engine.stats() == Stats()
    assert engine.idle


def test_cancel_is_idempotent_and_silent_for_a_prepared_job() -> None:
    engine = engine_of()
    engine.prepare(prepare(1, "tokens=5"))

    for _ in range(2):
        engine.cancel(1)
    engine.cancel(99)

    assert engine.idle
    assert engine.step() == []


def test_a_slow_cancel_computes_nothing_and_releases_later() -> None:
    now = [0.0]
    engine = ScriptedEngine(scripted_spec(), clock=lambda: now[0])
    opened(engine, 1, "tokens=100 cancel_ms=1")
    engine.step()

    engine.cancel(1)
    early = engine.step()
    now[0] = 1.0

    assert early == []
    assert isinstance(engine.step()[0], Released)


def test_an_ignored_cancel_goes_on_to_the_natural_end() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=5 ignore_cancel=1")
    engine.cancel(1)

    events = run_until_idle(engine)

    assert [type(e) for e in events] == [Item] * 5 + [Finished, Released]


def test_a_paused_job_rests_while_others_go_on() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=3 say=a")
    opened(engine, 2, "tokens=3 say=b")
    engine.pause(1)

    first = run_until_idle(engine)
    engine.resume(1)

    assert (text_of(first, 1), text_of(first, 2)) == ("", "b0 b1 b2 ")
    assert text_of(run_until_idle(engine), 1) == "a0 a1 a2 "


def test_a_failing_job_leaves_its_neighbour_alone() -> None:
    engine = engine_of()
    opened(engine, 1, "fail_at=1")
    opened(engine, 2, "tokens=3")

    events = run_until_idle(engine)

    (failed,) = [e for e in events if isinstance(e, Failed)]
    assert (failed.job, failed.fault.code) == (1, "generation_failed")
    assert text_of(events, 2) == "w0 w1 w2 "
    assert len([e for e in events if isinstance(e, Released)]) == 2


def test_errors_of_prepare_and_start_are_raised_as_asked() -> None:
    engine = engine_of()
    with pytest.raises(TemplateError):
        engine.prepare(prepare(1, "refuse=template_error"))
    with pytest.raises(MemoryError):
        opened(engine, 2, "memory=start")
    engine.cancel(2)

    assert engine.stats() == Stats()


def test_overbooked_slots_are_a_bug_of_the_scheduler() -> None:
    engine = engine_of()
    for job in range(4):
        opened(engine, job, "tokens=9")

    with pytest.raises(AssertionError, match="overbooked"):
        opened(engine, 4, "tokens=9")


def test_a_burst_puts_many_tokens_into_one_step() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=100 burst=64")

    assert [len(engine.step()), len(engine.step())] == [64, 36 + 2]


def test_an_interrupt_cuts_a_step_short_and_the_rest_is_kept() -> None:
    engine = engine_of()
    opened(engine, 1, "tokens=1 step_ms=3600000")
    threading.Timer(0.0, engine.interrupt).start()

    assert engine.step() == []
    assert not engine.idle


def test_a_load_can_fail_as_told_and_reports_how_it_goes() -> None:
    reports: list[tuple[str, int | None]] = []

    with pytest.raises(ModelLoadFailed, match="no such file"):
        load(scripted_spec(load_fail="no such file"), NoFlags(), lambda *r: reports.append(r))

    assert reports == [("weights", 0), ("weights", 25), ("weights", 50), ("weights", 75)]


def test_a_long_step_of_a_job_that_is_gone_keeps_no_other_waiting() -> None:
    engine = engine_of()
    opened(engine, 1, "step_ms=600000")
    assert engine.step() == []
    engine.cancel(1)
    assert [type(event) for event in engine.step()] == [Released]
    opened(engine, 2, "tokens=2 step_ms=1")
    assert text_of(run_until_idle(engine), 2) == "w0 w1 "
