"""Reload, closed tab, lost network: nothing runs on, and no text is lost or doubled."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from e2e.cable import Cable
from e2e.playground import Playground
from tests.live.server import LiveServer, live_server

RELOADS = 20 if os.environ.get("PLAIT_TEST_PROOF") == "full" else 8
# The page asks for three answers and leaves itself as soon as it is there, again and again, once it
# is told to.
STORM = """
const left = Number(sessionStorage.getItem("storm") ?? 0);
addEventListener("DOMContentLoaded", () => {
  document.documentElement.dataset.storm = left;
  if (left <= 1) return;
  document.querySelector("[data-testid=run-three]").click();
  sessionStorage.setItem("storm", left - 1);
  location.reload();
});
"""
STORM_MS = 90_000  # on a machine that does much else
BEGIN_STORM = """
(reloads) => {
  document.documentElement.dataset.storm = "begins";
  sessionStorage.setItem("storm", reloads);
  setTimeout(() => location.reload());
}
"""
LONG = "tokens=900 step_ms=20"
MANY = ["step_ms=200", *(f"line {index}" for index in range(2, 301))]
SPEECH = "word_ms=200 step_ms=150 " + "And so on, and so forth. " * 60


@pytest.mark.timeout(240)
def test_fast_reloads_of_three_running_panels_leave_nothing_active(
    flooded: Playground, full_server: LiveServer
) -> None:
    flooded.page.add_init_script(STORM)
    start_three_panels(flooded)

    flooded.page.evaluate(BEGIN_STORM, RELOADS)

    over = expect(flooded.page.locator("html"))
    over.to_have_attribute("data-storm", "1", timeout=STORM_MS)
    flooded.wait_connected()
    full_server.wait_idle()
    expect(flooded.cards).to_have_count(0)
    (card,) = flooded.ask("tokens=3")
    card.wait_state("completed").wait_words("w0 w1 w2")


def start_three_panels(playground: Playground) -> None:
    """All of them run at the same time."""
    (card,) = playground.ask("tokens=4000 step_ms=20")
    stage = playground.speak(SPEECH).wait_state("streaming")
    batch = playground.embed(*MANY).wait_answered(1)
    for one in (card, stage, batch):
        one.wait_state("streaming")


def test_timers_of_a_hidden_tab_once_a_minute_cost_no_connection(
    full_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    """Frames go on arriving: two minutes of the page's clock pass, in two steps."""
    full_server.wait_idle(20)
    playground = new_tab(full_server.url)
    playground.page.clock.install()
    (card,) = playground.open().ask(LONG)

    for words in ("w5 ", "w25 ", "w45 "):
        card.wait_words(words)
        playground.page.clock.fast_forward(60_000)

    card.wait_words("w65 ")
    playground.wait_connected()
    card.stop.click()
    card.wait_state("cancelled")
    assert playground.wire_types().count("welcome") <= 1
    expect(playground.test_id("banner")).to_be_hidden()
    alone = lambda: full_server.metric("plait_connections") == 1  # noqa: E731
    full_server.wait_until(alone, 20, "one connection")


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
    origin = f"http://127.0.0.1:{cable.port}"
    with live_server(embed="scripted", allowed_origins=origin) as running:
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


def test_a_lost_connection_keeps_vectors_and_a_panel_not_yet_seen_comes_later(
    cable: Cable, far_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    playground = new_tab(f"http://127.0.0.1:{cable.port}").open()
    batch = playground.embed(*MANY).wait_answered(3)

    cable.cut()
    batch.wait_state("errored")
    expect(batch.root).to_have_attribute("data-reason", "connection_lost")
    expect(batch.receipt).to_contain_text("The vectors so far are kept")
    expect(batch.root.get_by_test_id("save-json")).to_be_enabled()
    playground.show_panel("Monitor")
    expect(playground.test_id("not-loaded")).to_contain_text("could not be loaded")

    cable.mend()
    playground.wait_connected()
    playground.page.get_by_role("button", name="Retry").click()
    expect(playground.test_id("memory-used")).to_be_visible()
    playground.show_panel("Embed")
    batch.again.click()
    batch.wait_state("streaming").wait_answered(3).stop.click()
    batch.wait_state("cancelled")
    playground.expect_errors("WebSocket|ERR_|dynamically imported")


def test_a_server_that_shuts_down_says_so_on_the_card_and_in_the_bar(
    new_tab: Callable[[str], Playground],
) -> None:
    with live_server(drain_seconds=10) as leaving:
        playground = new_tab(leaving.url).open()
        banner = playground.test_id("banner")
        (card,) = playground.ask(LONG)
        card.wait_words("w3")

        leaving.process.terminate()

        going = re.compile(r"^The server is shutting down · (10|[1-9]) s left$")
        expect(banner).to_have_text(going)
        expect(playground.composer).not_to_be_editable()
        card.wait_state("cancelled")
        expect(card.receipt).to_contain_text("the server was shutting down")
        playground.wait_connection("reconnecting")
        expect(banner).to_contain_text("The server shut down")
    assert card.read().startswith("w0 w1 w2 w3")
    playground.expect_errors("WebSocket|ERR_")
