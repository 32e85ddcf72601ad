"""The same promises on real weights: the starter model under llama.cpp, and Kokoro."""

from __future__ import annotations

import re
import wave
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e.playground import Playground
from tests.live.server import LiveServer, live_server

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]
SECONDS = 60
STORY = "Tell me a long story about a river that wanted to see the sea."


@pytest.fixture(scope="module")
def model_server() -> Iterator[LiveServer]:
    with live_server("llamacpp", max_tokens=160) as running:
        yield running


def test_three_real_answers_one_stopped_two_finish(
    model_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    playground = new_tab(model_server.url).open()
    first, second, third = playground.ask(STORY, copies=3)
    for card in (first, second, third):
        expect(card.text).not_to_be_empty(timeout=SECONDS * 1000)

    second.stop.click()
    frozen = second.read()

    second.wait_state("cancelled")
    for card in (first, third):
        expect(card.root).to_have_attribute("data-state", "completed", timeout=SECONDS * 1000)
        assert len(card.read()) > len("Once upon a time")
    assert second.read() == frozen
    model_server.wait_idle(20)


def test_a_reload_frees_the_model(
    model_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    playground = new_tab(model_server.url).open()
    for card in playground.ask(STORY, copies=3):
        expect(card.text).not_to_be_empty(timeout=SECONDS * 1000)

    playground.reload()

    model_server.wait_idle(20)


@pytest.fixture(scope="module")
def kokoro_server() -> Iterator[LiveServer]:
    pytest.importorskip("onnxruntime")
    with live_server(speech="kokoro-onnx") as running:
        yield running


def test_a_real_voice_is_heard_and_stopped(
    kokoro_server: LiveServer, new_tab: Callable[[str], Playground]
) -> None:
    stage = new_tab(kokoro_server.url).open().speak(f"{STORY} " * 20)
    stage.wait_heard()

    stage.stop.click()

    stage.wait_state("cancelled")
    expect(stage.receipt).to_contain_text(re.compile(r"stopped .* heard [\d.]+ m?s"))
    kokoro_server.wait_idle(20)


def test_a_real_voice_is_followed_word_by_word_and_saved(
    kokoro_server: LiveServer, new_tab: Callable[[str], Playground], tmp_path: Path
) -> None:
    playground = new_tab(kokoro_server.url).open()
    stage = playground.speak("The river saw the sea.")
    expect(stage.root).to_have_attribute("data-state", "completed", timeout=SECONDS * 1000)

    with playground.page.expect_download() as download:
        stage.save.click()

    expect(stage.text.locator(".word.said")).to_have_count(5)
    download.value.save_as(tmp_path / "river.wav")
    with wave.open(str(tmp_path / "river.wav"), "rb") as file:
        assert 0.8 < file.getnframes() / file.getframerate() < 4
        samples = array("h", file.readframes(file.getnframes()))
    assert max(map(abs, samples)) > 3000
