"""What is refused before anything is done for it, over real HTTP and real handshakes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.live.peer import peer
from tests.live.server import LiveServer, live_server

CANARY = "CANARY-d41d8cd9"
PATHS = ["/", "/healthz", "/readyz", "/metrics", "/v1/status", "/v1/ticket", "/v1/ws", "/nope"]
PATHS += ["/static/sdk/index.js"]


@pytest.mark.parametrize("path", PATHS)
def test_a_foreign_host_is_refused_on_every_route(server: LiveServer, path: str) -> None:
    assert server.get(path, Host="evil.example")[0] == 403


@pytest.mark.parametrize("path", PATHS)
def test_a_foreign_origin_is_refused_on_every_route(server: LiveServer, path: str) -> None:
    assert server.get(path, Origin="https://evil.example")[0] == 403


@pytest.mark.parametrize(
    ("headers", "subprotocols", "status"),
    [
        ({"Origin": "https://evil.example"}, ["plait.v1"], 403),
        ({"Origin": "null"}, ["plait.v1"], 403),
        ({"Host": "evil.example"}, ["plait.v1"], 400),  # a second one, whoever reads the other
        ({}, ["plait.v2"], 400),
        ({}, None, 400),
    ],
)
async def test_a_handshake_is_refused_before_accepting(
    server: LiveServer, headers: dict[str, str], subprotocols: list[str] | None, status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(server.ws_url, subprotocols=subprotocols, additional_headers=headers)  # type: ignore[arg-type]
    assert refused.value.response.status_code == status
    assert "ERROR" not in server.output  # a peer's fault, not ours


def test_a_plain_request_for_the_socket_is_told_what_it_is(server: LiveServer) -> None:
    status, text = server.get("/v1/ws")

    assert status == 426
    assert "connect with the subprotocol plait.v1" in text


async def test_the_playgrounds_own_origin_may_connect(server: LiveServer) -> None:
    async with peer(server.ws_url, origin=server.url):
        pass


async def test_compression_is_never_agreed_on(server: LiveServer) -> None:
    async with peer(server.ws_url, compression="deflate") as client:
        assert client.ws.response is not None
        assert "Sec-WebSocket-Extensions" not in client.ws.response.headers


@pytest.fixture(scope="module")
def guarded() -> Iterator[LiveServer]:
    with live_server(token=CANARY) as running:
        yield running


def as_subprotocol(token: str) -> str:
    return "plait.token." + base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


async def test_a_program_with_the_token_is_served_and_without_it_gets_401(
    guarded: LiveServer,
) -> None:
    async with peer(guarded.ws_url, additional_headers={"Authorization": f"Bearer {CANARY}"}):
        pass
    with pytest.raises(InvalidStatus) as refused:
        await connect(guarded.ws_url, subprotocols=["plait.v1"])  # type: ignore[list-item]
    assert refused.value.response.status_code == 401


async def test_a_page_with_a_wrong_token_is_closed_4401(guarded: LiveServer) -> None:
    offered = ["plait.v1", as_subprotocol("wrong")]
    async with connect(guarded.ws_url, subprotocols=offered, origin=guarded.url) as ws:  # type: ignore[arg-type]
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert ws.close_code == 4401


async def test_a_secret_in_a_url_is_refused_wherever_it_is_sent(guarded: LiveServer) -> None:
    offered = ["plait.v1", as_subprotocol(CANARY)]
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{guarded.ws_url}?token={CANARY}", subprotocols=offered)  # type: ignore[arg-type]
    assert refused.value.response.status_code == 400
    for path in ("/", "/metrics", "/static/sdk/index.js"):
        assert guarded.get(f"{path}?a=1&access_token={CANARY}")[0] == 400


async def test_secrets_in_urls_and_subprotocols_reach_no_log_and_no_metric(
    guarded: LiveServer,
) -> None:
    offered = ["plait.v1", as_subprotocol(CANARY)]
    async with connect(guarded.ws_url, subprotocols=offered, origin=guarded.url) as ws:  # type: ignore[arg-type]
        await ws.recv()
    await asyncio.to_thread(guarded.get, f"/?token={CANARY}")
    status, metrics = guarded.get("/metrics", Authorization=f"Bearer {CANARY}")
    assert status == 200
    assert CANARY not in metrics
    assert CANARY not in guarded.output
    assert as_subprotocol(CANARY) not in guarded.output


def test_metrics_need_the_token_too_and_health_does_not(guarded: LiveServer) -> None:
    assert guarded.get("/metrics")[0] == 401
    assert guarded.get("/healthz")[0] == 200
