"""Speak: it plays without a seam, at the right pitch, stops at once, and what is saved is a WAV.

The scripted engine speaks a pure tone per word, so what ought to be heard is known.
"""

from __future__ import annotations

import re
import wave
from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from e2e.cable import Cable
from e2e.playground import Playground, Stage
from e2e.tape import Recording, Tape
from plait.engines.scripted_speech import SAMPLE_RATE, tone
from tests.live.server import LiveServer, live_server

SHORT = "word_ms=200 One two three four. Five six seven."  # eight words: 1.6 s
SHORT_SECONDS = 1.6
LONG = "word_ms=200 step_ms=150 " + "And so on, and so forth. " * 40
RECEIPT = re.compile(
    r"^stopped in [\d.]+ m?s · \d+ ms of audio wasted · slot released · heard [\d.]+ m?s$"
)
SILENT_SECONDS = 0.1
OpenTaped = Callable[..., tuple[Playground, Tape]]


@pytest.fixture(scope="module")
def speaking_server() -> Iterator[LiveServer]:
    with live_server(speech="scripted", slots=4) as running:
        yield running


@pytest.fixture
def playground(speaking_server: LiveServer, new_tab: Callable[[str], Playground]) -> Playground:
    speaking_server.wait_idle(20)
    return new_tab(speaking_server.url).open()


@pytest.fixture
def taped(browser: Browser, speaking_server: LiveServer) -> Iterator[OpenTaped]:
    """Opens the page with a tape in it."""
    speaking_server.wait_idle(20)
    context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)
    tab = Playground(context.new_page(), speaking_server.url)

    def open_taped(rate: int | None = None) -> tuple[Playground, Tape]:
        tape = Tape(tab.page, rate)
        return tab.open(), tape

    yield open_taped
    context.close()
    assert tab.errors == []


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
    stage = playground.speak(SHORT)

    stage.wait_state("completed")

    recording = tape.read()
    assert recording.whole
    assert recording.rate == rate
    sound = recording.sounding
    assert len(sound) / rate == pytest.approx(SHORT_SECONDS, abs=0.02)
    assert pitches(sound, rate) == pytest.approx(expected_pitches(SHORT), rel=0.005)
    assert_seamless(sound, rate)


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
    assert_silent_after_press(tape.read(), before)
    assert_nothing_after_the_terminal(playground, stage)
    expect(playground.test_id("status-active")).to_have_text("0")


def assert_silent_after_press(recording: Recording, press: int) -> None:
    assert recording.whole
    assert recording.last_sound - recording.presses[press] < SILENT_SECONDS


def assert_nothing_after_the_terminal(playground: Playground, stage: Stage) -> None:
    playground.filter_wire(stage.stream_id)
    types = playground.wire_types()
    assert types[-1] == "cancelled"
    assert "cancel" in types
    assert "audio_out" in types


def test_escape_stops_and_speak_again_starts_over(playground: Playground) -> None:
    stage = playground.speak(LONG).wait_heard()
    first = stage.stream_id
    playground.page.keyboard.press("Escape")
    stage.wait_state("cancelled")

    stage.again.click()

    stage.wait_heard()
    assert stage.stream_id > first
    playground.page.keyboard.press("Shift+Escape")
    stage.wait_state("cancelled")


def test_stop_after_the_server_is_done_is_silence_too(taped: OpenTaped) -> None:
    playground, tape = taped()
    stage = playground.speak("word_ms=400 " + SHORT.removeprefix("word_ms=200 ") + " More.")
    stage.wait_state("sounding").wait_heard()
    before = tape.presses()

    stage.stop.click()

    stage.wait_state("cancelled")
    expect(stage.receipt).to_contain_text("all of it had been computed")
    assert_silent_after_press(tape.read(), before)


def test_the_words_are_followed_while_they_are_spoken(playground: Playground) -> None:
    stage = playground.speak(SHORT)

    stage.wait_state("completed")

    expect(stage.text).to_have_text(SHORT)
    expect(stage.text.locator(".word.said")).to_have_count(8)
    expect(stage.text.locator(".now")).to_have_count(0)
    expect(stage.root.get_by_test_id("first-audio")).to_contain_text(re.compile(r"\d m?s"))
    expect(stage.root.get_by_test_id("real-time-factor")).to_contain_text(re.compile(r"RTF \d"))


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


def test_what_is_saved_is_one_wav_of_what_was_heard(playground: Playground, tmp_path: Path) -> None:
    stage = playground.speak(SHORT)
    stage.wait_state("completed")

    path = save(playground, stage, tmp_path / "speech.wav")

    seconds, data = read_wav(path)
    assert seconds == pytest.approx(SHORT_SECONDS, rel=0.01)
    assert path.read_bytes().count(b"RIFF") == 1
    word = int(0.2 * SAMPLE_RATE)
    assert data == b"".join(tone(each, word) for each in SHORT.split())


def test_what_has_arrived_can_be_saved_while_it_is_spoken(
    playground: Playground, tmp_path: Path
) -> None:
    stage = playground.speak(LONG).wait_heard(1)

    seconds, _ = read_wav(save(playground, stage, tmp_path / "part.wav"))

    assert 1 <= seconds < 20
    stage.wait_state("streaming")


def test_a_paused_listener_is_at_most_a_window_behind(
    playground: Playground, speaking_server: LiveServer
) -> None:
    """The server computes as far ahead as the SDK's window, whatever the text's length."""
    text = LONG.replace("step_ms=150", "step_ms=0")
    stage = playground.speak(text).wait_heard(1)

    received = re.search(r"/ 0:(\d\d\.\d)", stage.root.inner_text())

    assert received is not None
    assert float(received[1]) < 1.3 + 16 * 0.2 + 1
    stage.stop.click()
    stage.wait_state("cancelled")
    speaking_server.wait_idle()


def test_a_voice_is_heard_before_it_is_chosen(playground: Playground) -> None:
    playground.show_panel("Speak")
    playground.test_id("voice-toggle").click()
    hear = playground.test_id("hear-bf_emma")
    hear.click()
    expect(hear).to_have_attribute("aria-pressed", "true")
    expect(hear).to_have_attribute("aria-pressed", "false")

    playground.test_id("voice-bf_emma").check(force=True)  # drawn by the label around it

    expect(playground.test_id("voice-toggle")).to_contain_text("Emma")
    expect(playground.test_id("voice-toggle")).to_contain_text("British English, female")
    playground.speak(SHORT).wait_state("completed")


def test_speed_reaches_the_server(playground: Playground) -> None:
    playground.show_panel("Speak")
    playground.test_id("speed").fill("2")

    stage = playground.speak(SHORT).wait_state("completed")

    expect(stage.receipt).to_contain_text("spoke 800 ms")


def test_a_refused_text_says_why(playground: Playground) -> None:
    stage = playground.speak("refuse=empty_text")

    stage.wait_state("errored")

    expect(stage.root).to_have_attribute("data-reason", "empty_text")
    expect(stage.receipt).not_to_be_empty()


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
    before = tape.presses()

    card.stop.click()

    card.wait_state("cancelled")
    expect(speaker).to_have_attribute("aria-pressed", "false")
    speaking_server.wait_idle()
    assert_silent_after_press(tape.read(), before)
    playground.filter_wire(card.stream_id + 1)
    assert playground.wire_types()[-1] == "cancelled"


def test_a_reload_or_a_closed_tab_frees_everything(
    playground: Playground, speaking_server: LiveServer
) -> None:
    for _ in range(3):
        playground.speak(LONG).wait_state("streaming")
        playground.reload()
        speaking_server.wait_idle()
        expect(playground.stage.root).to_be_hidden()
    playground.speak(LONG).wait_heard()

    playground.page.close()

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


def test_only_start_stop_and_end_are_announced(playground: Playground) -> None:
    playground.speak(SHORT).wait_state("completed")

    announced = playground.page.locator("#announcer").inner_text()

    assert re.fullmatch(r"Speech started\.\s+Speech finished\.", announced.strip())


def test_the_code_tab_shows_code_that_runs(playground: Playground) -> None:
    logged: list[str] = []
    playground.page.on("console", lambda message: logged.append(message.text))
    playground.show_panel("Speak")
    playground.page.get_by_role("tab", name="Code").click()
    shown = playground.page.get_by_role("region", name="The same through the SDK")
    expect(shown).to_contain_text("speech.play()")
    expect(shown).to_contain_text(f'from "{playground.url}/static/sdk/index.js"')

    playground.page.evaluate("import('/static/playground/examples/speak.js').then(() => 0)")

    assert "completed" in logged[-1]


def test_a_phone_has_room_for_all_of_it(playground: Playground) -> None:
    playground.page.set_viewport_size({"width": 360, "height": 740})
    stage = playground.speak(LONG).wait_heard()
    for part in (stage.text, stage.stop, playground.test_id("speak")):
        expect(part).to_be_in_viewport(ratio=1)
    assert not playground.overflows_sideways()
    stage.stop.click()
    expect(stage.wait_state("cancelled").receipt).to_be_in_viewport(ratio=1)
    playground.test_id("voice-toggle").click()
    expect(playground.test_id("voice-bf_emma")).to_be_in_viewport()
    assert not playground.overflows_sideways()


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


def test_a_server_without_speech_says_what_to_do(new_tab: Callable[[str], Playground]) -> None:
    with live_server() as mute:
        playground = new_tab(mute.url).open()
        (card,) = playground.ask("tokens=3")
        card.wait_state("completed")
        expect(card.root.get_by_test_id("speak-answer")).to_be_hidden()

        playground.show_panel("Speak")

        expect(playground.test_id("no-speech")).to_contain_text("plait models pull kokoro-82m")
        expect(playground.test_id("speech-input")).to_be_hidden()
