"""The scripted engine as a voice: audio that can be foretold, marks, input, speed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plait.engines.base import (
    Consumed,
    Event,
    Failed,
    Feed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Released,
    Starved,
)
from plait.engines.scripted.engine import ScriptedEngine, load
from plait.engines.scripted.speech import FORMAT, tone
from plait.errors import EmptyText, InvalidRequest, UnsupportedMethod
from plait.wire.frames import MAX_AUDIO_FRAME_BYTES


class NoFlags:
    def stamp(self, job: int) -> float | None:
        return None


def run_until_idle(engine: ScriptedEngine) -> list[Event]:
    events = []
    while not engine.idle:
        events += engine.step()
    return events


def engine_of() -> ScriptedEngine:
    spec = LoadSpec("scripted", "m", 4, 0, 0, method="synthesize")
    return load(spec, NoFlags(), lambda phase, percent: None)


def opened(engine: ScriptedEngine, **params: Any) -> None:
    engine.prepare(Prepare(1, "synthesize", params, "s"))
    engine.start(1)


def audio_of(events: list[Event]) -> bytes:
    return b"".join(e.data for e in events if isinstance(e, Item) and e.kind)


def marks_of(events: list[Event]) -> list[dict[str, Any]]:
    items = [e.data for e in events if isinstance(e, Item) and not e.kind]
    return [msgspec.json.decode(data)["mark"] for data in items]


def test_it_says_in_which_format_it_speaks() -> None:
    assert engine_of().info.methods == ["synthesize"]
    assert engine_of().info.format == FORMAT


def test_every_word_is_a_tone_and_marks_say_where() -> None:
    engine = engine_of()
    opened(engine, text="One two. Three")
    events = run_until_idle(engine)
    assert audio_of(events) == b"".join(tone(word, 2400) for word in ("One", "two.", "Three"))
    assert [(m["text"], m["start"], m["end"]) for m in marks_of(events)] == [
        ("One two. ", 0.0, 0.2),
        ("Three", 0.2, 0.3),
    ]
    assert events[-2] == Finished(1, "stop", {"characters": 14, "audio_ms": 300})
    assert isinstance(events[-1], Released)


def test_frames_follow_each_other_and_are_short_enough() -> None:
    engine = engine_of()
    opened(engine, text="word_ms=1000 two.", speed=0.5)
    frames = [e for e in run_until_idle(engine) if isinstance(e, Item) and e.kind]
    at = 0
    for frame in frames:
        assert frame.aux == at
        assert len(frame.data) <= MAX_AUDIO_FRAME_BYTES
        at += len(frame.data) // 2
    assert at == 2 * 48_000
    assert sum(frame.units for frame in frames) == 4000
    assert [frame.flags for frame in frames].index(1) == len(frames) - 1


def test_fed_text_is_spoken_by_passages_and_consumed_as_they_begin() -> None:
    engine = engine_of()
    opened(engine)
    engine.feed(Feed(1, None, ["Grüße"]))
    assert run_until_idle(engine) == [Starved(1)]
    engine.feed(Feed(1, None, [" an alle. Und"]))
    events = run_until_idle(engine)
    assert [e for e in events if isinstance(e, Consumed)] == [Consumed(1, 17)]
    engine.finish_input(1)
    events += run_until_idle(engine)
    assert "".join(m["text"] for m in marks_of(events)) == "Grüße an alle. Und"
    assert isinstance(events[-1], Released)


def test_it_says_once_that_it_waits_for_input_and_never_after_the_end() -> None:
    engine = engine_of()
    opened(engine)
    assert run_until_idle(engine) == [Starved(1)]
    engine.feed(Feed(1, None, ["One."]))
    assert run_until_idle(engine)[-1] == Starved(1)
    engine.pause(1)
    engine.resume(1)
    assert engine.idle
    engine.finish_input(1)
    assert not any(isinstance(event, Starved) for event in run_until_idle(engine))


def test_input_without_a_word_ends_well_with_no_audio() -> None:
    engine = engine_of()
    opened(engine)
    engine.finish_input(1)
    assert run_until_idle(engine)[0] == Finished(1, "stop", {"characters": 0, "audio_ms": 0})


def test_a_text_without_a_word_and_another_method_are_refused() -> None:
    with pytest.raises(EmptyText):
        opened(engine_of(), text=" !? ")
    with pytest.raises(UnsupportedMethod):
        engine_of().prepare(Prepare(1, "chat", {}, "s"))


def test_fed_text_is_a_script_too() -> None:
    engine = engine_of()
    opened(engine)
    engine.feed(Feed(1, None, ["One two three fail_at=2 four."]))
    assert isinstance(run_until_idle(engine)[-2], Failed)
    opened(engine)
    with pytest.raises(InvalidRequest):
        engine.feed(Feed(1, None, ["word_ms=never "]))
