"""Listen: what a microphone says appears, settles, stops at once, and nothing stays behind.

The scripted engine names words by their pitch, so what ought to be heard is known. The microphone
says SPOKEN over and over: a phrase that a busy machine garbles comes again.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from e2e.cable import Cable
from e2e.conftest import OpenHearing
from e2e.playground import GENEROUS_MS, Listening, Playground
from tests.live.server import LiveServer, live_server

PHRASE = "six seven eight nine"
RECEIPT = re.compile(
    r"^stopped (in [\d.]+ m?s · [\d.]+ m?s of audio wasted · slot released$"
    r"|· the engine needed more than)"
)
STOPS = re.compile("median stop|1 late")
# A microphone's device, as the page sees it, gone: stop() by the page itself tells nobody.
UNPLUG = """
const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
  const media = await open(wanted);
  window.unplug = () => media.getAudioTracks()[0].dispatchEvent(new Event("ended"));
  return media;
};
"""


@pytest.mark.parametrize("rate", [44_100, 48_000])
def test_speech_appears_while_it_is_spoken_and_done_makes_all_of_it_final(
    hearing: OpenHearing, listening_server: LiveServer, rate: int
) -> None:
    playground = hearing(rate=rate)

    listening = playground.record()
    expect(listening.interims.first).to_be_attached(timeout=GENEROUS_MS)
    expect(revised(listening)).to_be_attached()
    playground.test_id("record").click()

    listening.wait_state("completed")
    expect(listening.interims).to_have_count(0)
    expect(listening.receipt).to_contain_text(re.compile(r"^heard [\d.]+ s · all of it is final$"))
    listening_server.wait_idle()
    assert_only_start_and_end_were_announced(playground)
    assert_interim_came_before_final(listening)
    assert_opened_at(playground, listening, rate)


def assert_only_start_and_end_were_announced(playground: Playground) -> None:
    count = playground.listening.finals.count()
    announced = playground.page.locator("#announcer").inner_text()
    assert re.fullmatch(rf"Recording\.\s+Finished: {count} segments?\.", announced.strip())


def assert_opened_at(playground: Playground, listening: Listening, rate: int) -> None:
    playground.filter_wire(listening.stream_id)
    playground.page.get_by_label("Filter frames by text").fill('"type":"open"')
    playground.test_id("wire-row").first.click()
    detail = playground.page.get_by_role("region", name="Selected frame")
    expect(detail).to_contain_text(f'"sample_rate": {rate}')


def revised(listening: Listening) -> Locator:
    """The phrase, final, with texts before it. On a machine that stalls audio comes in a gush, and
    what it says may be final at once: a later round has them."""
    final = "[data-testid=segment][data-final=true]:not([data-revision='1'])"
    return listening.root.locator(final).filter(has_text=PHRASE).first


def assert_interim_came_before_final(listening: Listening) -> None:
    revised(listening).hover()
    revisions = listening.root.get_by_test_id("revisions")
    expect(revisions).to_contain_text("final")
    expect(revisions.locator("li")).not_to_have_count(0)  # the texts it had before


def test_stop_freezes_the_text_and_the_receipt_is_the_servers(
    hearing: OpenHearing, listening_server: LiveServer
) -> None:
    playground = hearing()
    listening = playground.record()
    expect(listening.segments.first).to_be_visible(timeout=GENEROUS_MS)

    listening.stop.click()
    frozen = listening.read()

    listening.wait_state("cancelled")
    assert RECEIPT.match(listening.receipt.inner_text())
    listening_server.wait_idle()
    expect(playground.test_id("status-active")).to_have_text("0")
    assert listening.read() == frozen
    playground.filter_wire(listening.stream_id)
    types = playground.wire_types()
    assert types[-1] == "cancelled"
    assert {"cancel", "audio_in", "input_ack"} <= set(types)
    audio = playground.test_id("wire-row").filter(has_text=re.compile(r"audio_in .\d+"))
    expect(audio.first).to_be_visible()  # several frames in one row
    expect(playground.page.get_by_text(STOPS)).to_be_visible()


def test_escape_stops_and_recording_on_keeps_what_was_heard(hearing: OpenHearing) -> None:
    playground = hearing()
    listening = playground.record().wait_final("three")
    playground.page.keyboard.press("Escape")
    listening.wait_state("cancelled")
    first, before = listening.stream_id, listening.read()

    listening.again.click()
    listening.wait_state("streaming")
    expect(listening.segments).not_to_have_count(len(before), timeout=GENEROUS_MS)
    playground.page.keyboard.press("Shift+Escape")

    listening.wait_state("cancelled")
    assert listening.stream_id > first
    assert listening.read()[: len(before)] == before
    times = listening.root.locator("time").all_inner_texts()
    assert times == sorted(times, key=lambda text: [int(part) for part in text.split(":")])


def test_it_is_all_there_without_a_mouse(hearing: OpenHearing) -> None:
    playground = hearing()
    keyboard = playground.page.keyboard
    listening = playground.listening
    keyboard.press("/")
    expect(playground.test_id("record")).to_be_focused()
    keyboard.press("Space")
    listening.wait_final(PHRASE)
    keyboard.press("Control+Enter")
    listening.wait_state("completed")

    for _ in range(12):
        keyboard.press("Shift+Tab")
        if listening.root.locator("li:focus").count():
            break
    keyboard.press("Home")

    expect(listening.segments.first).to_be_focused()
    expect(listening.root.get_by_test_id("revisions")).to_contain_text("revision")
    described = listening.segments.first.get_attribute("aria-describedby")
    expect(playground.page.locator(f"#{described}")).to_be_visible()


def test_a_reload_or_a_closed_tab_frees_everything_and_nobody_elses(
    hearing: OpenHearing, listening_server: LiveServer
) -> None:
    kept = hearing()
    leaving = hearing()
    for _ in range(2):
        leaving.record().wait_state("streaming")
        leaving.reload().show_panel("Listen")
        listening_server.wait_idle()
        expect(leaving.listening.root).to_be_hidden()
    leaving.record().wait_state("streaming")
    other = kept.record().wait_state("streaming")

    leaving.page.close()

    listening_server.wait_until(
        lambda: listening_server.metric("plait_connections") == 1, 10, "one tab is left"
    )
    other.wait_final(PHRASE)
    kept.test_id("record").click()
    other.wait_state("completed")
    listening_server.wait_idle()


def test_a_lost_connection_keeps_the_text_and_recording_goes_on_below(
    hearing: OpenHearing,
) -> None:
    cable = Cable()
    origin = f"http://127.0.0.1:{cable.port}"
    with live_server(transcribe="scripted", allowed_origins=origin) as far:
        cable.join(far.port)
        playground = hearing(origin)
        listening = playground.record().wait_final("three")

        cable.cut()

        listening.wait_state("errored")
        kept = listening.read()
        expect(listening.root).to_have_attribute("data-reason", "connection_lost")
        expect(listening.receipt).to_contain_text("The text so far is kept")
        cable.mend()
        playground.wait_connected()
        listening.again.click()
        expect(listening.segments).not_to_have_count(len(kept), timeout=GENEROUS_MS)
        assert listening.read()[: len(kept)] == kept
        listening.stop.click()
        listening.wait_state("cancelled")
        playground.page.close()
        playground.expect_errors("WebSocket|ERR_")
    cable.close()


def test_a_microphone_that_goes_ends_the_recording_with_all_it_heard(hearing: OpenHearing) -> None:
    playground = hearing()
    playground.page.add_init_script(UNPLUG)
    playground.reload().show_panel("Listen")
    listening = playground.record().wait_final("three")

    playground.page.evaluate("window.unplug()")

    listening.wait_state("completed")
    expect(listening.interims).to_have_count(0)
    expect(listening.receipt).to_contain_text("The microphone is gone. All it heard is kept")


def test_an_answer_is_written_while_it_is_recorded(
    hearing: OpenHearing, listening_server: LiveServer
) -> None:
    playground = hearing()
    playground.record().wait_state("streaming")
    playground.show_panel("Chat")
    (card,) = playground.ask("tokens=900 step_ms=20")
    card.wait_words("w20")

    playground.show_panel("Listen")
    playground.listening.wait_final(PHRASE)
    playground.page.keyboard.press("Shift+Escape")

    playground.listening.wait_state("cancelled")
    playground.show_panel("Chat")
    card.wait_state("cancelled")
    listening_server.wait_idle()


def test_a_recording_that_waits_says_so_loses_nothing_and_stops_without_having_run(
    hearing: OpenHearing,
) -> None:
    with live_server(transcribe="scripted", transcribe_slots=1) as narrow:
        first = hearing(narrow.url)
        first.record().wait_state("streaming")
        second = hearing(narrow.url)
        waiting = second.record().wait_state("pending")
        expect(waiting.root).to_contain_text(re.compile("Next in line.*nothing is lost"))
        waiting.stop.click()
        waiting.wait_state("cancelled")
        expect(waiting.receipt).to_have_text("stopped before it started · nothing was computed")

        second.record().wait_state("pending")
        first.listening.stop.click()
        waiting.wait_final(PHRASE)
        first.page.close()
        second.page.close()


def test_a_microphone_is_chosen_by_name_and_remembered(hearing: OpenHearing) -> None:
    playground = hearing()
    device = playground.test_id("device")
    listening = playground.record().wait_state("streaming")
    expect(device.locator("option")).not_to_have_count(1)
    listening.stop.click()
    listening.wait_state("cancelled")
    name = device.locator("option").last.inner_text()
    device.select_option(label=name)

    playground.reload().show_panel("Listen")

    expect(device.locator("option:checked")).to_have_text(name)
    playground.record().wait_final("three")
    playground.page.keyboard.press("Escape")
    playground.listening.wait_state("cancelled")


def test_the_code_tab_shows_code_that_runs(hearing: OpenHearing) -> None:
    playground = hearing()
    logged: list[str] = []
    playground.page.on("console", lambda message: logged.append(message.text))
    playground.page.get_by_role("tab", name="Code").click()
    shown = playground.page.get_by_role("region", name="The same through the SDK")
    expect(shown).to_contain_text("transcribe.live(")
    expect(playground.test_id("record")).to_be_hidden()

    playground.page.evaluate("import('/static/playground/examples/listen.js').then(() => 0)")

    assert any(text.endswith(" …") for text in logged)
    assert "completed" in logged[-1]
