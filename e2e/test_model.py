"""The same promise on real weights: the starter model under llama.cpp."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
