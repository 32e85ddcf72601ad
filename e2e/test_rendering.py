"""A page under a flood stays answerable: it writes once a frame, and computes in short pieces."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from e2e.main_thread import watched
from e2e.playground import Playground

LONGEST_MS = 200
FLOOD = "tokens=1700 burst=4 step_ms=24"  # of three: five hundred a second, for ten seconds
FLOOD_MS = 90_000  # on a machine that does much else
SENTENCE = "The quick brown fox jumps over the lazy dog."
# Counts frames, and how often the answer's text is written; and what typing waits for.
COUNT = """
(text) => {
  window.counts = { frames: 0, writes: 0, keys: 0, slowest: 0 };
  const { counts } = window;
  const tick = () => { counts.frames += 1; requestAnimationFrame(tick); };
  tick();
  new MutationObserver((records) => { counts.writes += records.length; })
    .observe(text, { characterData: true, subtree: true });
  addEventListener("keydown", ({ timeStamp }) => requestAnimationFrame(() => {
    counts.keys += 1;
    counts.slowest = Math.max(counts.slowest, performance.now() - timeStamp);
  }), true);
}
"""
PASTE = """
(field, lines) => {
  const pasted = new DataTransfer();
  pasted.setData("text/plain", Array.from({ length: lines }, (_, n) => `line ${n}`).join("\\n"));
  field.select();
  field.dispatchEvent(
    new ClipboardEvent("paste", { clipboardData: pasted, bubbles: true, cancelable: true }),
  );
}
"""
LINES = 20_000
TRIES = 3  # a rare pause to tidy memory is the browser's; what the page does, it does each time


@pytest.mark.timeout(400)
def test_five_thousand_tokens_in_ten_seconds_leave_typing_smooth(
    browser: Browser, flooded: Playground, record_property: Callable[[str, object], None]
) -> None:
    longest: list[float] = []
    while len(longest) < TRIES and min(longest, default=LONGEST_MS) >= LONGEST_MS:
        with watched(browser, flooded.page) as tasks:
            counts = type_into_a_flood(flooded)
        longest.append(tasks.longest)

    assert longest[-1] < LONGEST_MS
    record_property("flood", {**counts, "longest_cpu_ms": longest})


def type_into_a_flood(playground: Playground) -> dict[str, float]:
    """-> what was counted."""
    cards = playground.ask(FLOOD, copies=3)
    cards[0].wait_words("w5 ")
    cards[0].text.evaluate(COUNT)
    playground.composer.press_sequentially(SENTENCE, delay=50)
    expect(playground.composer).to_have_value(SENTENCE)
    for card in cards:
        expect(card.root).to_have_attribute("data-state", "completed", timeout=FLOOD_MS)
    counts: dict[str, float] = playground.page.evaluate("window.counts")
    assert [card.read() for card in cards] == ["".join(f"w{n} " for n in range(1700))] * 3
    assert counts["writes"] <= counts["frames"] + 1  # what had come when the counting began
    assert counts["keys"] >= len(SENTENCE)
    return counts


def test_twenty_thousand_lines_are_pasted_embedded_and_stopped_in_short_tasks(
    browser: Browser, flooded: Playground, record_property: Callable[[str, object], None]
) -> None:
    flooded.show_panel("Embed")
    longest: list[float] = []
    while len(longest) < TRIES and min(longest, default=LONGEST_MS) >= LONGEST_MS:
        with watched(browser, flooded.page) as tasks:
            paste_and_stop(flooded)
        longest.append(tasks.longest)

    assert longest[-1] < LONGEST_MS
    record_property("paste", {"longest_cpu_ms": longest})


def paste_and_stop(playground: Playground) -> None:
    lines = playground.test_id("embed-input")
    lines.evaluate(PASTE, LINES)
    expect(playground.test_id("line-count")).to_have_text("20,000 lines")
    lines.press("Control+Enter")
    batch = playground.batch.wait_state("streaming").wait_answered(50)
    expect(batch.count).to_contain_text("of 20,000 lines")
    batch.stop.click()
    batch.wait_state("cancelled")
    playground.test_id("embed-clear").click()
    expect(lines).to_be_editable()
    expect(lines).to_have_value("")
