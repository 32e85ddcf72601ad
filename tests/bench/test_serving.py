"""A running server by its URL: the token it is shown, and what is said when it is no use."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from plait.bench.serving import BenchError, Server, running_server

PAGE = b"plait_connections 1.0\n"


@contextlib.contextmanager
def answering(status: int = 200, page: bytes = PAGE, wants: str = "") -> Iterator[str]:
    """A server's ws:// URL. With `wants` it answers 401 to any other token."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            let_in = self.headers.get("authorization", "") in (f"Bearer {wants}", wants)
            self.send_response(status if let_in else 401)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield f"ws://127.0.0.1:{server.server_port}/v1/ws"
        finally:
            server.shutdown()
            serving.join()


def refusal(url: str, token: str = "") -> str:
    with pytest.raises(BenchError) as refused:
        asyncio.run(running_server(url, {"PLAIT_TOKEN": token}).metrics())
    return str(refused.value)


@pytest.mark.parametrize("typed", ["http://h:1", "http://h:1/", "ws://h:1/v1/ws", "ws://h:1"])
def test_a_server_is_known_by_either_of_its_urls(typed: str) -> None:
    server = running_server(typed, {})

    assert (server.url, server.ws_url, server.headers) == ("http://h:1", "ws://h:1/v1/ws", {})


@pytest.mark.parametrize(
    "typed", ["h:1", "ftp://h", "ws://", "ws://[h", "ws://:me@h", "ws://h?t=me"]
)
def test_what_is_no_url_of_a_server_or_holds_a_secret_is_refused(typed: str) -> None:
    with pytest.raises(BenchError, match=r"ws://host:port/v1/ws|PLAIT_TOKEN"):
        running_server(typed, {})


def test_the_token_of_the_environment_is_shown_and_not_printed() -> None:
    with answering(wants="sesame") as url:
        server = running_server(url, {"PLAIT_TOKEN": "sesame"})
        metrics = asyncio.run(server.metrics())

    assert metrics == {("plait_connections", frozenset()): 1.0}
    assert "sesame" not in repr(server)


def test_a_server_of_our_own_is_shown_none() -> None:
    assert Server("http://h:1", 7).headers == {}


@pytest.mark.parametrize(
    ("token", "said"), [("", "asks for a token: set"), ("other", "does not know the token in")]
)
def test_without_the_right_token_the_variable_to_set_is_named(token: str, said: str) -> None:
    with answering(wants="sesame") as url:
        assert f"{url} {said} PLAIT_TOKEN" in refusal(url, token)


@pytest.mark.parametrize(
    ("status", "page", "said"),
    [
        (403, b"", "lets this token read no metrics"),
        (404, b"", "is no Plait"),
        (200, b"<!doctype html>", "is no Plait"),
        (200, b"llamacpp:tokens_predicted_total 1\n", "is no Plait"),
        (200, b"\xff", "is no Plait"),
        (500, b"", "HTTP 500"),
    ],
)
def test_what_a_server_answers_instead_of_metrics_is_told(
    status: int, page: bytes, said: str
) -> None:
    with answering(status, page) as url:
        told = refusal(url)

    assert url in told
    assert said in told


def test_where_nobody_listens_the_next_step_is_to_serve() -> None:
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{bound.getsockname()[1]}/v1/ws"
        told = refusal(url)

    assert told.startswith(f"nobody listens at {url}")
    assert "plait serve" in told
