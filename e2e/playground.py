"""Page objects: the playground as a person finds it, by role and test id, never by style.

Errors of the browser's console are kept; a test that expects some takes them out (`expect_errors`).
The page forbids eval, so nothing here waits on JavaScript expressions.
"""

from __future__ import annotations

import re

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, expect

GENEROUS_MS = 60_000  # for what takes a moment, on a machine that does much else
# The rows as drawn: what was asked of the list before is drawn with the next frame at the latest.
WIRE_TYPES = """
() => new Promise((tell) => requestAnimationFrame(() => {
  const rows = [...document.querySelectorAll("[data-testid=wire-row]")];
  tell(rows.map((row) => [Number(row.ariaPosInSet), row.dataset.type]));
}))
"""
SET_VALUE = "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }"
LOADING_MS = 90_000  # some fifty modules


class Playground:
    """One tab."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.errors: list[str] = []
        page.set_default_timeout(GENEROUS_MS)
        page.set_default_navigation_timeout(LOADING_MS)
        page.on("console", self._note_message)
        page.on("pageerror", self._note_error)

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _note_error(self, error: Error) -> None:
        self.errors.append(str(error))

    def expect_errors(self, pattern: str) -> None:
        """Forget the console errors that this test causes on purpose."""
        self.errors = [text for text in self.errors if not re.search(pattern, text)]

    def open(self) -> Playground:
        self.page.goto(self.url)
        return self.wait_connected()

    def reload(self) -> Playground:
        self.page.reload()
        return self.wait_connected()

    def wait_connected(self) -> Playground:
        self.wait_connection("open")
        return self

    def wait_connection(self, state: str) -> None:
        expect(self.test_id("connection-state")).to_have_attribute(
            "data-state", state, timeout=GENEROUS_MS
        )

    def test_id(self, name: str) -> Locator:
        return self.page.get_by_test_id(name)

    @property
    def composer(self) -> Locator:
        return self.test_id("composer-input")

    def choose_copies(self, copies: int) -> None:
        self.test_id(f"copies-{copies}").check(force=True)  # drawn by the label around it

    def ask(self, prompt: str, copies: int = 1) -> list[Card]:
        """Send by keyboard; the new cards, in order."""
        before = self.cards.count()
        self.choose_copies(copies)
        self.composer.fill(prompt)
        self.composer.press("Control+Enter")
        return [self.card(before + index) for index in range(copies)]

    @property
    def cards(self) -> Locator:
        return self.test_id("stream-card")

    def card(self, index: int) -> Card:
        return Card(self.cards.nth(index))

    def speak(self, text: str) -> Stage:
        """On the Speak panel, by keyboard."""
        if self.page.get_by_role("heading", name="Speak", exact=True).is_hidden():
            self.show_panel("Speak")
        self.test_id("speech-input").fill(text)
        self.test_id("speech-input").press("Control+Enter")
        return self.stage

    @property
    def stage(self) -> Stage:
        return Stage(self.test_id("stage"))

    def record(self) -> Listening:
        self.test_id("record").click()
        return self.listening

    @property
    def listening(self) -> Listening:
        return Listening(self.test_id("listening"))

    def embed(self, *lines: str) -> Batch:
        """On the Embed panel, sent by keyboard."""
        if self.page.get_by_role("heading", name="Embed", exact=True).is_hidden():
            self.show_panel("Embed")
        # As if pasted: the driver would type line by line, ever slower the more there are.
        self.test_id("embed-input").evaluate(SET_VALUE, "\n".join(lines))
        self.test_id("embed-input").press("Control+Enter")
        return self.batch

    @property
    def batch(self) -> Batch:
        return Batch(self.test_id("embedding"))

    def panel_names(self) -> list[str]:
        return self.page.locator(".rail-panels").get_by_role("button").all_inner_texts()

    def show_panel(self, name: str) -> None:
        """Clicked in the rail, and there."""
        self.page.get_by_role("navigation").get_by_role("button", name=name).click()
        expect(self.page.get_by_role("heading", name=name, exact=True)).to_be_visible()

    def filter_wire(self, stream_id: int) -> None:
        self.page.get_by_label("Stream", exact=True).select_option(f"Stream {stream_id}")

    def wire_types(self) -> list[str]:
        """Types of the frames in view, oldest first."""
        return [kind for _, kind in sorted(self.page.evaluate(WIRE_TYPES))]

    def wait_wire(self, kind: str) -> None:
        """Until a frame of this type is in view."""
        rows = self.page.locator(f"[data-testid=wire-row][data-type={kind}]")
        expect(rows.first).to_be_visible(timeout=GENEROUS_MS)

    def overflows_sideways(self) -> bool:
        width = self.page.evaluate("document.documentElement.scrollWidth")
        viewport = self.page.viewport_size
        assert viewport is not None
        return bool(width > viewport["width"])


class Card:
    """One answer."""

    def __init__(self, root: Locator) -> None:
        self.root = root
        self.text = root.get_by_test_id("stream-text")
        self.stop = root.get_by_test_id("stop")
        self.receipt = root.get_by_test_id("receipt")
        self.retry = root.get_by_test_id("retry")

    @property
    def stream_id(self) -> int:
        return int(self.root.get_attribute("data-stream-id") or 0)

    def wait_state(self, state: str) -> Card:
        expect(self.root).to_have_attribute("data-state", state, timeout=GENEROUS_MS)
        return self

    def wait_words(self, *words: str) -> Card:
        """Until the answer contains these, in this order."""
        pattern = re.compile(".*".join(re.escape(word) for word in words), re.DOTALL)
        expect(self.text).to_contain_text(pattern, timeout=GENEROUS_MS)
        return self

    def read(self) -> str:
        return self.text.text_content() or ""


class Stage:
    """The speech of the Speak panel."""

    def __init__(self, root: Locator) -> None:
        self.root = root
        self.text = root.get_by_test_id("speech-text")
        self.stop = root.get_by_test_id("stop-speech")
        self.receipt = root.get_by_test_id("speech-receipt")
        self.heard = root.get_by_title("Heard, by the audio clock")  # its neighbour: what came
        self.gaps = root.get_by_title("How often audio was not there in time")
        self.save = root.get_by_test_id("save-wav")
        self.again = root.get_by_test_id("speak-again")

    @property
    def stream_id(self) -> int:
        return int(self.root.get_attribute("data-stream-id") or 0)

    def wait_state(self, state: str | re.Pattern[str]) -> Stage:
        expect(self.root).to_have_attribute("data-state", state, timeout=GENEROUS_MS)
        return self

    def wait_playback(self, state: str | re.Pattern[str]) -> Stage:
        expect(self.root).to_have_attribute("data-playback", state, timeout=GENEROUS_MS)
        return self

    def wait_heard(self, seconds: int = 0) -> Stage:
        """Until some of it, or so many whole seconds, came out of the speaker."""
        later = "|".join(f"{second:02}" for second in range(max(1, seconds), 60))
        pattern = rf"0:(?:{later})\.\d" if seconds else rf"0:(?:00\.[1-9]|(?:{later})\.\d)"
        expect(self.heard).to_contain_text(re.compile(pattern), timeout=GENEROUS_MS)
        return self


class Listening:
    """The transcription of the Listen panel."""

    def __init__(self, root: Locator) -> None:
        self.root = root
        self.text = root.get_by_test_id("transcript")
        self.segments = root.get_by_test_id("segment")
        self.finals = root.locator("[data-testid=segment][data-final=true]")
        self.interims = root.locator("[data-testid=segment][data-final=false]")
        self.stop = root.get_by_test_id("stop-listening")
        self.receipt = root.get_by_test_id("listening-receipt")
        self.again = root.get_by_test_id("listen-again")

    @property
    def stream_id(self) -> int:
        return int(self.root.get_attribute("data-stream-id") or 0)

    def wait_state(self, state: str) -> Listening:
        expect(self.root).to_have_attribute("data-state", state, timeout=GENEROUS_MS)
        return self

    def wait_final(self, words: str) -> Listening:
        """Until these words, in this order, are in a segment that is settled."""
        expect(self.finals.filter(has_text=words).first).to_be_attached(timeout=GENEROUS_MS)
        return self

    def read(self) -> list[str]:
        """The segments' texts, without their times."""
        return self.segments.locator(".segment-text").all_inner_texts()


class Batch:
    """The lines of the Embed panel."""

    def __init__(self, root: Locator) -> None:
        self.root = root
        self.lines = root.get_by_test_id("line")
        self.heat = root.get_by_test_id("heat-map")
        self.scatter = root.get_by_test_id("scatter")
        self.readout = root.get_by_test_id("readout")
        self.count = root.get_by_test_id("embed-count")
        self.stop = root.get_by_test_id("stop-embedding")
        self.receipt = root.get_by_test_id("embedding-receipt")
        self.again = root.get_by_test_id("embed-again")

    @property
    def stream_id(self) -> int:
        return int(self.root.get_attribute("data-stream-id") or 0)

    def in_state(self, state: str) -> Locator:
        """Lines: waiting, done, cut, failed."""
        return self.root.locator(f"[data-testid=line][data-state={state}]")

    def wait_state(self, state: str) -> Batch:
        expect(self.root).to_have_attribute("data-state", state, timeout=GENEROUS_MS)
        return self

    def wait_answered(self, line: int) -> Batch:
        """Until this one, counted from 1, has its answer."""
        expect(self.in_state("done").nth(line - 1)).to_be_attached(timeout=GENEROUS_MS)
        return self
