"""The scripted engine as ears: what was recited is heard, whole and in order, in any format."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

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
from plait.engines.scripted.hearing import WORDS, recite
from plait.errors import InvalidAudio, InvalidRequest

RATE = 16_000


class NoFlags:
    def stamp(self, job: int) -> float | None:
        return None


def run_until_idle(engine: ScriptedEngine) -> list[Event]:
    events = []
    while not engine.idle:
        events += engine.step()
    return events


def listening(**params: Any) -> ScriptedEngine:
    """An engine whose job 1 runs and waits for audio."""
    spec = LoadSpec("scripted", "m", 4, 0, 0, method="transcribe")
    engine = load(spec, NoFlags(), lambda phase, percent: None)
    engine.prepare(Prepare(1, "transcribe", {"sample_rate": RATE} | params, "s"))
    engine.start(1)
    return engine


def hear(audio: bytes, cut: int = 1 << 30, **params: Any) -> list[Event]:
    """All that comes of `audio`, fed in pieces of `cut` bytes, or whole."""
    engine = listening(**params)
    events: list[Event] = []
    for begin in range(0, len(audio), cut):
        engine.feed(Feed(1, audio[begin : begin + cut]))
        events += run_until_idle(engine)
    if not any(isinstance(event, Released) for event in events):
        engine.finish_input(1)
    return events + run_until_idle(engine)


def items_of(events: list[Event]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(event.data) for event in events if isinstance(event, Item)]


def segments_of(events: list[Event]) -> list[dict[str, Any]]:
    return [item["segment"] for item in items_of(events) if "segment" in item]


def finals_of(events: list[Event]) -> list[str]:
    return [segment["text"] for segment in segments_of(events) if segment["is_final"]]


def test_what_was_recited_is_heard_and_a_pause_ends_a_segment() -> None:
    events = hear(recite("one two three . twenty"))
    assert finals_of(events) == ["one two three", "twenty"]
    assert events[-2] == Finished(1, "stop", {"audio_ms": 1600})
    assert isinstance(events[-1], Released)


def test_every_word_is_known_by_its_pitch_at_every_rate() -> None:
    text = " ".join(WORDS)
    for rate in (8000, 11_025, 16_000, 22_050, 44_100, 48_000):
        audio = recite(text, rate, "pcm_f32le", 2)
        events = hear(audio, sample_rate=rate, encoding="pcm_f32le", channels=2)
        assert " ".join(finals_of(events)) == text


def test_interims_are_half_heard_and_the_next_revision_mends_them() -> None:
    shown = segments_of(hear(recite("one two three")))
    assert [(s["revision"], s["text"], s.get("stable")) for s in shown] == [
        (1, "o", ""),
        (2, "one t", "one"),
        (3, "one two thr", "one two"),
        (4, "one two three", None),
    ]
    assert [s["is_final"] for s in shown] == [False, False, False, True]


def test_items_of_one_segment_revise_each_other_and_events_nothing() -> None:
    events = hear(recite("one two . three"), events=True)
    revises = [event.revises for event in events if isinstance(event, Item)]
    assert revises == [0, 1, 1, 0, 1, 0, 2, 0, 2]
    told = [(item["event"], item["at"]) for item in items_of(events) if "event" in item]
    assert told == [
        ("speech_started", 0.0),
        ("speech_stopped", 0.35),
        ("speech_started", 1.2),
        ("speech_stopped", 1.35),
    ]


def test_words_have_times_language_is_detected_unless_told_and_interims_can_be_off() -> None:
    (shown,) = segments_of(hear(recite("one two"), words=True, interim=False))
    assert shown["language"] == "en"
    assert shown["words"] == [
        {"text": "one", "start": 0.0, "end": 0.15},
        {"text": "two", "start": 0.2, "end": 0.35},
    ]
    (told,) = segments_of(hear(recite("one"), language="en", interim=False))
    assert "language" not in told


def test_a_long_segment_is_split_and_no_word_is_lost_between() -> None:
    text = "one two three four five six seven eight nine ten " * 6
    finals = finals_of(hear(recite(text), max_segment_seconds=4))
    assert len(finals) == 3
    assert " ".join(finals) == text.strip()


@pytest.mark.parametrize("silence_ms", [200, 700, 1000])
def test_silence_ms_says_which_pause_ends_a_segment(silence_ms: int) -> None:
    finals = finals_of(hear(recite("one . two"), silence_ms=silence_ms))
    assert finals == (["one two"] if silence_ms > 850 else ["one", "two"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from([*WORDS, "."]), max_size=6),
    st.sampled_from([641, 1601, 4096, 20_000]),
)
@example(["six", "two"], 3)
def test_however_the_audio_is_cut_the_same_is_heard_and_all_of_it_consumed(
    words: list[str], cut: int
) -> None:
    audio = recite(" ".join(words)) + b"\0"
    events = hear(audio, cut)
    assert " ".join(finals_of(events)).split() == [word for word in words if word != "."]
    assert sum(event.bytes for event in events if isinstance(event, Consumed)) == len(audio)


def test_silence_noise_below_the_threshold_clicks_and_nan_give_no_text() -> None:
    click = np.zeros(RATE, "<f4")
    click[100:300] = 0.5
    noise = np.random.default_rng(1).normal(0, 0.001, RATE).astype("<f4")
    broken = np.full(RATE, np.nan, "<f4")
    broken[::3] = np.inf
    audio = b"".join(piece.tobytes() for piece in (click, noise, broken))
    events = hear(audio, encoding="pcm_f32le", events=True)
    assert items_of(events) == []
    assert events[-2] == Finished(1, "stop", {"audio_ms": 3000})


def test_it_waits_once_for_more_audio_and_never_after_the_end() -> None:
    engine = listening()
    assert run_until_idle(engine) == [Starved(1)]
    engine.feed(Feed(1, recite("one")))
    assert run_until_idle(engine)[-1] == Starved(1)
    engine.finish_input(1)
    assert not any(isinstance(event, Starved) for event in run_until_idle(engine))


def test_nothing_said_ends_well_with_nothing() -> None:
    assert hear(b"")[0] == Finished(1, "stop", {"audio_ms": 0})


def test_a_wav_files_header_is_refused() -> None:
    engine = listening()
    engine.feed(Feed(1, b"RI"))
    with pytest.raises(InvalidAudio):
        engine.feed(Feed(1, b"FF\0\0\0\0WAVE"))


def test_the_prompt_is_the_script() -> None:
    events = hear(recite("one two three"), prompt="fail_at=2")
    assert [s["text"] for s in segments_of(events)] == ["o", "one t"]
    assert isinstance(events[-2], Failed)
    with pytest.raises(InvalidRequest):
        listening(prompt="step_ms=never")


def test_what_items_cost_is_the_audio_listened_to() -> None:
    events = hear(recite("one two three four"))
    units = sum(event.units for event in events if isinstance(event, Item))
    assert units == 800


def test_hours_of_silence_keep_nothing() -> None:
    engine = listening()
    for _ in range(50):
        engine.feed(Feed(1, bytes(RATE * 2)))
        run_until_idle(engine)
    job = engine._jobs[1]
    assert len(job.arrivals) <= 1  # type: ignore[attr-defined]
    assert len(job.audio) == 0  # type: ignore[attr-defined]
