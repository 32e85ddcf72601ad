"""The page itself: keyboard, narrow screens, the wire drawer, themes, tokens, and text as text."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import BrowserContext, expect

from e2e.playground import Playground
from tests.live.server import live_server

LONG = "tokens=900 step_ms=20"


def test_keys_switch_panels_and_list_themselves(playground: Playground) -> None:
    page = playground.page
    playground.composer.blur()

    names = ["Chat", "Listen", "Speak", "Embed", "Conversation", "Monitor"]
    for key, name in [*enumerate(names, start=1), (1, "Chat")]:
        page.keyboard.press(str(key))
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Stop all")


def test_digits_and_question_marks_in_a_prompt_are_text(playground: Playground) -> None:
    playground.composer.press_sequentially("2?w")

    expect(playground.composer).to_have_value("2?w")
    expect(playground.page.get_by_role("heading", name="Chat")).to_be_visible()


def test_escape_in_a_dialog_closes_it_and_stops_nothing(playground: Playground) -> None:
    (card,) = playground.ask(LONG)
    card.wait_words("w1")
    playground.composer.blur()
    playground.page.keyboard.press("?")
    expect(playground.page.get_by_role("dialog")).to_be_visible()

    playground.page.keyboard.press("Escape")

    expect(playground.page.get_by_role("dialog")).to_be_hidden()
    card.wait_state("streaming")
    playground.page.keyboard.press("Escape")
    card.wait_state("cancelled")


def test_escape_goes_to_the_innermost_part_and_only_then_stops(playground: Playground) -> None:
    (card,) = playground.ask(LONG)
    card.wait_words("w1")
    text_filter = playground.page.get_by_label("Filter frames by text")
    detail = playground.page.get_by_role("region", name="Selected frame")
    playground.test_id("wire-row").first.click()
    text_filter.fill("type")

    playground.page.keyboard.press("Escape")
    expect(text_filter).to_have_value("")
    expect(detail).to_be_visible()
    playground.page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    card.wait_state("streaming")
    playground.page.keyboard.press("Escape")
    card.wait_state("cancelled")


def test_escape_closes_the_options_before_it_stops(playground: Playground) -> None:
    (card,) = playground.ask(LONG)
    card.wait_words("w1")
    options = playground.page.get_by_role("button", name="Options")
    options.click()

    playground.page.keyboard.press("Escape")

    expect(options).to_have_attribute("aria-expanded", "false")
    card.wait_state("streaming")
    playground.page.keyboard.press("Escape")
    card.wait_state("cancelled")


def test_on_a_phone_escape_or_another_panel_closes_the_sheet(playground: Playground) -> None:
    playground.page.set_viewport_size({"width": 360, "height": 740})
    sheet = playground.page.get_by_role("complementary")
    playground.test_id("wire-toggle").click()
    playground.page.get_by_label("Filter frames by text").focus()

    playground.page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(playground.test_id("wire-toggle")).to_be_focused()
    playground.test_id("wire-toggle").click()
    playground.show_panel("Monitor")

    expect(sheet).to_be_hidden()


def test_on_a_phone_everything_to_touch_is_40_px_high(playground: Playground) -> None:
    playground.page.set_viewport_size({"width": 360, "height": 740})
    playground.ask("tokens=3")[0].wait_state("completed")
    playground.test_id("wire-toggle").click()
    expect(playground.test_id("wire-row").first).to_be_visible()

    heights = playground.page.locator(
        "button:visible, select:visible, .wire-row:visible, .segmented label:visible"
    ).evaluate_all("all => all.map((one) => [one.offsetHeight, one.outerHTML.slice(0, 80)])")

    assert len(heights) > 10
    assert [entry for entry in heights if entry[0] < 40] == []


def test_nothing_scrolls_sideways(playground: Playground) -> None:
    cards = playground.ask(f"tokens=30 say={'x' * 300}", copies=3)
    cards[2].wait_state("completed")
    playground.test_id("options-toggle").click()

    for width in (360, 768, 1440):
        playground.page.set_viewport_size({"width": width, "height": 740})
        playground.show_panel("Chat")
        assert not playground.overflows_sideways(), width
        playground.page.get_by_role("tab", name="Code").click()
        assert not playground.overflows_sideways(), width
        playground.page.get_by_role("tab", name="Streams").click()
        playground.show_panel("Monitor")
        assert not playground.overflows_sideways(), width
        tile = playground.page.locator(".tile").nth(1)
        expect(tile).to_be_visible()
        box = tile.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


def test_on_a_phone_the_wire_is_a_sheet_and_stop_still_works(playground: Playground) -> None:
    playground.page.set_viewport_size({"width": 360, "height": 740})
    expect(playground.page.get_by_role("complementary")).to_be_hidden()
    (card,) = playground.ask(LONG)
    card.wait_words("w3")

    playground.test_id("wire-toggle").click()
    expect(playground.test_id("wire-row").last).to_be_visible()
    playground.page.get_by_role("button", name="Close the wire drawer").click()
    card.stop.click()

    card.wait_state("cancelled")


def test_the_wire_shows_a_stream_from_open_to_done(playground: Playground) -> None:
    (card,) = playground.ask("tokens=3")
    card.wait_state("completed")

    playground.page.get_by_label("Stream", exact=True).select_option(f"Stream {card.stream_id}")

    types = [kind for kind in playground.wire_types() if kind != "ack"]
    assert types[0] == "open"
    assert types[-5:] == ["started", "item", "item", "item", "done"]
    playground.test_id("wire-row").filter(has_text="done").click()
    expect(playground.page.get_by_role("region", name="Selected frame")).to_contain_text(
        '"finish_reason": "stop"'
    )


def test_the_wire_filters_by_text_and_pauses(playground: Playground) -> None:
    (card,) = playground.ask("tokens=5")
    card.wait_state("completed")
    playground.page.get_by_label("Filter frames by text").fill('"type":"started"')
    expect(playground.test_id("wire-row")).to_have_count(1)
    playground.test_id("wire-row").first.click()
    playground.page.get_by_label("Filter frames by text").fill("nowhere")
    expect(playground.page.get_by_text("No frame matches")).to_be_visible()
    expect(playground.page.get_by_role("region", name="Selected frame")).to_be_hidden()
    playground.page.get_by_label("Filter frames by text").fill("")

    playground.page.get_by_role("button", name="Clear", exact=True).click()
    playground.page.get_by_role("button", name="Pause").click()
    (card,) = playground.ask("tokens=5")
    card.wait_state("completed")

    expect(playground.test_id("wire-row")).to_have_count(0)


def test_a_long_answer_stays_whole_and_the_document_small(playground: Playground) -> None:
    cards = playground.ask("tokens=1000 burst=4", copies=3)

    for card in cards:
        card.wait_state("completed")
        assert card.read() == "".join(f"w{n} " for n in range(1000))
    assert playground.page.locator("*").count() < 1500


def test_model_output_is_text_whatever_it_says(playground: Playground) -> None:
    (card,) = playground.ask("tokens=3 say=<img/src=x/onerror=alert(1)>")

    card.wait_state("completed")

    assert card.read().startswith("<img/src=x/onerror=alert(1)>0 ")
    expect(card.text.locator("img")).to_have_count(0)


def test_only_start_stop_and_end_are_announced(playground: Playground) -> None:
    (card,) = playground.ask("tokens=20 step_ms=5")
    card.wait_state("completed")

    announced = playground.page.locator("#announcer").inner_text()

    assert re.fullmatch(r"Answer 1 started\.\s+Answer 1 finished\.", announced.strip())


def test_the_theme_is_kept(playground: Playground) -> None:
    root = playground.page.locator("html")
    playground.test_id("theme").click()
    playground.test_id("theme").click()
    expect(root).to_have_attribute("data-theme", "dark")

    playground.reload()

    expect(root).to_have_attribute("data-theme", "dark")


def test_the_code_tab_shows_code_that_runs(playground: Playground) -> None:
    logged: list[str] = []
    playground.page.on("console", lambda message: logged.append(message.text))
    playground.page.get_by_role("tab", name="Code").click()
    shown = playground.page.get_by_role("region", name="The same through the SDK")
    expect(shown).to_contain_text("await answer.done")
    expect(shown).to_contain_text(f'from "{playground.url}/static/sdk/index.js"')
    expect(shown).to_contain_text(f'connect("{playground.url.replace("http", "ws")}/v1/ws")')

    playground.page.evaluate("import('/static/playground/examples/chat.js').then(() => 0)")

    assert "w0 " in logged
    assert "completed" in logged[-1]


def test_the_code_of_the_wire_and_the_monitor_runs(playground: Playground) -> None:
    logged: list[str] = []
    playground.page.on("console", lambda message: logged.append(message.text))
    shown = playground.page.get_by_role("region", name="The same through the SDK")
    playground.test_id("wire-code").click()
    expect(shown).to_contain_text('plait.on("frame"')
    playground.page.evaluate("import('/static/playground/examples/wire.js').then(() => 0)")
    assert any(re.match(r"→ 1 open \d+ ", text) for text in logged)
    assert "cancelled" in logged[-1]
    playground.test_id("wire-code").click()

    playground.show_panel("Monitor")
    playground.page.get_by_role("tab", name="Code").click()
    expect(shown).to_contain_text(f'fetch("{playground.url}/v1/status"')
    playground.page.evaluate("import('/static/playground/examples/monitor.js').then(() => 0)")

    assert "model scripted chat" in logged
    assert "plait_connections" in logged[-1]


def test_options_reach_the_server(playground: Playground) -> None:
    playground.test_id("options-toggle").click()
    playground.test_id("max-tokens").fill("4")
    (card,) = playground.ask("tokens=50")

    card.wait_state("completed")

    assert card.read() == "w0 w1 w2 w3 "
    expect(card.receipt).to_contain_text("token limit")


def test_a_token_is_asked_for_and_never_in_an_address(
    context: BrowserContext, new_tab: Callable[[str], Playground]
) -> None:
    addresses: list[str] = []
    context.on("request", lambda request: addresses.append(request.url))
    with live_server(tokens="open-sesame") as guarded:
        playground = new_tab(guarded.url)
        playground.page.goto(guarded.url)
        for given in ("wrong", "open-sesame"):
            playground.test_id("token-input").fill(given)
            playground.test_id("token-input").press("Enter")
            if given == "wrong":
                expect(playground.page.get_by_text("not accepted")).to_be_visible()
        playground.wait_connected()
        playground.ask("tokens=3")[0].wait_state("completed")
        expect(playground.test_id("status-slots")).to_have_attribute("data-total", "4")
        playground.reload()
        playground.show_panel("Monitor")
        expect(playground.page.get_by_text("Since the server started")).to_be_visible()
        expect(playground.page.get_by_role("link", name="/metrics")).to_be_hidden()
    assert not any("sesame" in address for address in addresses)
    tickets = [address for address in addresses if address.endswith("/v1/ticket")]
    assert len(tickets) >= 3  # for each token tried, and for the reload
    playground.expect_errors("WebSocket|ERR_|401")
