"""Connecting: what a refused or strange server looks like."""

from __future__ import annotations

import socket

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from plait.client import ConnectionLost, connect
from plait.errors import InvalidRequest, Unauthorized
from plait.wire.messages import Pong
from tests.client.peer import WELCOME, Peer, serving


async def test_the_welcome_is_there_at_once() -> None:
    async with serving(Peer.gone) as url, connect(url) as client:
        assert client.welcome == WELCOME


async def test_the_token_travels_as_a_bearer_header_and_never_in_the_url() -> None:
    async def script(peer: Peer) -> None:
        request = peer.socket.request
        assert request is not None
        assert request.headers["Authorization"] == "Bearer t-1"
        assert "t-1" not in request.path
        await peer.gone()

    async with serving(script) as url, connect(url, token="t-1"):
        pass


@pytest.mark.parametrize(("status", "error"), [(401, Unauthorized), (403, ConnectionLost)])
async def test_a_refused_handshake_is_a_typed_error(status: int, error: type[Exception]) -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(status, "no\n")

    async def handle(connection: ServerConnection) -> None:
        raise AssertionError("refused connections are not handled")

    async with serve(handle, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises(error):
            async with connect(f"ws://127.0.0.1:{port}/"):
                pass


async def test_a_socket_closed_4401_is_unauthorized() -> None:
    async def script(peer: Peer) -> None:
        await peer.socket.close(4401, "no")

    async with serving(script, greet=False) as url:
        with pytest.raises(Unauthorized):
            async with connect(url):
                pass


async def test_a_server_that_does_not_greet_is_none_of_ours() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(Pong(1))

    async with serving(script, greet=False) as url:
        with pytest.raises(ConnectionLost, match="welcome"):
            async with connect(url):
                pass


async def test_a_silent_server_is_given_up() -> None:
    async with serving(Peer.gone, greet=False) as url:
        with pytest.raises(ConnectionLost, match="welcome"):
            async with connect(url, open_timeout_seconds=0.05):
                pass


async def test_no_server_is_connection_lost() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ConnectionLost):
            async with connect(f"ws://127.0.0.1:{port}/v1/ws"):
                pass


async def test_a_bad_url_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        async with connect("http://127.0.0.1/"):
            pass
    assert caught.value.param == "url"
