"""Sound that no gesture asked for, under Chromium's two autoplay policies.

Playwright's own clicks and evaluations count as gestures, so a script in the page presses the
buttons, and the test looks only after it said so on the console.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Playwright, expect

from e2e.browser import launch
from e2e.playground import LOADING_MS, Playground
from tests.live.server import LiveServer

SOUNDED = re.compile("playing|finished")  # a short sound may be over when it is looked for
PRESS = """
const press = setInterval(() => {
  const connected = document.querySelector("[data-testid=connection-state][data-state=open]");
  if (!connected) return;
  document.querySelector("nav [title^=Speak]").click();
  const sample = document.querySelector("[data-testid=speak-sample]");
  if (!sample) return; // the panel is still being fetched
  clearInterval(press);
  sample.click();
  setTimeout(() => console.log("pressed"), 1000);
}, 20);
"""


@pytest.fixture(scope="module")
def browser_with(playwright: Playwright) -> Iterator[Callable[[str], Browser]]:
    """One browser per policy; every test opens a page, in a context of its own."""
    launched: dict[str, Browser] = {}

    def browser_with(policy: str) -> Browser:
        if policy not in launched:
            launched[policy] = launch(playwright, f"--autoplay-policy={policy}")
        return launched[policy]

    yield browser_with
    for browser in launched.values():
        browser.close()


def press_without_a_gesture(browser: Browser, url: str) -> Playground:
    playground = Playground(browser.new_page(), url)
    playground.page.add_init_script(PRESS)
    pressed = playground.page.expect_console_message(
        lambda message: message.text == "pressed", timeout=LOADING_MS
    )
    with pressed:
        playground.page.goto(url)
    return playground


def test_blocked_sound_is_said_waits_for_a_gesture_and_then_plays_whole(
    speaking_server: LiveServer, browser_with: Callable[[str], Browser]
) -> None:
    browser = browser_with("document-user-activation-required")
    playground = press_without_a_gesture(browser, speaking_server.url)
    stage = playground.stage.wait_playback("blocked")
    expect(stage.root).to_contain_text("0:00.0")
    expect(playground.test_id("enable-sound")).to_be_visible()

    playground.test_id("enable-sound").click()

    stage.wait_playback(SOUNDED)
    expect(playground.test_id("enable-sound")).to_be_hidden()
    stage.wait_state("completed")
    expect(stage.text.locator(".word:not(.said)")).to_have_count(0)
    playground.expect_errors("AudioContext was not allowed to start")
    assert playground.errors == []


def test_allowed_sound_needs_no_prompt(
    speaking_server: LiveServer, browser_with: Callable[[str], Browser]
) -> None:
    browser = browser_with("no-user-gesture-required")
    playground = press_without_a_gesture(browser, speaking_server.url)

    playground.stage.wait_playback(SOUNDED).wait_state("completed")

    assert playground.errors == []


def test_a_click_on_speak_is_the_gesture(
    speaking_server: LiveServer, browser_with: Callable[[str], Browser]
) -> None:
    browser = browser_with("document-user-activation-required")
    playground = Playground(browser.new_page(), speaking_server.url).open()

    stage = playground.speak("One two three four five six.")

    stage.wait_playback(SOUNDED).wait_state("completed")
    assert playground.errors == []
