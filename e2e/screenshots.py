"""Takes the pictures in docs/images from the starter models: `python -m e2e.screenshots`,
or those named: `… speak speak-dark`.

Three answers run, the middle one is stopped; a voice is in the middle of a sentence, spoken or
listened to, or an answer is talked into. What a picture says is what that run measured. On a
machine that is busy otherwise a stop may be confirmed late, or speech may have gaps: then it tries
again, a few times.
"""

from __future__ import annotations

import asyncio
import re
import sys
import wave
from array import array
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import Browser, ViewportSize, expect, sync_playwright

import plait.bench
from e2e.browser import launch
from e2e.microphone import launch_with_microphone, write_clip
from e2e.palette import shrink
from e2e.playground import Playground
from e2e.talk import Talk
from plait.client import connect
from tests.live.server import LiveServer, live_server

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PROMPT = "Tell me a long story about a river that wanted to see the sea."
ENOUGH = re.compile(r"\d{3} tok(?!/)")
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
TRIES = 5
SPEECH = (
    "You hear the first word of this sentence before the last one has been computed. Press Stop in "
    "the middle of it: the sound ends at once, and so does the work."
)
Theme = Literal["light", "dark"]
PICTURES: list[tuple[str, Theme, ViewportSize]] = [
    ("playground", "light", WIDE),
    ("playground-dark", "dark", WIDE),
    ("playground-phone", "light", PHONE),
]


def take(playground: Playground, file: Path) -> bool:
    """True when the stop was confirmed in time, as the picture shows it then."""
    cards = playground.ask(PROMPT, copies=3)
    for card in cards:
        expect(card.root).to_contain_text(ENOUGH, timeout=60_000)
    cards[1].stop.click()
    cards[1].wait_state("cancelled")
    cards[1].root.scroll_into_view_if_needed()
    expect(playground.test_id("status-active")).to_have_text("2")
    playground.page.screenshot(path=file)
    return cards[1].receipt.get_attribute("data-tone") == "good"


SPEAKING: list[tuple[str, Theme, ViewportSize]] = [
    ("speak", "light", WIDE),
    ("speak-dark", "dark", WIDE),
    ("speak-phone", "light", PHONE),
]


def take_speaking(playground: Playground, file: Path) -> bool:
    """In mid-sentence; true when nothing was late until then."""
    stage = playground.speak(SPEECH).wait_heard(3)
    playground.page.screenshot(path=file)
    return stage.root.get_by_text(re.compile(r"\d gaps?$")).count() == 0


LISTENING: list[tuple[str, Theme, ViewportSize]] = [
    ("listen", "light", WIDE),
    ("listen-dark", "dark", WIDE),
    ("listen-phone", "light", PHONE),
]
READING = Path(plait.bench.__file__).parent / "audio" / "multi.wav"


def take_listening(playground: Playground, file: Path) -> bool:
    """In mid-sentence, some lines down; true when a segment is open then."""
    playground.show_panel("Listen")
    listening = playground.record()
    expect(listening.finals.nth(2)).to_be_attached(timeout=60_000)
    expect(listening.interims.locator(".likely")).to_be_attached(timeout=60_000)
    playground.page.screenshot(path=file)
    return listening.interims.count() == 1


EMBEDDING: list[tuple[str, Theme, ViewportSize]] = [
    ("embed", "light", WIDE),
    ("embed-dark", "dark", WIDE),
    ("embed-phone", "light", PHONE),
]


def take_embedding(playground: Playground, file: Path) -> bool:
    """A few lines, one of them looked at."""
    playground.show_panel("Embed")
    playground.test_id("embed-sample").click()
    batch = playground.batch
    expect(batch.root).to_have_attribute("data-state", "completed", timeout=60_000)
    lines = batch.lines.count()
    expect(batch.scatter).to_have_attribute("data-points", str(lines))
    batch.scatter.focus()
    for _ in range(3):
        playground.page.keyboard.press("ArrowRight")
    playground.page.screenshot(path=file)
    return True


MONITOR: list[tuple[str, Theme, ViewportSize]] = [
    ("monitor", "light", WIDE),
    ("monitor-dark", "dark", WIDE),
    ("monitor-phone", "light", PHONE),
]


def take_monitor(playground: Playground, file: Path) -> bool:
    """While answers and a batch run, after half a minute of them."""
    for copies in (1, 3):
        playground.ask(PROMPT, copies=copies)
        playground.page.wait_for_timeout(12_000)
    playground.show_panel("Embed")
    playground.test_id("embed-many").click()
    playground.show_panel("Monitor")
    playground.page.wait_for_timeout(2_000)
    playground.page.screenshot(path=file)
    return True


TALKING: list[tuple[str, Theme, ViewportSize]] = [
    ("conversation", "light", WIDE),
    ("conversation-dark", "dark", WIDE),
    ("conversation-phone", "light", PHONE),
]
# What is asked, and after how many seconds the next one: the second is said into the answer.
QUESTIONS = (("Why does a river run to the sea?", 9.0), ("Wait. Tell me about the moon.", 30.0))
TOLD = "You are a friendly guide. Answer in five full sentences."


def write_questions(server: LiveServer, folder: Path) -> Path:
    """As a voice of the server asks them."""
    rate, samples = 0, b""
    for index, (text, pause_seconds) in enumerate(QUESTIONS):
        asyncio.run(speak_into(server.ws_url, text, folder / f"{index}.wav"))
        with wave.open(str(folder / f"{index}.wav"), "rb") as file:
            rate = file.getframerate()
            samples += file.readframes(file.getnframes()) + room(int(pause_seconds * rate))
    return write_clip(folder / "questions.wav", samples, rate)


def room(samples: int) -> bytes:
    """As quiet as one is: a microphone that gives zeros counts as muted."""
    noise = Random(0)
    return array("h", (noise.randint(-20, 20) for _ in range(samples))).tobytes()


async def speak_into(url: str, text: str, file: Path) -> None:
    async with connect(url) as plait_client:
        await plait_client.synthesize(text, voice="bm_george").to_wav(file)


def take_talking(playground: Playground, file: Path) -> bool:
    """The first answer was talked into, the second one sounds."""
    talk = Talk(playground).start(TOLD)
    interrupted = playground.page.locator("[data-testid=turn][data-state=interrupted]")
    expect(interrupted.first).to_be_attached(timeout=90_000)
    expect(talk.turns.last).to_have_attribute("data-state", "speaking", timeout=60_000)
    expect(talk.turns.last.get_by_test_id("answer-heard")).not_to_be_empty(timeout=30_000)
    playground.page.screenshot(path=file)
    return talk.turns.count() == len(QUESTIONS)


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with (
        live_server("llamacpp", "kokoro-onnx", "whisper", "onnx") as server,
        TemporaryDirectory() as folder,
    ):
        questions = write_questions(server, Path(folder))
        with sync_playwright() as playwright:
            silent = launch(playwright)
            reader = launch_with_microphone(playwright, READING)
            asker = launch_with_microphone(playwright, questions)
            take_all(silent, reader, asker, server, sys.argv[1:])
            for browser in (silent, reader, asker):
                browser.close()


def open_and_take(
    takes: Callable[[Playground, Path], bool],
    browser: Browser,
    server: LiveServer,
    picture: tuple[str, Theme, ViewportSize],
) -> bool:
    """In a page of its own, before a server that rests; whether the picture may stay."""
    name, theme, size = picture
    server.wait_idle(30)
    context = browser.new_context(viewport=size, color_scheme=theme)
    file = IMAGES / f"{name}.png"
    good = takes(Playground(context.new_page(), server.url).open(), file)
    context.close()
    shrink(browser, file)
    return good


def take_all(
    silent: Browser, reader: Browser, asker: Browser, server: LiveServer, names: list[str]
) -> None:
    albums = (
        (take, silent, PICTURES),
        (take_speaking, silent, SPEAKING),
        (take_listening, reader, LISTENING),
        (take_embedding, silent, EMBEDDING),
        (take_talking, asker, TALKING),
        (take_monitor, silent, MONITOR),
    )
    for takes, shown, pictures in albums:
        for picture in pictures:
            if not names or picture[0] in names:
                any(open_and_take(takes, shown, server, picture) for _ in range(TRIES))


if __name__ == "__main__":
    main()
