"""Where speech begins and ends: runs, hysteresis, the silence that ends it, the end of audio."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.whisper.detector import FRAME_SAMPLES, SETTLED_FRAMES, SileroDetector
from plait.engines.whisper.endpoint import STARTING_FRAMES, Endpointer, Turn

SPEECH, DOUBT, SILENCE = 0.9, 0.4, 0.0
SILENT_FRAMES = 10


def endpointer(threshold: float = 0.5) -> Endpointer:
    return Endpointer(threshold, SILENT_FRAMES * FRAME_SAMPLES)


def turns(ears: Endpointer, probabilities: Iterable[float]) -> list[Turn]:
    return [turn for turn in map(ears.judge, probabilities) if turn is not None]


def frames(count: int) -> int:
    return count * FRAME_SAMPLES


def test_speech_begins_where_its_first_frame_does() -> None:
    told = turns(endpointer(), [SILENCE] * 7 + [SPEECH] * STARTING_FRAMES)

    assert told == [Turn("started", frames(7))]


def test_a_click_is_no_speech() -> None:
    ears = endpointer()

    assert turns(ears, ([SPEECH] * (STARTING_FRAMES - 1) + [SILENCE]) * 5) == []
    assert not ears.speaking
    assert ears.undecided_from == ears.position


def test_what_may_become_speech_is_kept_in_mind() -> None:
    ears = endpointer()

    turns(ears, [SILENCE] * 3 + [SPEECH] * 2)

    assert ears.undecided_from == frames(3)


def test_doubt_neither_begins_nor_ends_speech() -> None:
    assert turns(endpointer(), [DOUBT] * 50) == []
    assert turns(endpointer(), [SPEECH] * 5 + [DOUBT] * 50) == [Turn("started", 0)]


def test_speech_ends_where_its_last_frame_did() -> None:
    ears = endpointer()

    told = turns(ears, [SPEECH] * 8 + [SILENCE] * SILENT_FRAMES)

    assert told == [Turn("started", 0), Turn("stopped", frames(8))]


def test_a_shorter_pause_does_not_end_it() -> None:
    pause = [SILENCE] * (SILENT_FRAMES - 1)

    told = turns(endpointer(), [SPEECH] * 8 + pause + [SPEECH] + pause)

    assert told == [Turn("started", 0)]


@pytest.mark.parametrize(("threshold", "count"), [(0.8, 0), (0.3, 1)])
def test_the_threshold_can_be_set(threshold: float, count: int) -> None:
    assert len(turns(endpointer(threshold), [0.6] * 20)) == count


def test_the_end_of_audio_ends_speech() -> None:
    ears = endpointer()
    turns(ears, [SPEECH] * 8)

    assert ears.finish(frames(8) - 100) == [Turn("stopped", frames(8) - 100)]


def test_a_word_that_had_just_begun_at_the_end_of_audio_counts() -> None:
    ears = endpointer()
    turns(ears, [SILENCE, SPEECH, SPEECH])

    assert ears.finish(frames(3)) == [Turn("started", frames(1)), Turn("stopped", frames(3))]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from([SPEECH, DOUBT, SILENCE]), max_size=300))
def test_turns_alternate_and_never_overlap(probabilities: list[float]) -> None:
    ears = endpointer()

    told = turns(ears, probabilities) + ears.finish(frames(len(probabilities)))

    assert [turn.kind for turn in told] == ["started", "stopped"] * (len(told) // 2)
    places = [turn.at for turn in told]
    assert places == sorted(places)
    assert all(0 <= place <= frames(len(probabilities)) for place in places)


def test_a_detector_hears_no_speech_in_silence_of_any_length() -> None:
    detector = SileroDetector()
    silence = np.zeros(FRAME_SAMPLES, np.float32)

    assert max(detector(silence) for _ in range(3 * SETTLED_FRAMES)) < 0.1
