"""What one speech job sends: frames, marks, pauses, credit, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.engines.base import Event, Failed, Finished, Starved
from plait.engines.kokoro.output import FRAME_SAMPLES, SpeechOutput
from plait.errors import EmptyText, InvalidRequest
from plait.wire.frames import MAX_AUDIO_FRAME_BYTES, BinaryFlags
from tests.engines.kokoro.rig import (
    BROKEN,
    OUT_OF_MEMORY,
    SYMBOL_SAMPLES,
    SpeechRig,
    ToySynthesizer,
    make_rig,
)

SENTENCE_PAUSE, CLAUSE_PAUSE = 6000, 2400  # samples
TEXT = "well, this is a sentence. and here comes another one! "


@pytest.fixture
def synthesizer() -> ToySynthesizer:
    return ToySynthesizer()


@pytest.fixture
def rig(tmp_path: Path, synthesizer: ToySynthesizer) -> SpeechRig:
    return make_rig(tmp_path, synthesizer)


def letters(text: str) -> int:
    return sum(char.isalpha() for char in text)


def test_a_text_is_spoken_with_pauses_between_its_parts_and_none_after_the_last(
    rig: SpeechRig,
) -> None:
    samples = np.frombuffer(rig.say(TEXT), "<i2")

    after_clause = letters("well") * SYMBOL_SAMPLES
    sounds = letters(TEXT) * SYMBOL_SAMPLES
    assert len(samples) == sounds + CLAUSE_PAUSE + SENTENCE_PAUSE
    assert not samples[after_clause : after_clause + CLAUSE_PAUSE].any()
    assert samples[-100:].any()


def test_frames_are_short_enough_and_their_offsets_contiguous(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, ToySynthesizer(windows=(70_001,)))
    rig.say("a" * 200 + ". and more.")

    offset = 0
    for frame in rig.frames(1):
        assert 0 < len(frame.data) <= MAX_AUDIO_FRAME_BYTES
        assert frame.aux == offset
        offset += len(frame.data) // 2


def test_units_add_up_to_the_milliseconds_of_the_usage(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, ToySynthesizer(windows=(1001, 333)))
    rig.say(TEXT)

    milliseconds = len(rig.pcm(1)) // 2 // 24
    assert sum(item.units for item in rig.items[1]) == milliseconds
    assert rig.released[1].usage == {"characters": len(TEXT), "audio_ms": milliseconds}


def test_the_last_frame_of_a_sentence_says_so_and_that_of_a_clause_does_not(rig: SpeechRig) -> None:
    rig.say(TEXT)

    flagged = [frame for frame in rig.frames(1) if frame.flags & BinaryFlags.LAST_OF_SENTENCE]
    first, last = flagged
    pause = letters("well, this is a sentence.") * SYMBOL_SAMPLES + CLAUSE_PAUSE
    assert first.aux + len(first.data) // 2 == pause
    assert last is rig.frames(1)[-1]


def test_marks_joined_are_the_text_and_come_before_their_audio(rig: SpeechRig) -> None:
    rig.say(TEXT)

    assert rig.spoken_text(1) == TEXT
    for number, item in enumerate(rig.items[1]):
        if item.kind == 0:
            (mark,) = [mark for mark in rig.marks(1) if f'"{mark["text"]}"'.encode() in item.data]
            following = rig.items[1][number + 1]
            assert following.aux == round(mark["start"] * 24_000)


def test_words_have_the_times_of_their_phonemes(rig: SpeechRig) -> None:
    rig.say("well, so it is.")

    second = rig.marks(1)[1]
    start = 4 * 0.025 + 0.1
    assert second["start"] == pytest.approx(start)
    assert second["end"] == pytest.approx(start + 6 * 0.025)
    assert second["words"][1] == {
        "text": "it", "start": pytest.approx(start + 0.05), "end": pytest.approx(start + 0.1)
    }  # fmt: skip


@pytest.mark.parametrize("tail", [" 12.", " \U0001f600 !", "..."])
def test_what_cannot_be_spoken_is_in_the_marks_and_not_in_the_audio(
    rig: SpeechRig, tail: str
) -> None:
    audio = rig.say("hello. good day.")
    rig.say("hello." + tail + " good day." + tail)

    assert rig.spoken_text(2) == "hello." + tail + " good day." + tail
    assert len(rig.pcm(2)) == len(audio)


@pytest.mark.parametrize("text", ["", " ", "\n", "!!!", "\U0001f600", "\u200b", "—", "1. 2. 3."])
def test_a_text_without_anything_to_speak_is_refused(rig: SpeechRig, text: str) -> None:
    with pytest.raises(EmptyText):
        rig.prepare(text)
    assert rig.engine.idle


def test_a_long_text_without_anything_to_speak_fails_once_it_was_read(rig: SpeechRig) -> None:
    job = rig.start("! " * 2_000)
    rig.finish()

    end = rig.ends[job]
    assert isinstance(end, Failed)
    assert end.fault.code == "empty_text"
    assert job in rig.released


def test_input_without_anything_to_speak_is_done_without_audio(rig: SpeechRig) -> None:
    job = rig.start()
    rig.feed(job, "... \U0001f600")
    rig.engine.finish_input(job)
    rig.finish()

    assert rig.ends[job] == Finished(job, "stop", {"characters": 5, "audio_ms": 0})
    assert rig.consumed[job] == len("... \U0001f600".encode())


def test_a_mark_is_never_longer_than_a_message(rig: SpeechRig) -> None:
    rig.say("\u0001" * 60_000 + "hello" + "\u0001" * 20_000 + ".")

    assert all(len(item.data) < 64 * 1024 for item in rig.items[1])
    assert len(rig.spoken_text(1)) == 80_006


def test_text_is_spoken_clause_by_clause_as_it_comes(rig: SpeechRig) -> None:
    job = rig.prepare()
    rig.feed(job, "hello ")
    rig.engine.start(job)
    rig.finish()
    assert rig.pcm(job) == b""

    rig.feed(job, "there, and")
    rig.finish()
    assert rig.spoken_text(job) == "hello there, "
    rig.engine.finish_input(job)
    rig.finish()

    assert rig.spoken_text(job) == "hello there, and"
    assert isinstance(rig.ends[job], Finished)


def test_a_job_out_of_text_says_so_once_and_what_it_keeps(rig: SpeechRig) -> None:
    def starved() -> list[Starved]:
        events: list[Event] = []
        while not rig.engine.idle:
            events += rig.step()
        return [event for event in events if isinstance(event, Starved)]

    job = rig.start()
    assert starved() == [Starved(job, 0)]
    rig.feed(job, "hello there, and")
    assert starved() == [Starved(job, 0)]
    rig.engine.finish_input(job)
    assert starved() == []
    blended = rig.start(voice="af_heart:0.5,bf_emma:0.5")
    assert starved() == [Starved(blended, rig.engine.stats().kv_bytes)]


def test_credit_comes_back_as_text_is_spoken(rig: SpeechRig) -> None:
    job = rig.start()
    rig.feed(job, "üh, a long one. ")
    rig.feed(job, "and one more")
    rig.step_until(lambda: bool(rig.frames(job)))
    first = rig.consumed[job]
    rig.engine.finish_input(job)
    rig.finish()

    assert first == len("üh, ".encode())
    assert rig.consumed[job] == len("üh, a long one. and one more".encode())


def test_a_text_given_whole_gives_no_credit_back_and_takes_no_more(rig: SpeechRig) -> None:
    job = rig.start("hello.")

    with pytest.raises(InvalidRequest):
        rig.feed(job, "more")
    rig.finish()

    assert rig.consumed == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"hello. {BROKEN}.", "generation_failed"),
        (f"hello. {OUT_OF_MEMORY}.", "out_of_memory"),
        (f"{OUT_OF_MEMORY}.", "out_of_memory"),
    ],
)
def test_what_breaks_one_job_ends_that_job_alone(rig: SpeechRig, text: str, code: str) -> None:
    alone = rig.say(TEXT)
    breaks, goes_on = rig.start(text), rig.start(TEXT)
    rig.finish()

    end = rig.ends[breaks]
    assert isinstance(end, Failed)
    assert end.fault.code == code
    assert breaks in rig.released
    assert rig.pcm(goes_on) == alone


def test_the_log_says_what_broke_without_quoting_it(
    rig: SpeechRig, capfd: pytest.CaptureFixture[str]
) -> None:
    job = rig.start(f"hello. {BROKEN}.")
    rig.finish()

    log = capfd.readouterr().err
    assert f"job {job} broke: ValueError" in log
    assert BROKEN not in log


def test_the_same_request_gives_the_same_bytes_and_another_voice_others(rig: SpeechRig) -> None:
    first, again = rig.say(TEXT), rig.say(TEXT)
    emma, faster = rig.say(TEXT, voice="bf_emma"), rig.say(TEXT, speed=1.5)

    assert first == again
    assert len({first, emma, faster}) == 3


@pytest.mark.parametrize(
    "params", [{"speed": 0}, {"speed": 9.0}, {"speed": float("nan")}, {"voice": 7}]
)
def test_params_out_of_bounds_are_refused(rig: SpeechRig, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        rig.prepare("hello.", **params)


def test_the_offset_of_a_frame_wraps_at_32_bits() -> None:
    output = SpeechOutput(1)
    output._samples = 2**32 - 10  # 50 hours

    frames = output.audio(np.ones(FRAME_SAMPLES + 1, np.int16))

    assert [frame.aux for frame in frames] == [2**32 - 10, FRAME_SAMPLES - 10]


def test_a_job_that_waits_for_text_says_so_once_per_wait_and_not_after_the_end(
    rig: SpeechRig,
) -> None:
    def waits() -> list[Event]:
        events = [event for _ in range(20) for event in rig.step()]
        return [event for event in events if isinstance(event, Starved)]

    job = rig.start()
    assert waits() == [Starved(job)]
    rig.feed(job, "yes, and")
    assert waits() == [Starved(job)]
    rig.engine.finish_input(job)
    assert waits() == []

    assert isinstance(rig.ends[job], Finished)
