"""Conversation: it hears, answers aloud, falls silent when it is talked into, and not for its echo.

The scripted engines name words by their pitch and say what the system message tells them, so what
ought to be heard is known. No test waits for a clip: in `e2e.room` the user talks when it says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, expect

from e2e.cable import Cable
from e2e.conftest import WIDE
from e2e.microphone import launch_with_microphone, set_device_rate, write_clip
from e2e.playground import Playground
from e2e.room import ECHO, Room
from e2e.talk import PATIENT_MS, Talk, Turn, assert_cancelled_on_the_wire, opened
from plait.engines.scripted.hearing import recite
from tests.live.server import LiveServer, live_server

OpenRoom = Callable[..., tuple[Playground, Talk, Room]]
BRIEF = "tokens=4 say=yes."
LONG = "tokens=400 step_ms=50 say=well."  # 80 s of speech, written in 20
WHILE = "tokens=25 step_ms=20 say=well."  # five seconds of speech
SOUNDING = re.compile("speaking|completed")
# What a busy machine confirms late is given back all the same.
CONFIRMED = re.compile(r"· (released|not confirmed within 100 ms)$")
PROOF = re.compile(
    r"^interrupted after [\d.]+ m?s · chat stopped( in [\d.]+ m?s)? · speech stopped"
    rf"( in [\d.]+ m?s)? {CONFIRMED.pattern}"
)
TIME = re.compile(r"^[\d.]+ m?s$")
SILENT_SECONDS = 0.3


@pytest.fixture
def room(browser: Browser, listening_server: LiveServer) -> Iterator[OpenRoom]:
    """Opens the page in a room with a microphone."""
    listening_server.wait_idle(20)
    context = browser.new_context(viewport=WIDE, bypass_csp=True)
    tabs: list[Playground] = []

    def open_room(
        url: str = listening_server.url, echo: float = 0
    ) -> tuple[Playground, Talk, Room]:
        tab = Playground(context.new_page(), url)
        tabs.append(tab)
        furnished = Room(tab.page, echo)
        return tab, Talk(tab), furnished

    yield open_room
    errors = [tab.errors for tab in tabs if tab.errors]
    context.close()
    assert errors == []


@pytest.fixture
def overheard(
    playwright: Playwright, tmp_path: Path, listening_server: LiveServer
) -> Iterator[Playground]:
    """Open, in a browser whose microphone says two words every ten seconds."""
    listening_server.wait_idle(20)
    clip = write_clip(tmp_path / "clip.wav", recite("three four" + 12 * " .", 48_000), 48_000)
    launched = launch_with_microphone(playwright, clip)
    tab = Playground(launched.new_page(), listening_server.url)
    set_device_rate(tab.page, 48_000)
    yield tab.open()
    launched.close()
    assert tab.errors == []


def say_until_answered(talk: Talk, room: Room, index: int, words: str = "three four") -> None:
    """Until some of the answer to turn `index` was heard."""
    before = room.sounded()
    room.say(words)
    talk.turn(index).wait_said(words)
    talk.turn(index).wait_state(SOUNDING)
    room.wait_sounded(before)


def test_what_the_microphone_says_is_answered_aloud_and_every_stage_is_timed(
    overheard: Playground, listening_server: LiveServer
) -> None:
    playground = overheard
    talk = Talk(playground).start(BRIEF)
    # What a busy machine garbles comes again in the clip's next round.
    whole = playground.page.locator("[data-testid=turn][data-state=completed]")
    whole = whole.filter(has_text="three four").filter(has_text="yes.0 yes.1")
    expect(whole.first).to_be_attached(timeout=PATIENT_MS)

    for stage in ("spoke", "wait", "transcription", "token", "sound", "answer", "speaking"):
        expect(whole.first.locator(f"[data-stage={stage}] dd")).to_have_text(TIME)
    expect(whole.first.locator("[data-lane=speech] .lane-bar[data-kind=work]")).to_be_visible()
    talk.stop.click()

    talk.wait_state("ended")
    expect(talk.receipt).to_contain_text(
        re.compile(r"^all streams stopped( in [\d.]+ m?s)? · \d+ tu")
    )
    listening_server.wait_idle()
    announced = playground.page.locator("#announcer").inner_text()
    assert announced.startswith("Conversation started.")
    assert re.search(r"Conversation ended: \d+ turns?\.$", announced)


def test_talking_into_the_answer_stops_speech_and_chat_and_only_what_was_heard_is_kept(
    room: OpenRoom, listening_server: LiveServer
) -> None:
    playground, talk, mouth = room()
    playground.open()
    talk.start(LONG)
    say_until_answered(talk, mouth, 0)

    mouth.say("six seven eight")

    cut = talk.turn(0).wait_state("interrupted")
    expect(cut.receipt).to_have_text(PROOF, timeout=PATIENT_MS)
    talk.turn(1).wait_said("six seven eight").wait_state("speaking")
    expect(cut.unheard).not_to_be_empty()
    heard = cut.heard.inner_text().strip()
    playground.page.keyboard.press("Escape")
    talk.wait_state("ended")
    listening_server.wait_idle()
    assert_fell_silent(mouth)
    for lane in ("chat", "speech"):
        assert_cancelled_on_the_wire(playground, cut.stream_id(lane))
    messages = opened(playground, talk.turn(1).stream_id("chat"))["params"]["messages"]
    assert [each["role"] for each in messages[-3:]] == ["user", "assistant", "user"]
    assert messages[-2]["content"].strip() == heard


def assert_fell_silent(room: Room) -> None:
    """By when the page showed it."""
    assert room.silent_from() < room.interruptions()[0] + SILENT_SECONDS


def test_while_the_user_talks_into_it_nothing_but_the_transcription_runs(
    room: OpenRoom, listening_server: LiveServer
) -> None:
    playground, talk, mouth = room()
    playground.open()
    talk.start(LONG)
    say_until_answered(talk, mouth, 0)

    mouth.say("six " * 100)

    talk.turn(0).wait_state("interrupted")
    listening_server.wait_until(lambda: used(listening_server) == 1, 20, "one slot is in use")
    talk.wait_state("hearing")
    playground.page.keyboard.press("Escape")
    talk.wait_state("ended")
    listening_server.wait_idle()


def used(server: LiveServer) -> float:
    metrics = server.metrics().items()
    return sum(value for (name, _), value in metrics if name == "plait_engine_slots_used")


def test_its_own_voice_in_the_microphone_interrupts_nothing_and_a_persons_does(
    room: OpenRoom,
) -> None:
    playground, talk, mouth = room(echo=ECHO)
    playground.open()
    talk.start(WHILE)
    mouth.say("three four")

    talk.turn(0).wait_said("three four").wait_state("completed")
    assert_the_server_heard_it(playground, talk)
    expect(talk.echoes).to_have_text(re.compile(r"^own voice ignored \d+"))
    expect(talk.turns).to_have_count(1)

    # None of the echo's words are in what the user says next.
    say_until_answered(talk, mouth, 1, "six seven")
    cut = talk_into_it(talk, mouth)
    expect(cut.receipt).to_contain_text(CONFIRMED, timeout=PATIENT_MS)
    talk.stop.click()
    talk.wait_state("ended")


def talk_into_it(talk: Talk, room: Room) -> Turn:
    """Into the next answer, where a busy machine had that one end before anybody was heard."""
    for index in (1, 2, 3):
        room.say("nine nine nine nine")
        turn = talk.turn(index)
        turn.wait_state(re.compile("interrupted|completed"))
        if turn.root.get_attribute("data-state") == "interrupted":
            return turn
        talk.turn(index + 1).wait_state(SOUNDING)
    raise AssertionError("three answers ended before anybody was heard to talk into them")


def assert_the_server_heard_it(playground: Playground, talk: Talk) -> None:
    """More speech was detected than the user's."""
    playground.filter_wire(talk.stream_id)
    playground.page.get_by_label("Filter frames by text").fill("speech_started")
    expect(playground.test_id("wire-row").nth(1)).to_be_visible()
    playground.page.get_by_label("Filter frames by text").fill("")


def test_interrupting_by_key_stopping_and_reloading_leave_nothing_behind(
    room: OpenRoom, listening_server: LiveServer
) -> None:
    playground, talk, mouth = room()
    playground.open()
    talk.start(LONG)
    say_until_answered(talk, mouth, 0)
    playground.page.keyboard.press("i")
    talk.wait_state("listening")
    expect(talk.turn(0).receipt).to_contain_text("stopped after", timeout=PATIENT_MS)

    say_until_answered(talk, mouth, 1)
    talk.stop.click()
    talk.wait_state("ended")
    expect(talk.turn(1).receipt).to_contain_text(CONFIRMED, timeout=PATIENT_MS)
    listening_server.wait_idle()

    talk.go_on.click()
    talk.wait_state("listening")
    say_until_answered(talk, mouth, 2)
    playground.reload()
    listening_server.wait_idle()
    playground.show_panel("Conversation")
    expect(talk.root).to_be_hidden()
    expect(playground.test_id("instructions")).to_have_value(LONG)


def test_a_lost_connection_keeps_the_turns_and_it_goes_on_with_what_was_said(
    room: OpenRoom,
) -> None:
    cable = Cable()
    origin = f"http://127.0.0.1:{cable.port}"
    with live_server(speech="scripted", transcribe="scripted", allowed_origins=origin) as far:
        cable.join(far.port)
        playground, talk, mouth = room(origin)
        playground.open()
        talk.start(BRIEF)
        mouth.say("three four")
        talk.turn(0).wait_said("three four").wait_state("completed")

        cable.cut()

        talk.wait_state("lost")
        expect(talk.receipt).to_contain_text("The connection was lost. The turns are kept")
        cable.mend()
        playground.wait_connected()
        talk.go_on.click()
        talk.wait_state("listening")
        mouth.say("six seven")
        talk.turn(1).wait_said("six seven").wait_state("completed")
        messages = opened(playground, talk.turn(1).stream_id("chat"))["params"]["messages"]
        assert [each["content"].strip() for each in messages[1:]] == [
            "three four",
            "yes.0 yes.1 yes.2 yes.3",
            "six seven",
        ]
        playground.page.close()
        playground.expect_errors("WebSocket|ERR_")
    cable.close()


def test_the_code_tab_shows_code_that_runs(room: OpenRoom) -> None:
    playground, _, mouth = room()
    playground.open().show_panel("Conversation")
    playground.page.get_by_role("tab", name="Code").click()
    shown = playground.page.get_by_role("region", name="The same through the SDK")
    expect(shown).to_contain_text("converse(connect(")
    page = playground.page
    page.evaluate(RUN)
    expect(playground.test_id("status-active")).to_have_text("1", timeout=PATIENT_MS)
    with page.expect_console_message(lambda told: told.text.startswith("completed three four")):
        mouth.say("three four")
    with page.expect_console_message(lambda told: told.text.startswith("ended")):
        page.keyboard.press("Escape")


RUN = "() => { import('/static/playground/examples/conversation.js'); }"  # until it has ended


def test_a_server_that_cannot_says_which_models_to_add(playground: Playground) -> None:
    playground.page.get_by_role("button", name="Conversation").click()
    absent = playground.test_id("no-conversation")
    expect(absent).to_contain_text("This server does not listen or speak yet")
    expect(absent).to_contain_text("plait models pull whisper-tiny.en")
    expect(absent).to_contain_text("plait models pull kokoro-82m")
    expect(playground.test_id("talk")).to_be_hidden()
