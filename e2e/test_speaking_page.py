"""The Speak panel as a page: keys, words, voices, refusals, phones, and a server that is mute."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from e2e.playground import Playground

SHORT = "word_ms=200 One two three four. Five six seven."  # eight words: 1.6 s
# Notes what `aria-pressed` was: a short sound may be over when it is looked for.
NOTE_PRESSED = """
(button) => new MutationObserver(() => {
  button.dataset.pressed = `${button.dataset.pressed ?? ""} ${button.ariaPressed}`;
}).observe(button, { attributeFilter: ["aria-pressed"] })
"""
LONG = "word_ms=200 step_ms=150 " + "And so on, and so forth. " * 40


def test_escape_stops_and_speak_again_starts_over(speaking: Playground) -> None:
    stage = speaking.speak(LONG).wait_heard()
    first = stage.stream_id
    speaking.page.keyboard.press("Escape")
    stage.wait_state("cancelled")

    stage.again.click()

    stage.wait_heard()
    assert stage.stream_id > first
    speaking.page.keyboard.press("Shift+Escape")
    stage.wait_state("cancelled")


def test_the_words_are_followed_while_they_are_spoken(speaking: Playground) -> None:
    stage = speaking.speak(SHORT)

    stage.wait_state("completed")

    expect(stage.text).to_have_text(SHORT)
    expect(stage.text.locator(".word.said")).to_have_count(8)
    expect(stage.text.locator(".now")).to_have_count(0)
    expect(stage.root.get_by_test_id("first-audio")).to_contain_text(re.compile(r"\d m?s"))
    expect(stage.root.get_by_test_id("real-time-factor")).to_contain_text(re.compile(r"RTF \d"))


def test_a_voice_is_heard_before_it_is_chosen(speaking: Playground) -> None:
    speaking.show_panel("Speak")
    speaking.test_id("voice-toggle").click()
    hear = speaking.test_id("hear-bf_emma")
    hear.evaluate(NOTE_PRESSED)
    hear.click()
    expect(hear).to_have_attribute("data-pressed", re.compile("true.* false$"))

    speaking.test_id("voice-bf_emma").check(force=True)  # drawn by the label around it

    expect(speaking.test_id("voice-toggle")).to_contain_text("Emma")
    expect(speaking.test_id("voice-toggle")).to_contain_text("British English, female")
    speaking.speak(SHORT).wait_state("completed")


def test_speed_reaches_the_server(speaking: Playground) -> None:
    speaking.show_panel("Speak")
    speaking.test_id("speed").fill("2")

    stage = speaking.speak(SHORT).wait_state("completed")

    expect(stage.receipt).to_contain_text("spoke 800 ms")


def test_a_refused_text_says_why(speaking: Playground) -> None:
    stage = speaking.speak("refuse=empty_text")

    stage.wait_state("errored")

    expect(stage.root).to_have_attribute("data-reason", "empty_text")
    expect(stage.receipt).not_to_be_empty()


def test_only_start_stop_and_end_are_announced(speaking: Playground) -> None:
    speaking.speak(SHORT).wait_state("completed")

    announced = speaking.page.locator("#announcer").inner_text()

    assert re.fullmatch(r"Speech started\.\s+Speech finished\.", announced.strip())


def test_the_code_tab_shows_code_that_runs(speaking: Playground) -> None:
    logged: list[str] = []
    speaking.page.on("console", lambda message: logged.append(message.text))
    speaking.show_panel("Speak")
    speaking.page.get_by_role("tab", name="Code").click()
    shown = speaking.page.get_by_role("region", name="The same through the SDK")
    expect(shown).to_contain_text("speech.play()")
    expect(shown).to_contain_text(f'from "{speaking.url}/static/sdk/index.js"')

    speaking.page.evaluate("import('/static/playground/examples/speak.js').then(() => 0)")

    assert "completed" in logged[-1]


def test_a_phone_has_room_for_all_of_it(speaking: Playground) -> None:
    speaking.page.set_viewport_size({"width": 360, "height": 740})
    stage = speaking.speak(LONG).wait_heard()
    for part in (stage.text, stage.stop, speaking.test_id("speak")):
        expect(part).to_be_in_viewport(ratio=1)
    assert not speaking.overflows_sideways()
    stage.stop.click()
    expect(stage.wait_state("cancelled").receipt).to_be_in_viewport(ratio=1)
    speaking.test_id("voice-toggle").click()
    expect(speaking.test_id("voice-bf_emma")).to_be_in_viewport()
    assert not speaking.overflows_sideways()


def test_a_server_without_speech_says_what_to_do(playground: Playground) -> None:
    (card,) = playground.ask("tokens=3")
    card.wait_state("completed")
    expect(card.root.get_by_test_id("speak-answer")).to_be_hidden()

    playground.show_panel("Speak")

    expect(playground.test_id("no-speech")).to_contain_text("plait models pull kokoro-82m")
    expect(playground.test_id("speech-input")).to_be_hidden()
