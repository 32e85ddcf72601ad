"""Stop: the text freezes at once, the receipt is the server's, and nobody else notices."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from e2e.playground import Playground
from tests.live.server import LiveServer

RECEIPT = re.compile(
    r"^stopped (in [\d.]+ m?s · \d+ tokens? wasted · slot and cache released$"
    r"|· the engine needed more than)"
)
# On a machine that does much else all of them may be confirmed late, and then say so.
STOPS = re.compile(r"median stop|\d late")
LONG = "tokens=900 step_ms=20"


def used_slots(server: LiveServer) -> float:
    return server.metric("plait_engine_slots_used", model="scripted")


def test_one_of_three_stops_at_once_and_the_others_finish(
    playground: Playground, server: LiveServer
) -> None:
    first, second, third = playground.ask("tokens=150 step_ms=60", copies=3)
    for card in (first, second, third):
        card.wait_words("w5")
    reserved = server.metric("plait_kv_reserved_bytes", model="scripted")

    second.stop.click()
    frozen = second.read()

    second.wait_state("cancelled")
    assert RECEIPT.match(second.receipt.inner_text())
    server.wait_until(lambda: used_slots(server) == 2, 8, "the stopped stream's slot is back")
    assert server.metric("plait_kv_reserved_bytes", model="scripted") == reserved * 2 / 3
    for card in (first, third):
        card.wait_state("completed").wait_words("w0 w1 ", "w149")
    assert second.read() == frozen
    assert "w149" not in frozen
    server.wait_idle()


def test_stop_ends_the_work_on_the_server_too(playground: Playground, server: LiveServer) -> None:
    (card,) = playground.ask(LONG)
    card.wait_words("w3")

    card.stop.click()

    server.wait_idle()
    card.wait_state("cancelled")
    expect(playground.test_id("status-active")).to_have_text("0")
    expect(playground.test_id("status-slots")).to_have_attribute("data-used", "0")


def test_a_waiting_stream_stops_without_ever_having_run(playground: Playground) -> None:
    cards = playground.ask(LONG, copies=6)
    waiting = cards[5].wait_state("pending")
    expect(waiting.root).to_contain_text("in line")

    waiting.stop.click()

    waiting.wait_state("cancelled")
    expect(waiting.receipt).to_have_text("stopped before it started · nothing was computed")
    assert waiting.read() == ""
    playground.page.get_by_label("Stream", exact=True).select_option(f"Stream {waiting.stream_id}")
    assert "started" not in playground.wire_types()
    assert playground.wire_types()[-2:] == ["cancel", "cancelled"]


def test_a_release_that_is_late_is_not_claimed(playground: Playground) -> None:
    (card,) = playground.ask(f"{LONG} cancel_ms=600")
    card.wait_words("w3")

    card.stop.click()

    card.wait_state("cancelled")
    expect(card.receipt).to_have_attribute("data-tone", "warn")
    expect(card.receipt).to_contain_text("needed more than 100 ms to confirm")
    expect(card.receipt).to_contain_text("slot back since")
    expect(playground.page.get_by_text("1 late", exact=True)).to_be_visible()


def test_a_failed_answer_keeps_its_text_and_says_what_to_do(playground: Playground) -> None:
    (card,) = playground.ask("tokens=50 step_ms=5 fail_at=5")

    card.wait_state("errored")

    assert "w0 w1 w2 w3 w4 ".startswith(card.read())  # an error purges what was not sent yet
    expect(card.root).to_have_attribute("data-reason", "generation_failed")
    expect(card.receipt).not_to_be_empty()
    expect(card.retry).to_be_visible()


def test_escape_stops_the_focused_stream_and_shift_escape_all(playground: Playground) -> None:
    first, second, third = playground.ask(LONG, copies=3)
    for card in (first, second, third):
        card.wait_words("w2")

    first.text.focus()
    playground.page.keyboard.press("Escape")
    first.wait_state("cancelled")
    second.wait_state("streaming")
    playground.page.keyboard.press("Shift+Escape")

    second.wait_state("cancelled")
    third.wait_state("cancelled")


def test_stop_times_are_kept_as_a_sparkline(playground: Playground) -> None:
    for card in playground.ask(LONG, copies=3):
        card.wait_words("w1")

    playground.test_id("stop-all").click()

    expect(playground.page.get_by_text(STOPS)).to_be_visible()
