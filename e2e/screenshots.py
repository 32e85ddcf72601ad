"""Takes the pictures in docs/images from the starter models: `python -m e2e.screenshots`,
or those named: `… speak speak-dark`.

Three answers run, the middle one is stopped; a voice is in the middle of a sentence. What a picture
says is what that run measured. On a machine that is busy otherwise a stop may be confirmed late, or
speech may have gaps: then it tries again, a few times.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, ViewportSize, expect, sync_playwright

from e2e.browser import launch
from e2e.playground import Playground
from tests.live.server import LiveServer, live_server

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PROMPT = "Tell me a long story about a river that wanted to see the sea."
ENOUGH = re.compile(r"\d{3} tok(?!/)")
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
TRIES = 5
SPEECH = (
    "You hear the first word of this sentence before the last one has been computed. Press Stop in "
    "the middle of it: the sound ends at once, and so does the work."
)
Theme = Literal["light", "dark"]
PICTURES: list[tuple[str, Theme, ViewportSize]] = [
    ("playground", "light", WIDE),
    ("playground-dark", "dark", WIDE),
    ("playground-phone", "light", PHONE),
]


def take(browser: Browser, server: LiveServer, name: str, theme: Theme, size: ViewportSize) -> bool:
    """True when the stop was confirmed in time, as the picture shows it then."""
    server.wait_idle(30)
    context = browser.new_context(viewport=size, color_scheme=theme)
    playground = Playground(context.new_page(), server.url).open()
    cards = playground.ask(PROMPT, copies=3)
    for card in cards:
        expect(card.root).to_contain_text(ENOUGH, timeout=60_000)
    cards[1].stop.click()
    cards[1].wait_state("cancelled")
    cards[1].root.scroll_into_view_if_needed()
    expect(playground.test_id("status-active")).to_have_text("2")
    playground.page.screenshot(path=IMAGES / f"{name}.png")
    confirmed = cards[1].receipt.get_attribute("data-tone") == "good"
    context.close()
    return confirmed


SPEAKING: list[tuple[str, Theme, ViewportSize]] = [
    ("speak", "light", WIDE),
    ("speak-dark", "dark", WIDE),
    ("speak-phone", "light", PHONE),
]


def take_speaking(
    browser: Browser, server: LiveServer, name: str, theme: Theme, size: ViewportSize
) -> bool:
    """In mid-sentence; true when nothing was late until then."""
    server.wait_idle(30)
    context = browser.new_context(viewport=size, color_scheme=theme)
    playground = Playground(context.new_page(), server.url).open()
    stage = playground.speak(SPEECH).wait_heard(3)
    playground.page.screenshot(path=IMAGES / f"{name}.png")
    smooth = stage.root.get_by_text(re.compile(r"\d gaps?$")).count() == 0
    context.close()
    return smooth


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        take_all(browser, sys.argv[1:])
        browser.close()


def take_all(browser: Browser, names: list[str]) -> None:
    with live_server("llamacpp", speech="kokoro-onnx") as server:
        for takes, pictures in ((take, PICTURES), (take_speaking, SPEAKING)):
            for name, theme, size in pictures:
                if not names or name in names:
                    any(takes(browser, server, name, theme, size) for _ in range(TRIES))


if __name__ == "__main__":
    main()
