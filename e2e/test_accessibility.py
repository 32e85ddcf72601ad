"""axe-core finds nothing against any panel: empty and in use, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from e2e.axe import Axe
from e2e.conftest import WIDE
from e2e.microphone import write_clip
from e2e.playground import Playground
from plait.engines.scripted.hearing import recite
from tests.live.server import LiveServer

pytestmark = pytest.mark.timeout(400)  # axe computes for long, on a machine that does much else
LONG = "tokens=900 step_ms=20"
SPEECH = "word_ms=200 step_ms=150 " + "And so on, and so forth. " * 20


@pytest.fixture(scope="module")
def opened(browser: Browser, full_server: LiveServer) -> Iterator[tuple[Playground, Axe]]:
    """One page for all of it: what is looked at is what is shown, not how it came."""
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    page = context.new_page()
    axe = Axe(page)
    yield Playground(page, full_server.url).open(), axe
    context.close()


@pytest.fixture
def page(opened: tuple[Playground, Axe]) -> Iterator[Playground]:
    playground, _ = opened
    yield playground
    playground.page.keyboard.press("Shift+Escape")
    assert playground.errors == []


@pytest.fixture
def axe(opened: tuple[Playground, Axe]) -> Axe:
    return opened[1]


def test_every_panel_before_anything_is_asked_of_it(page: Playground, axe: Axe) -> None:
    for name in page.panel_names():
        page.show_panel(name)
        if name == "Monitor":
            expect(page.test_id("memory-used")).to_be_visible()
        assert axe.violations_in_every_look() == [], name


def test_code_beside_each_panel(page: Playground, axe: Axe) -> None:
    for name in page.panel_names():
        page.show_panel(name)
        code = page.page.get_by_role("tab", name="Code")
        code.click()
        expect(page.page.get_by_role("region", name="The same through the SDK")).to_contain_text(
            "connect"
        )
        assert axe.violations("#panel") == [], name
        page.page.keyboard.press("ArrowLeft")
    page.page.emulate_media(color_scheme="dark")
    assert axe.violations("#panel") == []
    page.page.emulate_media(color_scheme="light")


def test_answers_that_run_fail_wait_and_are_over(page: Playground, axe: Axe) -> None:
    page.show_panel("Chat")
    failed, over = page.ask("tokens=5 fail_at=3")[0], page.ask("tokens=30")[0]
    failed.wait_state("errored")
    over.wait_state("completed")
    running = page.ask(LONG, copies=6)
    running[0].wait_words("w2")
    running[5].wait_state("pending")
    running[1].stop.click()
    running[1].wait_state("cancelled")
    page.test_id("options-toggle").click()

    assert axe.violations_in_every_look() == []


def test_the_wire_with_a_frame_open_and_the_list_of_keys(page: Playground, axe: Axe) -> None:
    page.show_panel("Chat")
    page.ask("tokens=3")[0].wait_state("completed")
    page.test_id("wire-row").first.click()
    page.test_id("wire-code").click()
    assert axe.violations("#wire") == []
    page.test_id("wire-code").click()

    for theme in ("light", "dark"):
        page.page.emulate_media(color_scheme=theme)
        assert axe.violations("#wire") == [], theme
        page.page.locator("h1:visible").click()
        page.page.keyboard.press("?")
        assert axe.violations("dialog[open]") == [], theme
        page.page.keyboard.press("Escape")
    page.page.emulate_media(color_scheme="light")


def test_a_sentence_being_spoken_and_the_voices(page: Playground, axe: Axe) -> None:
    page.speak(SPEECH).wait_heard()
    page.test_id("voice-toggle").click()

    assert axe.violations_in_every_look() == []


def test_a_transcript(page: Playground, axe: Axe, tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "clip.wav", recite("one two three . four five", 16_000), 16_000)
    page.show_panel("Listen")
    page.test_id("file-input").set_input_files(clip)
    page.listening.wait_state("completed")
    page.listening.segments.first.hover()

    assert axe.violations_in_every_look() == []


def test_lines_with_and_without_a_vector(page: Playground, axe: Axe) -> None:
    batch = page.embed("first", "nan", "third").wait_state("completed")
    batch.heat.focus()
    expect(batch.readout).to_contain_text("first")

    assert axe.violations_in_every_look() == []


def test_a_lost_connection_and_a_token_that_is_asked_for(page: Playground, axe: Axe) -> None:
    """The dialog and the banner, drawn as the page draws them."""
    page.page.evaluate(
        """async () => {
          const [{ askToken }, { createBanner }, { Store }] = await Promise.all(
            ["token", "banner", "store"].map((name) => import(`/static/playground/${name}.js`)),
          );
          const detail = "Connection lost. Text already received is kept; reconnecting.";
          const connection = { state: "reconnecting", detail, leavingAt: null };
          const store = new Store({ connection });
          createBanner(store, document.querySelector("#panel"));
          store.changed("connection");
          void askToken(true);
        }"""
    )
    expect(page.test_id("token-input")).to_be_visible()

    for theme in ("light", "dark"):
        page.page.emulate_media(color_scheme=theme)
        assert axe.violations("dialog[open]") == [], theme
        assert axe.violations("[data-testid=banner]:not([hidden])") == [], theme
