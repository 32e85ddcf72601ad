"""One browser and one scripted server for all; a fresh context and an idle server per test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, sync_playwright

from e2e.playground import Playground
from e2e.tape import Tape
from tests.live.server import LiveServer, live_server

OpenTaped = Callable[..., tuple[Playground, Tape]]
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A tab that is not in front still paints and keeps its timers: tests open several.
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.browser)


def browser_path() -> str:
    """What `make test` found, or .ci/browser finds; it says what to install if there is none."""
    if path := os.environ.get("PLAIT_TEST_BROWSER"):
        return path
    finder = Path(__file__).parents[1] / ".ci" / "browser"
    found = subprocess.run([finder], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise RuntimeError(found.stderr)
    return found.stdout.strip()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


def launch(playwright: Playwright, *flags: str) -> Browser:
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return playwright.chromium.launch(
        executable_path=browser_path(), args=[*FLAGS, *root, *flags], timeout=60_000
    )


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
    made = browser.new_context(viewport={"width": 1440, "height": 900})
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
def speaking_server() -> Iterator[LiveServer]:
    with live_server(speech="scripted", slots=4) as running:
        yield running


@pytest.fixture
def speaking(speaking_server: LiveServer, new_tab: Callable[[str], Playground]) -> Playground:
    """Open and connected, to a server that speaks."""
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
