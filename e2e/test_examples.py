"""The examples do what they show: stream, stop with the server's proof, leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from e2e.bundled import WEB, Pages, bundle
from e2e.playground import Playground
from tests.live.server import LiveServer

EXAMPLES = WEB / "examples"
LONG = "tokens=100000 step_ms=5"
STOPPED = re.compile(r"^Stopped in [\d.]+ ms")
TRIES = 5


@pytest.fixture(scope="session")
def react_chat(pages: Pages) -> str:
    """Beside its HTML, as its header says; out of the way, so copied."""
    folder = pages.built / "react-chat"
    folder.mkdir()
    bundle(EXAMPLES / "react-chat" / "app.jsx", folder / "app.bundle.js")
    (folder / "index.html").write_text((EXAMPLES / "react-chat" / "index.html").read_text())
    (pages.built / "chat.css").write_text((EXAMPLES / "chat.css").read_text())
    return "/built/react-chat/index.html"


@pytest.mark.parametrize("name", ["vanilla-chat", "react-chat"])
def test_a_page_chats_with_a_server_elsewhere_and_its_stop_brings_the_proof(
    name: str, context: BrowserContext, pages: Pages, app_server: LiveServer, react_chat: str
) -> None:
    path = react_chat if name == "react-chat" else "/examples/vanilla-chat/"
    url = pages.url(path, server=app_server.url)
    watched = Playground(context.new_page(), url)
    page = watched.page
    page.goto(url)
    message = page.get_by_label("Message")
    lines = page.get_by_role("log").locator("p")

    message.fill("tokens=5")
    message.press("Enter")
    expect(lines).to_have_text(["tokens=5", "w0 w1 w2 w3 w4"])
    expect(page.get_by_role("button", name="Send")).to_be_visible()

    tries = stop_until_proven(page)
    app_server.wait_idle()
    expect(lines).to_have_count(2 + 2 * tries)
    assert watched.errors == []


def stop_until_proven(page: Page) -> int:
    """How often it took: a release that a busy machine confirms late has no time to be told."""
    for tries in range(1, TRIES + 1):
        page.get_by_label("Message").fill(LONG)
        page.get_by_label("Message").press("Enter")
        answer = page.get_by_role("log").locator("p").nth(2 * tries + 1)
        expect(answer).to_contain_text("w3 ")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        with contextlib.suppress(AssertionError):
            expect(page.get_by_role("status")).to_have_text(STOPPED, timeout=3000)
            return tries
    pytest.fail(f"{TRIES} times a stop brought no proof")


@contextlib.contextmanager
def command_line(server: LiveServer, prompt: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        ["node", str(EXAMPLES / "node-cli" / "chat.js"), prompt],
        env={**os.environ, "PLAIT_URL": server.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_command_line_prints_the_answer_and_ends(app_server: LiveServer) -> None:
    with command_line(app_server, "tokens=5") as process:
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (0, "w0 w1 w2 w3 w4 \n", "")


def test_ctrl_c_stops_the_command_lines_answer_and_prints_the_receipt(
    app_server: LiveServer,
) -> None:
    with command_line(app_server, LONG) as process:
        assert process.stdout is not None
        assert process.stdout.read(6) == "w0 w1 "
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        app_server.wait_idle()

    assert re.fullmatch(
        r"stopped(?: in [\d.]+ ms, slot released|, not confirmed)"
        r"; \d+ tokens, \d+ of them wasted\n",
        err,
    )
    assert process.returncode == 130


def test_the_command_line_says_when_there_is_no_server() -> None:
    nowhere = {**os.environ, "PLAIT_URL": "ws://127.0.0.1:9/v1/ws"}
    script = str(EXAMPLES / "node-cli" / "chat.js")

    ended = subprocess.run(
        ["node", script, "Hello"], env=nowhere, capture_output=True, text=True, timeout=60
    )

    assert ended.returncode == 1
    assert "StreamError" in ended.stderr
