"""Hearing as a whole: what is said comes out once, in order, with the right times and bounds."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.whisper.hearing import Decoded, Hearing, Window, Word
from plait.engines.whisper.words import SAMPLE_RATE, Floats, text_of
from plait.errors import InvalidAudio
from tests.engines.whisper.voices import (
    PARAMS,
    LoudIsSpeech,
    ReadsLevels,
    cut,
    feed,
    finals,
    frames_of,
    hearing,
    listen,
    said,
    samples_of,
    segments,
    speak,
    text,
)


def heard(*script: int | float, delay: int = 0, **params: Any) -> list[dict[str, Any]]:
    return listen(hearing(**params), frames_of(speak(*script)), ReadsLevels(), delay)


def read(samples: Floats) -> str:
    window = Window(samples, 0.0, closing=True, language=None, prompt="")
    return text_of(ReadsLevels()(window).words)


def test_a_sentence_grows_and_becomes_final_after_its_pause() -> None:
    items = heard(0.5, 1, 2, 3, 4, 5, 6, 1.0)

    shown = segments(items)
    assert [segment["revision"] for segment in shown] == list(range(1, len(shown) + 1))
    assert len(shown) >= 3
    assert [segment["is_final"] for segment in shown] == [False] * (len(shown) - 1) + [True]
    assert shown[-1]["text"] == "w1 w2 w3 w4 w5 w6"


def test_what_two_decodes_agree_on_is_called_stable() -> None:
    shown = segments(heard(0.5, 1, 2, 3, 4, 5, 6, 7, 8, 1.0))

    assert shown[0]["stable"] == ""
    for one, later in pairwise(shown[:-1]):
        assert later["stable"] == one["text"]
    assert all(one["text"].startswith(one["stable"]) for one in shown[:-1])
    assert "stable" not in shown[-1]


def test_times_are_those_of_the_voice() -> None:
    (final,) = finals(heard(1.0, 1, 2, 3, 1.0))

    assert final["start"] == pytest.approx(1.0, abs=0.04)
    assert final["end"] == pytest.approx(1.98, abs=0.04)


def test_a_pause_makes_two_segments() -> None:
    one, other = finals(heard(0.5, 1, 2, 3, 0.8, 4, 5, 6, 0.8))

    assert (one["text"], other["text"]) == ("w1 w2 w3", "w4 w5 w6")
    assert (one["index"], other["index"]) == (0, 1)
    assert one["end"] <= other["start"]


@pytest.mark.parametrize(("silence_ms", "count"), [(300, 2), (900, 1)])
def test_the_pause_that_ends_a_segment_can_be_set(silence_ms: int, count: int) -> None:
    assert len(finals(heard(0.5, 1, 2, 0.5, 3, 4, 1.0, silence_ms=silence_ms))) == count


def test_after_the_end_of_a_sentence_a_shorter_pause_will_do() -> None:
    assert len(finals(heard(0.5, 8, 9, 10, 0.4, 11, 12, 1.0))) == 2
    assert len(finals(heard(0.5, 7, 8, 9, 0.4, 11, 12, 1.0))) == 1


def test_without_interims_there_are_only_finals() -> None:
    shown = segments(heard(0.5, 1, 2, 3, 4, 5, 0.8, 6, 7, 0.8, interim=False))

    assert [(one["revision"], one["is_final"]) for one in shown] == [(1, True), (1, True)]


def test_without_interims_little_is_decoded_twice() -> None:
    quiet, shown = ReadsLevels(), ReadsLevels()
    frames = frames_of(speak(0.5, *range(1, 10), 0.8, *range(11, 70), 1.0))

    items = listen(hearing(interim=False), frames, quiet)
    assert text(items) == text(listen(hearing(), frames, shown))
    assert len(quiet.windows) < len(shown.windows) / 3


def test_silence_is_neither_decoded_nor_told() -> None:
    decoder = ReadsLevels()

    assert listen(hearing(events=True), frames_of(speak(30.0)), decoder) == []
    assert decoder.windows == []


def test_the_last_word_is_heard_when_the_audio_ends_within_it() -> None:
    pcm = speak(0.5, 1, 2, 3)[: -int(0.1 * 16000) * 2]

    assert text(listen(hearing(), frames_of(pcm), ReadsLevels())) == "w1 w2 w3"


def test_the_last_words_are_heard_at_whatever_moment_the_audio_ends() -> None:
    script = (0.5, 1, 2, 3, 4, 5, 6, 1.0)
    for frames in range(10, 36):
        end = frames * 1600
        items = listen(hearing(), frames_of(speak(*script)[: end * 2]), ReadsLevels())
        assert text(items) == read(samples_of(*script)[:end])


def test_a_long_monologue_is_split_without_losing_or_doubling_a_word() -> None:
    script = range(1, 91)

    items = heard(0.5, *script, 1.0)

    assert text(items).split() == [said(word) for word in script]
    assert len(finals(items)) > 2
    assert all(final["end"] - final["start"] < 15 for final in finals(items))


def test_the_longest_segment_can_be_set() -> None:
    items = heard(0.5, *range(1, 91), 1.0, max_segment_seconds=4)

    assert all(final["end"] - final["start"] < 6 for final in finals(items))


def test_what_never_agrees_is_split_by_force() -> None:
    calls = iter(range(1, 10_000))

    def babble(window: Window) -> Decoded:
        length = len(window.samples) / 16000
        return Decoded([Word(f" x{next(calls)}", 0.0, length / 2), Word(" y", length / 2, length)])

    items = listen(hearing(), frames_of(speak(0.5, *range(1, 91))), babble)

    assert all(final["end"] - final["start"] <= 24 for final in finals(items))


def test_what_the_model_left_out_before_a_forced_cut_is_decoded_again() -> None:
    calls = iter(range(1, 10_000))
    reads = ReadsLevels()

    def tires(window: Window) -> Decoded:
        words = reads(window).words
        if len(window.samples) >= 7.5 * SAMPLE_RATE:
            words = [word for word in words[:-1] if word.end < 5.0] + words[-1:]
        return Decoded([Word(f" x{next(calls)}", 0.0, 0.01), *words])  # so nothing is agreed on

    items = listen(hearing(max_segment_seconds=4), frames_of(speak(0.5, *range(1, 91), 1.0)), tires)

    words = [word for word in text(items).split() if word.startswith("w")]
    assert words == [said(word) for word in range(1, 91)]


def test_no_window_is_longer_than_the_model_hears() -> None:
    decoder = ReadsLevels()

    listen(hearing(max_segment_seconds=28), [speak(0.5, *range(1, 91), *range(1, 91))], decoder)

    assert max(len(window.samples) for window in decoder.windows) <= 28 * 16000


def test_a_slow_decoder_is_asked_less_often_and_misses_nothing() -> None:
    quick, slow = ReadsLevels(), ReadsLevels()
    script = (0.5, *range(1, 40), 1.0)

    listen(hearing(), frames_of(speak(*script)), quick)
    items = listen(hearing(), frames_of(speak(*script)), slow, delay=25)

    assert text(items).split() == [said(word) for word in range(1, 40)]
    assert len(slow.windows) < len(quick.windows) / 2


def test_a_segment_ends_while_its_decode_is_under_way() -> None:
    items = heard(0.5, 1, 2, 3, 0.7, 4, 5, 6, 0.7, 7, 8, 1.0, delay=12)

    assert text(items) == "w1 w2 w3 w4 w5 w6 w7 w8"
    assert len(finals(items)) == 3


def test_a_window_overtaken_by_another_is_ignored() -> None:
    ears = hearing()
    for number, frame in enumerate(frames_of(speak(0.5, 1, 2, 3, 4))):
        feed(ears, frame, number * 0.1)
    window = ears.due()
    assert window is not None
    decoded = ReadsLevels()(window)

    assert ears.take(window, decoded, 2.0)
    assert ears.take(window, decoded, 2.1) == []


def test_asking_what_is_due_changes_nothing() -> None:
    ears = hearing()
    feed(ears, speak(0.5, 1, 2, 3, 4), 2.0)

    one, other = ears.due(), ears.due()

    assert one is not None
    assert other is not None
    assert one.end_sample == other.end_sample


def test_the_backlog_is_speech_that_was_not_decoded() -> None:
    ears = hearing()

    feed(ears, speak(5.0), 0.0)
    assert (ears.backlog_seconds, ears.resting) == (0.0, True)
    feed(ears, speak(*range(1, 11)), 0.0)
    assert ears.backlog_seconds == pytest.approx(3.4, abs=0.1)
    assert not ears.resting
    window = ears.due()
    assert window is not None
    ears.take(window, ReadsLevels()(window), 0.0)
    assert ears.backlog_seconds == pytest.approx(0, abs=0.1)


def test_speech_events_come_where_asked_for() -> None:
    items = heard(1.0, 1, 2, 3, 1.0, 4, 5, 1.0, events=True)

    events = [(item["event"], item["at"]) for item in items if "event" in item]
    assert [kind for kind, _ in events] == ["speech_started", "speech_stopped"] * 2
    assert [at for _, at in events] == pytest.approx([1.0, 1.98, 3.02, 3.66], abs=0.05)


def test_a_speech_event_waits_for_no_decode() -> None:
    ears = hearing(events=True)
    feed(ears, speak(0.5, 1, 2, 3, 0.2), 0.0)
    window = ears.due()
    assert window is not None

    told = [json.loads(one.data) for one in ears.hear(speak(0.6, 4, 5), 1.0)]

    assert [item["event"] for item in told] == ["speech_stopped", "speech_started"]
    assert told[1]["at"] == pytest.approx(2.32, abs=0.05)
    assert ears.take(window, ReadsLevels()(window), 2.0)


def test_words_have_times_where_asked_for() -> None:
    (final,) = finals(heard(1.0, 1, 2, 3, 1.0, words=True))

    assert [word["text"] for word in final["words"]] == ["w1", "w2", "w3"]
    assert [word["start"] for word in final["words"]] == pytest.approx([1.0, 1.34, 1.68], abs=0.04)


def test_lag_counts_from_the_arrival_of_the_last_audio_that_is_covered() -> None:
    (final,) = finals(heard(0.5, 1, 2, 3, 1.0, interim=False))

    # The voice ended at 1.5, half a second of silence was waited for.
    assert final["lag_ms"] == pytest.approx(500, abs=110)


def test_lag_counts_to_the_moment_when_it_is_told_also_after_a_long_decode() -> None:
    ears = hearing()
    feed(ears, speak(0.5, 1, 2, 3, 0.3), 1.0)
    window = ears.due()
    assert window is not None
    ears.hear(speak(1.0), 2.0)

    items = ears.take(window, ReadsLevels()(window), 4.0) + ears.follow(4.0)

    final = finals([json.loads(one.data) for one in items])[-1]
    assert final["lag_ms"] == 3000


def test_what_was_shown_and_turns_out_to_be_nothing_ends_with_an_empty_final() -> None:
    def doubts(window: Window) -> Decoded:
        return Decoded([] if window.closing else [Word(" Hm.", 0.0, 0.3)])

    shown = segments(listen(hearing(), frames_of(speak(0.5, 1, 2, 3, 4, 1.0)), doubts))

    assert [one["text"] for one in shown][-2:] == ["Hm.", ""]
    assert shown[-1]["is_final"]


def test_what_the_model_only_guesses_is_not_shown_before_speech_pauses() -> None:
    def guesses(window: Window) -> Decoded:
        return Decoded([Word(" Thanks.", 0.0, 0.3, probability=0.1)])

    shown = segments(listen(hearing(), frames_of(speak(0.5, *range(1, 9), 1.0)), guesses))

    assert [one["is_final"] for one in shown] == [False, True]
    assert shown[0]["end"] == shown[1]["end"]


@pytest.mark.parametrize("text", [" [BLANK_AUDIO]", " (coughs)", " ♪", " *music*", " ...", ""])
def test_sounds_that_are_no_speech_give_no_item(text: str) -> None:
    def sounds(_: Window) -> Decoded:
        return Decoded([Word(text, 0.0, 1.0)])

    assert listen(hearing(), frames_of(speak(0.5, 1, 2, 3, 4, 1.0)), sounds) == []


def test_the_language_is_told_once_it_was_detected_and_not_asked_again() -> None:
    decoder = ReadsLevels()
    ears = Hearing(PARAMS, LoudIsSpeech(), multilingual=True)

    def detects(window: Window) -> Decoded:
        return Decoded(decoder(window).words, window.language or "de")

    items = listen(ears, frames_of(speak(0.5, *range(1, 9), 1.0, 11, 12, 13, 1.0)), detects)

    assert [final["language"] for final in finals(items)] == ["de", "de"]
    asked = [window.language for window in decoder.windows]
    assert asked[0] is None
    assert asked == sorted(asked, key=lambda language: language is not None)
    assert asked[-1] == "de"
    assert len(decoder.windows[0].samples) >= SAMPLE_RATE


def test_a_language_that_was_set_is_passed_on_and_not_told() -> None:
    decoder = ReadsLevels()
    ears = Hearing(PARAMS | {"language": "fr"}, LoudIsSpeech(), multilingual=True)

    items = listen(ears, frames_of(speak(0.5, 1, 2, 3, 1.0)), decoder)

    assert {window.language for window in decoder.windows} == {"fr"}
    assert "language" not in finals(items)[0]


def test_the_prompt_goes_with_every_window() -> None:
    decoder = ReadsLevels()

    listen(hearing(prompt="Dashwood"), frames_of(speak(0.5, 1, 2, 3, 1.0)), decoder)

    assert {window.prompt for window in decoder.windows} == {"Dashwood"}


def test_no_audio_at_all_is_over_at_once() -> None:
    ears = hearing(events=True)

    assert ears.finish() == []
    assert ears.over


def test_a_file_is_refused() -> None:
    with pytest.raises(InvalidAudio, match="WAV"):
        feed(hearing(), b"RIFF" + bytes(40), 0.0)


def test_speech_after_a_very_long_silence_has_its_place() -> None:
    one, other = finals(heard(0.5, 1, 2, 3, 400.0, 4, 5, 6, 1.0))

    assert other["text"] == "w4 w5 w6"
    assert other["start"] == pytest.approx(one["end"] + 400, abs=0.1)


SCRIPTS = st.lists(
    st.one_of(st.integers(1, 12).map(int), st.floats(0.05, 1.5)), min_size=1, max_size=12
)
PARAMETERS = st.fixed_dictionaries(
    {
        "silence_ms": st.sampled_from([200, 350, 500, 1000]),
        "max_segment_seconds": st.sampled_from([4, 5.5, 12]),
        "interim": st.booleans(),
        "words": st.booleans(),
        "events": st.booleans(),
    }
)


def numbered(script: list[int | float]) -> list[int | float]:
    """An int becomes so many words, all different."""
    words = iter(range(1, 1000))
    spoken: list[int | float] = []
    for part in script:
        spoken += [next(words) % 90 + 1 for _ in range(part)] if isinstance(part, int) else [part]
    return spoken


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCRIPTS, PARAMETERS, st.integers(0, 30))
def test_every_word_comes_once_and_in_order(
    script: list[int | float], params: dict[str, Any], delay: int
) -> None:
    spoken = numbered(script)

    items = heard(0.3, *spoken, delay=delay, **params)

    assert text(items).split() == [said(word) for word in spoken if isinstance(word, int)]
    check_promises(items, len(speak(0.3, *spoken)) / 32000)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCRIPTS, PARAMETERS, st.integers(0, 30))
def test_what_is_heard_during_a_decode_makes_no_other_segments(
    script: list[int | float], params: dict[str, Any], delay: int
) -> None:
    frames = frames_of(speak(0.3, *numbered(script)))

    awake = listen(hearing(**params), frames, ReadsLevels(), delay)
    deaf = listen(hearing(**params), frames, ReadsLevels(), delay, deaf=True)

    assert segments(awake) == segments(deaf)
    assert [item for item in awake if "event" in item] == [item for item in deaf if "event" in item]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCRIPTS, PARAMETERS, st.integers(0, 30), st.randoms(use_true_random=False))
def test_promises_hold_whatever_the_model_says(
    script: list[int | float], params: dict[str, Any], delay: int, random: Any
) -> None:
    def raves(window: Window) -> Decoded:
        length = len(window.samples) / 16000
        words = random.choices(["a", "B.", "c,", "♪", "[x]", "…"], k=random.randrange(8))
        times = [random.uniform(-1, length + 1) for _ in words]
        return Decoded(
            [Word(f" {word}", at, at + 0.2) for word, at in zip(words, times, strict=True)]
        )

    spoken = numbered(script)
    items = listen(hearing(**params), frames_of(speak(*spoken)), raves, delay)

    check_promises(items, len(speak(*spoken)) / 32000)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from([0, 1, 2, 3, 1601, 4096]), max_size=60))
def test_how_the_bytes_are_cut_makes_no_difference(sizes: list[int]) -> None:
    pcm = speak(0.3, 1, 2, 3, 0.7, 4, 5, 0.9)

    whole = listen(hearing(words=True, events=True), [pcm], ReadsLevels(), step=0.0)
    ears = hearing(words=True, events=True)
    frames = cut(pcm, sizes)
    told = [item for frame in frames[:-1] for item in feed(ears, frame, 0.0)]
    rest = listen(ears, frames[-1:], ReadsLevels(), step=0.0)

    assert len(told) + len(rest) == len(whole)
    assert rest == whole[len(told) :]


def check_promises(items: list[dict[str, Any]], seconds: float) -> None:
    index, revision, final_to = 0, 0, 0.0
    for segment in segments(items):
        assert (segment["index"], segment["revision"]) == (index, revision + 1)
        assert final_to <= segment["start"] <= segment["end"] <= seconds
        assert segment["text"].startswith(segment.get("stable", ""))
        check_words(segment)
        revision += 1
        if segment["is_final"]:
            index, revision, final_to = index + 1, 0, segment["end"]
    assert revision == 0, "something shown never became final"


def check_words(segment: dict[str, Any]) -> None:
    at = segment["start"]
    for word in segment.get("words", []):
        assert at <= word["start"] <= word["end"] <= segment["end"]
        at = word["end"]
    if "words" in segment:
        joined = " ".join(word["text"] for word in segment["words"])
        assert joined.split() == segment["text"].split()


@pytest.mark.timeout(300)
def test_two_hours_are_heard_in_constant_memory() -> None:
    ears = hearing(words=True)
    decoder = ReadsLevels()
    minute = frames_of(speak(0.5, *range(1, 40), 46.0), 0.5)
    held = []

    for number in range(120 * len(minute)):
        feed(ears, minute[number % len(minute)], number / 2)
        while (window := ears.due()) is not None:
            ears.take(window, decoder(window), number / 2)
        decoder.windows.clear()
        if number % 7 == 0:
            held.append(len(pickle.dumps(ears)))

    first, last = held[: len(held) // 10], held[-len(held) // 10 :]
    assert max(last) < max(first) + 1000 < 4_000_000
    assert min(last) < min(first) + 1000 < 400_000
