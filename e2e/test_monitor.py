"""The Monitor: memory, cores, models, apps, and what it says to who may not see them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, expect

from e2e.playground import Playground
from plait.access.tokens import written_hash
from tests.live.server import LiveServer, live_server

MANY = ["step_ms=200", *(f"line {index}" for index in range(2, 301))]
BYTES = re.compile(r"^[\d.]+ [KMG]?B of [\d.]+ [KMG]B$")


def figure(card: Locator, label: str) -> Locator:
    """A number of a card, by the word above it."""
    return card.locator("dl > div", has_text=re.compile(rf"^{label}")).locator("dd")


def card_of(playground: Playground, kind: str, name: str) -> Locator:
    return playground.page.locator(f"[data-testid={kind}-card][data-name='{name}']")


def test_models_are_shown_with_what_they_do_now(
    embedding: Playground, embedding_server: LiveServer
) -> None:
    batch = embedding.embed(*MANY).wait_answered(2)

    embedding.show_panel("Monitor")

    card = card_of(embedding, "model", "scripted-embed")
    expect(card).to_contain_text("embeds · scripted")
    expect(card).to_contain_text("ready")
    expect(figure(card, "Active")).to_have_text("1")
    expect(figure(card, "Slots")).to_have_text("1 of 8")
    expect(figure(card, "Loads")).to_have_text("1")
    expect(figure(card_of(embedding, "model", "scripted"), "Active")).to_have_text("0")
    embedding.page.keyboard.press("Shift+Escape")
    expect(figure(card, "Active")).to_have_text("0")
    batch.wait_state("cancelled")
    embedding_server.wait_idle(20)


def test_memory_and_cores_are_shown_of_their_budgets(embedding: Playground) -> None:
    embedding.show_panel("Monitor")

    expect(embedding.test_id("memory-used")).to_have_text(BYTES)
    shares = re.compile(r"^scripted [\d.]+ \w+, .*scripted-embed [\d.]+ \w+, running streams")
    expect(embedding.test_id("memory-bar")).to_have_attribute("aria-label", shares)
    expect(embedding.test_id("cores-used")).to_have_text(re.compile(r"^\d+ of \d+$"))
    expect(embedding.test_id("memory-pressure")).to_be_hidden()
    expect(embedding.page.get_by_text("No apps are declared")).to_be_visible()


def test_on_a_phone_nothing_scrolls_sideways(embedding: Playground) -> None:
    embedding.page.set_viewport_size({"width": 360, "height": 740})

    embedding.show_panel("Monitor")

    expect(card_of(embedding, "model", "scripted-embed")).to_be_attached()
    assert not embedding.overflows_sideways()
    expect(embedding.test_id("memory-bar")).to_be_in_viewport(ratio=1)


APPS = f"""
[apps.notes]
token_hashes = ["{written_hash(b"notes-token-0f7b")}"]
capabilities = ["chat"]
memory_budget_bytes = 1073741824

[apps.watch]
token_hashes = ["{written_hash(b"watch-token-91ac")}"]
capabilities = ["chat", "metrics", "admin"]
"""


@pytest.fixture(scope="module")
def apps_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    config = tmp_path_factory.mktemp("conf") / "plait.toml"
    config.write_text(APPS)
    home = tmp_path_factory.mktemp("home")
    with live_server(config=config, home=home, slots=4) as running:
        running.token = "watch-token-91ac"
        yield running


def open_as(playground: Playground, token: str) -> Playground:
    playground.page.goto(playground.url)
    playground.test_id("token-input").fill(token)
    playground.test_id("token-input").press("Enter")
    return playground.wait_connected()


def test_apps_are_shown_with_what_they_hold(
    apps_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    playground = open_as(new_tab(apps_server.url), "watch-token-91ac")

    playground.show_panel("Monitor")

    watch, notes = (card_of(playground, "app", name) for name in ("watch", "notes"))
    expect(watch).to_contain_text("connected")
    expect(figure(watch, "Connections")).to_have_text("1")
    expect(notes).to_contain_text("away")
    expect(figure(notes, "Memory")).to_have_text("0 B of 1.0 GB")
    expect(playground.test_id("status-denied")).to_be_hidden()


def test_an_app_that_may_not_see_the_status_is_told_so_and_never_asks(
    apps_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    playground = new_tab(apps_server.url)
    asked: list[str] = []
    playground.page.on("request", lambda request: asked.append(request.url))
    open_as(playground, "notes-token-0f7b").ask("tokens=3")[0].wait_state("completed")

    playground.show_panel("Monitor")

    expect(playground.test_id("status-denied")).to_contain_text("capability admin")
    expect(playground.test_id("memory-used")).to_be_hidden()
    assert not [url for url in asked if url.endswith(("/v1/status", "/metrics"))]


def test_a_panel_the_app_has_no_right_to_says_whose_right_it_is(
    apps_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    playground = open_as(new_tab(apps_server.url), "notes-token-0f7b")

    playground.show_panel("Embed")

    expect(playground.test_id("no-embedding")).to_contain_text("The app notes does not embed here")
    expect(playground.page.get_by_text("plait models pull all-minilm")).to_be_hidden()
