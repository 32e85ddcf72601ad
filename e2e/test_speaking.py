"""Speak: it plays without a seam, at the right pitch, stops at once, and what is saved is a WAV.

The scripted engine speaks a pure tone per word, so what ought to be heard is known.
"""

from __future__ import annotations

import re
import wave
from array import array
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e.cable import Cable
from e2e.conftest import OpenTaped
from e2e.playground import Playground, Stage
from e2e.tape import Recording, Tape
from plait.engines.scripted.speech import SAMPLE_RATE, tone
from tests.live.server import LiveServer, live_server

SHORT = "word_ms=200 One two three four. Five six seven."  # eight words: 1.6 s
SHORT_SECONDS = 1.6
NINE = "word_ms=400 One two three four. Five six seven. More."  # 3.6 s, most of it ahead
LONG = "word_ms=200 step_ms=150 " + "And so on, and so forth. " * 40
RECEIPT = re.compile(
    r"^stopped (in [\d.]+ m?s · \d+ ms of audio wasted · slot released · heard [\d.]+ m?s$"
    r"|· the engine needed more than)"
)
SILENT_SECONDS = 0.1
FRAME_SECONDS = 0.2  # of LONG: a word
WINDOW = 16  # frames, the SDK's for speech
TRIES = 12


def pitch(samples: list[int], rate: float) -> float:
    """Of a pure tone, by counting where it rises through zero."""
    rises = [i for i, (a, b) in enumerate(pairwise(samples)) if a < 0 <= b]
    return (len(rises) - 1) * rate / (rises[-1] - rises[0])


def pitches(samples: list[int], rate: float) -> list[float]:
    """Of each word, without its edges."""
    word = int(0.2 * rate)
    starts = range(0, len(samples) - word // 2, word)
    return [pitch(samples[at + word // 10 : at + word * 9 // 10], rate) for at in starts]


def expected_pitches(text: str) -> list[float]:
    word = int(0.2 * SAMPLE_RATE)
    tones = [array("h", tone(each, word)) for each in text.split()]
    return [pitch(list(samples), SAMPLE_RATE) for samples in tones]


@pytest.mark.parametrize("rate", [44_100, 48_000])
def test_speech_sounds_without_a_seam_and_at_its_pitch_at_any_device_rate(
    taped: OpenTaped, rate: int
) -> None:
    playground, tape = taped(rate)

    recording = record_without_gap(playground, tape)

    assert recording.rate == rate
    sound = recording.sounding
    assert len(sound) / rate == pytest.approx(SHORT_SECONDS, abs=0.02)
    assert pitches(sound, rate) == pytest.approx(expected_pitches(SHORT), rel=0.005)
    assert_seamless(sound, rate)


def record_without_gap(playground: Playground, tape: Tape) -> Recording:
    """A gap that the page itself counts, or a block that the audio thread left out, is a machine
    too busy to be judged: once more then.
    """
    for _ in range(TRIES):
        stage = playground.speak(SHORT).wait_state("completed")
        recording = tape.read()
        if stage.gaps.inner_text() == "" and recording.whole:
            return recording
        playground.reload()
    pytest.fail(f"{TRIES} times audio was not there in time")


def assert_seamless(sound: list[int], rate: float) -> None:
    """No gap of 0.1 ms and no jump: tones of amplitude 8000 and at most 980 Hz move so far only."""
    steepest = 8000 * 2 * 3.1416 * 980 / rate
    assert max(abs(b - a) for a, b in pairwise(sound)) < 1.3 * steepest
    still = longest = 0
    for a, b in pairwise(sound):
        still = still + 1 if a == b == 0 else 0
        longest = max(longest, still)
    assert longest < 0.0001 * rate


def test_stop_in_mid_sentence_is_silence_and_no_later_chunk(
    taped: OpenTaped, speaking_server: LiveServer
) -> None:
    playground, tape = taped()
    stage = playground.speak(LONG).wait_heard(1)
    before = tape.presses()

    stage.stop.click()

    stage.wait_state("cancelled")
    assert RECEIPT.match(stage.receipt.inner_text())
    speaking_server.wait_idle()
    assert_silent_after_press(tape, before)
    assert_nothing_after_the_terminal(playground, stage)
    expect(playground.test_id("status-active")).to_have_text("0")


def assert_silent_after_press(tape: Tape, press: int) -> None:
    """Blocks that a busy machine's audio thread left out are silence as well."""
    tape.wait_after(press, 5 * SILENT_SECONDS)
    recording = tape.read()
    assert recording.last_sound - recording.presses[press] < SILENT_SECONDS


def assert_nothing_after_the_terminal(playground: Playground, stage: Stage) -> None:
    playground.filter_wire(stage.stream_id)
    types = playground.wire_types()
    assert types[-1] == "cancelled"
    assert "cancel" in types
    assert "audio_out" in types


def test_stop_after_the_server_is_done_is_silence_too(taped: OpenTaped) -> None:
    playground, tape = taped()

    stage, press = stop_what_only_sounds(playground, tape)

    expect(stage.receipt).to_contain_text("all of it had been computed")
    assert_silent_after_press(tape, press)


def stop_what_only_sounds(playground: Playground, tape: Tape) -> tuple[Stage, int]:
    """And which press it was. On a busy machine all may have been heard by then: once more then."""
    for _ in range(TRIES):
        stage = playground.speak(NINE).wait_state(re.compile("sounding|completed")).wait_heard()
        before = tape.presses()
        playground.page.keyboard.press("Escape")
        stage.wait_state(re.compile("cancelled|completed"))
        if stage.root.get_attribute("data-state") == "cancelled":
            return stage, before
        playground.reload()
    pytest.fail(f"{TRIES} times all was heard before it could be stopped")


def read_wav(path: Path) -> tuple[float, bytes]:
    """Seconds and samples, by a strict reader."""
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        data = file.readframes(file.getnframes())
        assert len(data) == 2 * file.getnframes()
        return file.getnframes() / file.getframerate(), data


def save(playground: Playground, stage: Stage, path: Path) -> Path:
    with playground.page.expect_download() as download:
        stage.save.click()
    download.value.save_as(path)
    return path


def test_what_is_saved_is_one_wav_of_what_was_heard(speaking: Playground, tmp_path: Path) -> None:
    stage = speaking.speak(SHORT)
    stage.wait_state("completed")

    path = save(speaking, stage, tmp_path / "speech.wav")

    seconds, data = read_wav(path)
    assert seconds == pytest.approx(SHORT_SECONDS, rel=0.01)
    assert path.read_bytes().count(b"RIFF") == 1
    word = int(0.2 * SAMPLE_RATE)
    assert data == b"".join(tone(each, word) for each in SHORT.split())


def test_what_has_arrived_can_be_saved_while_it_is_spoken(
    speaking: Playground, tmp_path: Path
) -> None:
    stage = speaking.speak(LONG).wait_heard(1)

    seconds, _ = read_wav(save(speaking, stage, tmp_path / "part.wav"))

    assert 1 <= seconds < 20
    stage.wait_state("streaming")


def test_a_paused_listener_is_at_most_a_window_behind(
    speaking: Playground, speaking_server: LiveServer
) -> None:
    """The server computes as far ahead as the SDK's window, whatever the text's length."""
    text = LONG.replace("step_ms=150", "step_ms=0")
    stage = speaking.speak(text).wait_heard(1)

    figures = re.search(r"0:(\d\d\.\d) / 0:(\d\d\.\d)", stage.root.inner_text())

    assert figures is not None
    heard, received = map(float, figures.groups())
    assert received - heard < WINDOW * FRAME_SECONDS + 1
    stage.stop.click()
    stage.wait_state("cancelled")
    speaking_server.wait_idle()


def test_an_answer_is_spoken_while_it_is_written_and_stopping_it_stops_both(
    taped: OpenTaped, speaking_server: LiveServer
) -> None:
    playground, tape = taped()
    (card,) = playground.ask("tokens=900 step_ms=100 say=well.")
    card.wait_words("well.3")
    speaker = card.root.get_by_test_id("speak-answer")
    speaker.click()
    expect(speaker).to_have_attribute("aria-pressed", "true")
    card.wait_words("well.25")
    tape.wait_sound()
    before = tape.presses()

    card.stop.click()

    card.wait_state("cancelled")
    expect(speaker).to_have_attribute("aria-pressed", "false")
    speaking_server.wait_idle()
    assert_silent_after_press(tape, before)
    playground.filter_wire(card.stream_id + 1)
    playground.wait_wire("cancelled")
    assert playground.wire_types()[-1] == "cancelled"


def test_a_reload_or_a_closed_tab_frees_everything(
    speaking: Playground, speaking_server: LiveServer
) -> None:
    for _ in range(3):
        speaking.speak(LONG).wait_state("streaming")
        speaking.reload()
        speaking_server.wait_idle()
        expect(speaking.stage.root).to_be_hidden()
    speaking.speak(LONG).wait_heard()

    speaking.page.close()

    speaking_server.wait_idle()


def test_a_lost_connection_says_so_and_what_came_can_be_saved(
    new_tab: Callable[[str], Playground], tmp_path: Path
) -> None:
    cable = Cable()
    origin = f"http://127.0.0.1:{cable.port}"
    with live_server(speech="scripted", allowed_origins=origin) as far:
        cable.join(far.port)
        playground = new_tab(origin).open()
        stage = playground.speak(LONG).wait_heard(1)

        cable.cut()

        stage.wait_state("errored")
        expect(stage.root).to_have_attribute("data-reason", "connection_lost")
        expect(stage.receipt).to_contain_text("can be saved")
        seconds, _ = read_wav(save(playground, stage, tmp_path / "kept.wav"))
        assert seconds >= 1
        cable.mend()
        playground.wait_connected()
        playground.speak(SHORT).wait_state("completed")
    cable.close()
    playground.expect_errors("WebSocket|ERR_")


def test_speech_that_waits_says_where_it_stands_and_stops_without_having_run(
    new_tab: Callable[[str], Playground],
) -> None:
    with live_server(speech="scripted", speech_slots=1) as narrow:
        new_tab(narrow.url).open().speak(LONG).wait_heard()
        waiting = new_tab(narrow.url).open().speak(SHORT).wait_state("pending")
        expect(waiting.root).to_contain_text(re.compile("Next in line"))

        waiting.stop.click()

        waiting.wait_state("cancelled")
        expect(waiting.receipt).to_have_text("stopped before it started · nothing was computed")
        expect(waiting.save).to_be_disabled()
