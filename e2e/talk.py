"""Page objects of the Conversation panel: the conversation, its turns, their streams' frames."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Locator, expect

from e2e.playground import Playground

# Three models and two audio threads on a machine that does much else.
PATIENT_MS = 60_000
# Somebody may talk from the first moment on.
STARTED = re.compile("^(listening|hearing|thinking|speaking)$")


class Turn:
    """One row."""

    def __init__(self, root: Locator) -> None:
        self.root = root
        self.said = root.get_by_test_id("said")
        self.answer = root.get_by_test_id("answer")
        self.heard = root.get_by_test_id("answer-heard")
        self.unheard = root.get_by_test_id("answer-unheard")
        self.receipt = root.get_by_test_id("turn-receipt")

    def wait_state(self, state: str | re.Pattern[str]) -> Turn:
        expect(self.root).to_have_attribute("data-state", state, timeout=PATIENT_MS)
        return self

    def wait_said(self, words: str) -> Turn:
        expect(self.said).to_have_text(words, timeout=PATIENT_MS)
        return self

    def stage(self, name: str) -> Locator:
        """Its figure; a dash while it is not over."""
        return self.root.locator(f"[data-stage={name}] dd")

    def stream_id(self, lane: str) -> int:
        """you, chat or speech."""
        found = self.root.locator(f"[data-lane={lane}]")
        return int(found.get_attribute("data-stream-id") or 0)


class Talk:
    """The conversation of the panel."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.root = playground.test_id("conversation")
        self.turns = playground.test_id("turn")
        self.stop = playground.test_id("stop-conversation")
        self.receipt = playground.test_id("conversation-receipt")
        self.go_on = playground.test_id("go-on")
        self.echoes = playground.test_id("echoes")

    def start(self, told: str) -> Talk:
        """With these words as what the model is told first."""
        # "Talk" where the rail has little room; the title is the same.
        self.playground.page.get_by_title(re.compile("^Conversation")).click()
        self.playground.test_id("talk-options-toggle").click()
        self.playground.test_id("instructions").fill(told)
        self.playground.test_id("talk-options-toggle").click()
        self.playground.test_id("talk").click()
        return self.wait_state(STARTED)

    def wait_state(self, state: str | re.Pattern[str]) -> Talk:
        expect(self.root).to_have_attribute("data-state", state, timeout=PATIENT_MS)
        return self

    def turn(self, index: int) -> Turn:
        return Turn(self.turns.nth(index))

    @property
    def stream_id(self) -> int:
        """Of its transcription."""
        return int(self.root.get_attribute("data-stream-id") or 0)


def opened(playground: Playground, stream_id: int) -> dict[str, Any]:
    """The frame that opened this stream."""
    playground.filter_wire(stream_id)
    words = playground.page.get_by_label("Filter frames by text")
    words.fill('"type":"open"')
    playground.test_id("wire-row").first.click()
    detail = playground.page.get_by_role("region", name="Selected frame")
    expect(detail.locator("pre")).to_contain_text(f'"id": {stream_id}')
    frame: dict[str, Any] = json.loads(detail.locator("pre").inner_text())
    words.fill("")
    return frame


def assert_cancelled_on_the_wire(playground: Playground, stream_id: int) -> None:
    """This page asked for it, and the server said when it was done."""
    playground.filter_wire(stream_id)
    words = playground.page.get_by_label("Filter frames by text")
    words.fill('"type":"cancel')
    expect(playground.test_id("wire-row")).to_have_count(2)
    assert playground.wire_types() == ["cancel", "cancelled"]
    words.fill("")
