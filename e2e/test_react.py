"""The hooks in a real browser, with React 18 and 19 in StrictMode, and the AI SDK's useChat.

The pages are web/test/pages; they come from another origin than the server. What they hold on the
server is read from its gauges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from e2e.bundled import WEB, Pages
from e2e.cable import Cable
from e2e.conftest import SPOKEN
from e2e.microphone import write_clip
from e2e.playground import GENEROUS_MS, Playground
from plait.engines.scripted.hearing import recite
from tests.live.server import LiveServer

OLDER = ("--alias:react=react-18", "--alias:react-dom=react-dom-18")
LONG = "tokens=100000 step_ms=5"
BOOLEAN = re.compile("^(true|false)$")
PHRASE = "six seven eight nine"
WORDS = "w0 w1 w2 w3 w4 "
OpenPage = Callable[..., "HookPage"]


class HookPage:
    """One of our pages; what goes wrong in its console fails the test."""

    def __init__(self, page: Page, url: str) -> None:
        self.watched = Playground(page, url)
        self.page = page
        page.goto(url)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def ask(self, prompt: str) -> None:
        self.page.get_by_label("Prompt").fill(prompt)
        self.page.get_by_label("Prompt").press("Enter")

    def wait(self, name: str, text: str) -> None:
        expect(self.page.get_by_test_id(name)).to_have_text(text, timeout=GENEROUS_MS)

    def wait_part(self, name: str, text: str) -> None:
        expect(self.page.get_by_test_id(name)).to_contain_text(text, timeout=GENEROUS_MS)

    @property
    def messages(self) -> list[str]:
        return self.page.get_by_test_id("messages").locator("li").all_inner_texts()

    @property
    def sent(self) -> list[str]:
        sent: list[str] = self.page.evaluate("window.sent")
        return sent


@pytest.fixture(scope="session")
def built(pages: Pages) -> Pages:
    sources = WEB / "test" / "pages"
    pages.build(sources / "hooks.jsx", "hooks-18", *OLDER)
    pages.build(sources / "hooks.jsx", "hooks-19")
    pages.build(sources / "ai.jsx", "ai")
    return pages


@pytest.fixture
def open_page(context: BrowserContext, built: Pages, app_server: LiveServer) -> Iterator[OpenPage]:
    """Nobody else is connected."""
    wait_unconnected(app_server)
    opened: list[HookPage] = []

    def open_page(name: str, on: BrowserContext = context, **asked: str) -> HookPage:
        url = built.url(f"/built/{name}.html", **{"server": app_server.url, **asked})
        opened.append(HookPage(on.new_page(), url))
        return opened[-1]

    yield open_page
    assert [page.watched.errors for page in opened if page.watched.errors] == []


def wait_unconnected(server: LiveServer) -> None:
    server.wait_until(lambda: server.metric("plait_connections") == 0, 20, "nobody connected")


def chats_ended(server: LiveServer) -> float:
    counts = server.metrics()
    return sum(
        value
        for (name, labels), value in counts.items()
        if name == "plait_streams_total" and ("method", "chat") in labels
    )


@pytest.mark.parametrize("version", ["18", "19"])
def test_a_chat_asked_on_mounting_is_asked_once_over_one_connection_that_goes_with_it(
    open_page: OpenPage, app_server: LiveServer, version: str
) -> None:
    before = chats_ended(app_server)

    page = open_page(f"hooks-{version}", prompt="tokens=5")

    expect(page.page.get_by_role("heading")).to_contain_text(f"React {version}.")
    page.wait("status", "completed")
    assert page.messages == ["user: tokens=5", f"assistant: {WORDS.strip()}"]
    page.wait("tokens", "5")
    assert app_server.metric("plait_connections") == 1
    assert chats_ended(app_server) == before + 1

    page.press("show nothing")
    wait_unconnected(app_server)
    page.press("show chat")
    page.wait("status", "completed")
    assert app_server.metric("plait_connections") == 1


@pytest.mark.parametrize("version", ["18", "19"])
def test_cancel_is_on_the_wire_and_in_the_state_in_one_tick_and_leaving_cancels_too(
    open_page: OpenPage, app_server: LiveServer, version: str
) -> None:
    page = open_page(f"hooks-{version}")
    page.press("show given")
    page.ask(LONG)
    page.wait_part("text", "w3 ")

    seen = page.page.evaluate(
        """() => {
          [...document.querySelectorAll("button")].find((b) => b.textContent === "stop").click();
          const status = () => document.querySelector("[data-testid=status]").textContent;
          const seen = () => [window.sentInTheTick, status()];
          return new Promise((tell) => queueMicrotask(() => tell(seen())));
        }"""
    )

    assert seen == [["cancel"], "cancelled"]
    expect(page.page.get_by_test_id("released")).to_have_text(BOOLEAN)  # false: a stalled machine
    app_server.wait_idle()
    page.ask("tokens=5")
    page.wait("text", WORDS.strip())
    page.ask(LONG)
    page.wait_part("text", "w3 ")
    page.press("show nothing")
    app_server.wait_idle()
    assert page.sent.count("cancel") == 2


@pytest.fixture
def cable(app_server: LiveServer) -> Iterator[Cable]:
    made = Cable()
    made.join(app_server.port)
    yield made
    made.close()


def test_a_lost_connection_keeps_the_text_and_retry_does_not_double_it(
    open_page: OpenPage, cable: Cable, app_server: LiveServer
) -> None:
    page = open_page("hooks-19", server=f"http://127.0.0.1:{cable.port}")
    page.press("show given")
    page.ask(LONG)
    page.wait_part("text", "w3 ")

    cable.cut()
    page.wait("status", "error")
    page.wait("error", "connection_lost")
    assert page.messages[1].startswith("assistant: w0 w1 w2 w3")
    app_server.wait_idle()

    cable.mend()
    page.wait("connection", "open")
    page.press("retry")
    page.wait_part("text", "w3 ")
    page.press("stop")
    page.wait("status", "cancelled")
    assert page.messages[1].count("w0 ") == 1
    assert len(page.messages) == 2
    page.watched.expect_errors("WebSocket connection to .* failed")


@pytest.fixture
def microphone(microphone_browser: Callable[[int], Browser]) -> Iterator[BrowserContext]:
    made = microphone_browser(48_000).new_context()
    yield made
    made.close()


def test_transcription_hears_a_microphone_or_a_file_and_stops_when_nobody_looks(
    open_page: OpenPage,
    microphone: BrowserContext,
    app_server: LiveServer,
    tmp_path: Path,
) -> None:
    page = open_page("hooks-19", microphone)
    page.press("show ears")
    file = write_clip(tmp_path / "said.wav", recite(SPOKEN, 16_000), 16_000)
    page.page.get_by_label("File").set_input_files(file)
    page.wait("status", "completed")
    page.wait_part("text", PHRASE)

    page.press("show nothing")
    page.press("show ears")
    page.wait("text", "")
    page.press("record")
    page.wait_part("text", PHRASE)  # garbled by a busy machine, it comes again
    expect(page.page.get_by_test_id("loudest")).not_to_have_text("0.00", timeout=GENEROUS_MS)
    page.press("done")
    page.wait("status", "completed")
    page.wait("speaking", "false")

    page.press("record")
    page.wait("status", "streaming")
    page.press("show nothing")
    app_server.wait_idle()


def test_speech_plays_is_heard_and_stops_with_the_chat_that_it_speaks(
    open_page: OpenPage, app_server: LiveServer
) -> None:
    page = open_page("hooks-19")
    page.press("show voice")
    page.press("speak")
    page.wait("state", "finished")
    assert int(page.page.get_by_test_id("heard-ms").inner_text()) >= 300  # words of 100 ms

    page.press("speak chat")
    page.wait("state", "playing")
    expect(page.page.get_by_test_id("heard-ms")).not_to_have_text("0", timeout=GENEROUS_MS)
    page.press("silence")
    page.wait("state", "stopped")
    app_server.wait_idle()
    assert page.sent.count("cancel") == 2

    page.press("answer aloud")
    page.wait("state", "playing")
    page.press("show nothing")
    app_server.wait_idle()
    assert page.sent.count("cancel") == 4


def test_the_ai_sdks_chat_streams_and_its_stop_reaches_the_wire(
    open_page: OpenPage, app_server: LiveServer
) -> None:
    page = open_page("ai")
    page.ask("tokens=5")
    page.wait("status", "ready")
    expect(page.page.get_by_test_id("messages")).to_contain_text(f"{WORDS}5")

    page.ask(LONG)
    page.wait_part("messages", "w9 ")
    page.press("stop")

    page.wait("status", "ready")
    app_server.wait_idle()
    assert page.sent.count("cancel") == 1
    page.wait("error", "")
    page.ask("tokens=3")
    expect(page.page.get_by_test_id("messages").locator("li")).to_have_count(6)
    page.wait("status", "ready")
