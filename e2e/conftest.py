"""One browser and one scripted server for all; a fresh context and an idle server per test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Playwright,
    ViewportSize,
    expect,
    sync_playwright,
)

from e2e.browser import launch
from e2e.bundled import Pages, serve_pages
from e2e.microphone import launch_with_microphone, set_device_rate, write_clip
from e2e.playground import GENEROUS_MS, Playground
from e2e.tape import Tape
from plait.engines.scripted.hearing import recite
from tests.live.server import LiveServer, live_server

expect.set_options(timeout=GENEROUS_MS)
WIDE: ViewportSize = {"width": 1440, "height": 900}
OpenTaped = Callable[..., tuple[Playground, Tape]]
OpenHearing = Callable[..., Playground]
# What the fake microphone says, in words of the scripted engine: two phrases in three seconds.
SPOKEN = "three four . six seven eight nine ."


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    launched = launch(playwright)
    yield launched
    launched.close()


@pytest.fixture(scope="session")
def shared_server() -> Iterator[LiveServer]:
    with live_server(slots=4) as running:
        yield running


@pytest.fixture
def server(shared_server: LiveServer) -> LiveServer:
    shared_server.wait_idle(20)
    return shared_server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport=WIDE)
    yield made
    made.close()


@pytest.fixture
def new_tab(context: BrowserContext) -> Iterator[Callable[[str], Playground]]:
    """Opens tabs that share storage, and holds their consoles to silence at the end."""
    tabs: list[Playground] = []

    def open_tab(url: str) -> Playground:
        tabs.append(Playground(context.new_page(), url))
        return tabs[-1]

    yield open_tab
    assert [tab.errors for tab in tabs if tab.errors] == []


@pytest.fixture
def playground(server: LiveServer, new_tab: Callable[[str], Playground]) -> Playground:
    """Open and connected."""
    return new_tab(server.url).open()


@pytest.fixture(scope="session")
def full_server() -> Iterator[LiveServer]:
    """Answers, speaks, listens and embeds."""
    with live_server(
        speech="scripted", transcribe="scripted", embed="scripted", slots=4, max_tokens=8192
    ) as running:
        yield running


@pytest.fixture(scope="session")
def speaking_server(full_server: LiveServer) -> LiveServer:
    return full_server


@pytest.fixture
def speaking(speaking_server: LiveServer, new_tab: Callable[[str], Playground]) -> Playground:
    """Open and connected, to a server that speaks."""
    speaking_server.wait_idle(20)
    return new_tab(speaking_server.url).open()


@pytest.fixture
def taped(browser: Browser, speaking_server: LiveServer) -> Iterator[OpenTaped]:
    """Opens the page with a tape in it."""
    speaking_server.wait_idle(20)
    context = browser.new_context(viewport=WIDE, bypass_csp=True)
    tab = Playground(context.new_page(), speaking_server.url)

    def open_taped(rate: int | None = None) -> tuple[Playground, Tape]:
        tape = Tape(tab.page, rate)
        return tab.open(), tape

    yield open_taped
    context.close()
    assert tab.errors == []


@pytest.fixture(scope="session")
def listening_server(full_server: LiveServer) -> LiveServer:
    return full_server


@pytest.fixture(scope="session")
def microphone_browser(
    playwright: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[int], Browser]]:
    """One browser per rate of its microphone, which says SPOKEN over and over."""
    launched: dict[int, Browser] = {}

    def microphone_browser(rate: int) -> Browser:
        if rate not in launched:
            clip = tmp_path_factory.mktemp("clip") / f"{rate}.wav"
            write_clip(clip, recite(SPOKEN, rate), rate)
            launched[rate] = launch_with_microphone(playwright, clip)
        return launched[rate]

    yield microphone_browser
    for browser in launched.values():
        browser.close()


@pytest.fixture
def hearing(
    microphone_browser: Callable[[int], Browser], listening_server: LiveServer
) -> Iterator[OpenHearing]:
    """Opens tabs with a microphone, connected, on the Listen panel; they share storage."""
    listening_server.wait_idle(20)
    contexts: dict[int, BrowserContext] = {}
    tabs: list[Playground] = []

    def open_hearing(url: str = listening_server.url, rate: int = 48_000) -> Playground:
        if rate not in contexts:
            contexts[rate] = microphone_browser(rate).new_context(viewport=WIDE)
        tab = Playground(contexts[rate].new_page(), url)
        tabs.append(tab)
        set_device_rate(tab.page, rate)
        tab.open().show_panel("Listen")
        return tab

    yield open_hearing
    errors = [tab.errors for tab in tabs if tab.errors]
    for context in contexts.values():
        context.close()
    assert errors == []


@pytest.fixture(scope="session")
def embedding_server(full_server: LiveServer) -> LiveServer:
    return full_server


@pytest.fixture
def embedding(embedding_server: LiveServer, new_tab: Callable[[str], Playground]) -> Playground:
    """Open and connected, on the Embed panel."""
    embedding_server.wait_idle(20)
    tab = new_tab(embedding_server.url).open()
    tab.show_panel("Embed")
    return tab


@pytest.fixture
def flooded(full_server: LiveServer, new_tab: Callable[[str], Playground]) -> Playground:
    """Open and connected, to a server with all models and no small cap."""
    full_server.wait_idle(20)
    return new_tab(full_server.url).open()


@pytest.fixture
def listening(listening_server: LiveServer, new_tab: Callable[[str], Playground]) -> Playground:
    """Without a microphone: for files."""
    listening_server.wait_idle(20)
    tab = new_tab(listening_server.url).open()
    tab.show_panel("Listen")
    return tab


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Pages of an app's own, at another origin than the server's."""
    with serve_pages(tmp_path_factory.mktemp("pages")) as served:
        yield served


@pytest.fixture(scope="session")
def app_server(pages: Pages) -> Iterator[LiveServer]:
    """Chats, listens and speaks for those pages."""
    with live_server(
        speech="scripted", transcribe="scripted", slots=4, allowed_origins=pages.origin
    ) as running:
        yield running
