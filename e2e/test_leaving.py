"""Reload, closed tab, lost network: nothing runs on, and no text is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from e2e.cable import Cable
from e2e.playground import Playground
from tests.live.server import LiveServer, live_server

LONG = "tokens=900 step_ms=20"


def test_ten_reloads_with_three_running_leave_nothing_active(
    playground: Playground, server: LiveServer
) -> None:
    for _ in range(10):
        for card in playground.ask(LONG, copies=3):
            card.wait_state("streaming")
        playground.reload()
        server.wait_idle()
        expect(playground.cards).to_have_count(0)

    (card,) = playground.ask("tokens=3")
    card.wait_state("completed").wait_words("w0 w1 w2")


def test_closing_one_tab_leaves_the_other_tabs_answer_alone(
    playground: Playground, server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    other = new_tab(server.url).open()
    (kept,) = other.ask("tokens=200 step_ms=20")
    (closed,) = playground.ask(LONG)
    closed.wait_words("w3")
    kept.wait_words("w3")

    playground.page.close()

    kept.wait_state("completed").wait_words("w0 w1 ", "w199")
    server.wait_idle()


@pytest.fixture
def cable() -> Iterator[Cable]:
    made = Cable()
    yield made
    made.close()


@pytest.fixture
def far_server(cable: Cable) -> Iterator[LiveServer]:
    """A server behind the cable; the page's origin is the cable's."""
    with live_server(allowed_origins=f"http://127.0.0.1:{cable.port}") as running:
        cable.join(running.port)
        yield running


def test_a_lost_connection_keeps_the_text_and_retry_gives_the_whole_answer_once(
    cable: Cable, far_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    playground = new_tab(f"http://127.0.0.1:{cable.port}").open()
    (card,) = playground.ask("tokens=80 step_ms=20")
    card.wait_words("w5")

    cable.cut()
    card.wait_state("errored")
    kept = card.read()
    expect(playground.test_id("banner")).to_contain_text("Connection lost")
    assert kept.startswith("w0 w1 w2 w3 w4 w5")
    far_server.wait_idle()

    cable.mend()
    playground.wait_connected()
    expect(playground.test_id("banner")).to_be_hidden()
    assert card.read() == kept
    card.retry.click()
    card.wait_state("completed")
    assert card.read() == "".join(f"w{n} " for n in range(80))
    playground.expect_errors("WebSocket|ERR_")


def test_a_server_that_shuts_down_says_so_on_the_card_and_in_the_bar(
    new_tab: Callable[[str], Playground],
) -> None:
    with live_server(drain_seconds=1) as leaving:
        playground = new_tab(leaving.url).open()
        banner = playground.test_id("banner")
        (card,) = playground.ask(LONG)
        card.wait_words("w3")

        leaving.process.terminate()

        expect(banner).to_have_text("The server is shutting down · 1 s left")
        expect(playground.composer).not_to_be_editable()
        card.wait_state("cancelled")
        expect(card.receipt).to_contain_text("the server was shutting down")
        playground.wait_connection("reconnecting")
        expect(banner).to_contain_text("The server shut down")
    assert card.read().startswith("w0 w1 w2 w3")
    playground.expect_errors("WebSocket|ERR_")
