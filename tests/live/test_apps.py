"""Apps over real sockets: each with its rights and limits, tokens and tickets that end when they
are taken back, and no secret anywhere it could be read."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from plait.access.tickets import MAX_OPEN_PER_APP
from plait.access.token_file import TokenFile, TokenRecord
from plait.access.tokens import new_id, written_hash
from plait.client import connect as connect_client
from plait.config_tables import METHODS
from plait.errors import CapabilityDenied
from tests.live.peer import Peer
from tests.live.server import SERVER, LiveServer, live_server

LONG = "tokens=100000 step_ms=5"
SECONDS = 20.0  # far longer than anything here takes
NOTES_PAGE = "https://notes.example"

APPS = f"""
[[models]]
method = "chat"
model = "second"
engine = "scripted"
preload = true

[apps.notes]
token_hashes = ["{written_hash(b"notes-canary-7c1f")}"]
capabilities = ["chat"]
models = ["second"]
max_streams = 3
origins = ["{NOTES_PAGE}"]

[apps.monitor]
token_hashes = ["{written_hash(b"monitor-canary-9a2e")}"]
capabilities = ["metrics", "admin"]

[apps.all]
token_hashes = ["{written_hash(b"all-canary-55d0")}"]
capabilities = ["chat", "transcribe", "synthesize", "embed", "metrics", "admin"]

[apps.hasty]
token_hashes = ["{written_hash(b"hasty-canary-31b8")}"]
opens_per_second = 0.1
"""
HASTY = "hasty-canary-31b8"
NOTES, MONITOR, ALL = "notes-canary-7c1f", "monitor-canary-9a2e", "all-canary-55d0"


@dataclass
class Served:
    """A server of the three apps, and the home it shares with the command line."""

    server: LiveServer
    home: Path
    config: Path

    def token(self, *arguments: str) -> str:
        """`plait token …`; its stdout."""
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SERVER)}
        done = subprocess.run(
            [sys.executable, "-m", "plait", "token", *arguments],
            env=environ | {"PLAIT_HOME": str(self.home), "PLAIT_CONFIG": str(self.config)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.strip()

    def id_of(self, note: str) -> str:
        """As `plait token list` shows it."""
        (line,) = [line for line in self.token("list").splitlines() if line.endswith(note)]
        return line.split()[0]

    def post(self, path: str, token: str | None = None, **headers: str) -> tuple[int, str]:
        return self.server.get(path, method="POST", body=b"", **headers | shown(token))

    def ticket(self, token: str, **headers: str) -> str:
        status, text = self.post("/v1/ticket", token, **headers)
        assert status == 200, text
        ticket: str = json.loads(text)["ticket"]
        return ticket


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home, config = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("conf") / "plait.toml"
    config.write_text(APPS)
    everything = dict.fromkeys(("speech", "transcribe", "embed"), "scripted")
    settings: dict[str, Any] = {"home": home, "config": config, "log_level": "debug", "slots": 4}
    with live_server(**everything, **settings) as server:
        server.token = MONITOR
        yield Served(server, home, config)
        written = server.output + server.get("/metrics", **shown(MONITOR))[1]
        assert not any(canary in written for canary in (NOTES, MONITOR, ALL, HASTY))


def shown(token: str | None) -> dict[str, Any]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def as_subprotocol(secret: str) -> str:
    return "plait.token." + base64.urlsafe_b64encode(secret.encode()).rstrip(b"=").decode()


@contextlib.asynccontextmanager
async def client_of(server: LiveServer, token: str) -> AsyncIterator[tuple[Peer, dict[str, Any]]]:
    """Connected as a program of that token's app, and what it was welcomed with."""
    headers = shown(token)
    async with connect(
        server.ws_url,
        subprotocols=["plait.v1"],  # type: ignore[list-item]
        additional_headers=headers,
        close_timeout=1,
    ) as ws:
        client = Peer(ws)
        yield client, await client.hear_until("welcome")


def page(server: LiveServer, secret: str, origin: str) -> Any:
    """Connecting as a page of that origin, which can only offer subprotocols."""
    offered = ["plait.v1", as_subprotocol(secret)]
    return connect(server.ws_url, subprotocols=offered, origin=origin)  # type: ignore[arg-type]


async def close_code(ws: ClientConnection) -> int | None:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await ws.recv()
    return ws.close_code


async def refused_status(connecting: Any) -> int:
    with pytest.raises(InvalidStatus) as refused:
        await connecting
    status: int = refused.value.response.status_code
    return status


# --- rights and limits -----------------------------------------------------------------------


async def test_each_app_is_welcomed_with_what_it_may_and_nothing_else(served: Served) -> None:
    async with client_of(served.server, NOTES) as (_, welcome):
        assert (welcome["app"], welcome["capabilities"]) == ("notes", ["chat"])
        assert welcome["methods"] == {"chat": {"models": ["second"]}}
    async with client_of(served.server, ALL) as (_, welcome):
        assert welcome["capabilities"] == [*METHODS, "metrics", "admin"]
        assert welcome["methods"]["chat"]["models"] == ["scripted", "second"]


async def test_a_missing_capability_is_named_and_other_streams_go_on(served: Served) -> None:
    async with client_of(served.server, MONITOR) as (client, welcome):
        assert welcome["methods"] == {}
        await client.open(1)
        error = (await client.hear_until("rejected", 1))["error"]
        assert error["code"] == "capability_denied"
        assert error["data"] == {"capability": "chat"}
    async with client_of(served.server, NOTES) as (client, _):
        await client.open(1)
        assert (await client.hear_terminals(1))[1]["type"] == "done"


async def test_a_model_of_others_is_not_told_from_one_that_does_not_exist(served: Served) -> None:
    async with client_of(served.server, NOTES) as (client, _):
        texts = set()
        for id, model in enumerate(["scripted", "nonsense", "../../etc/passwd", "x" * 1024], 1):
            await client.open(id, params={"model": model})
            error = (await client.hear_until("rejected", id))["error"]
            assert (error["code"], error["param"]) == ("model_not_found", "model")
            texts.add(error["message"])
        assert len(texts) == 1


NAMES = ["../../etc/passwd", "evil/repo", "hf:evil/repo", "", "/etc/passwd", "x" * 1_000_000]
PARAMS: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "transcribe": {"sample_rate": 16_000},
    "synthesize": {"text": "hi"},
    "embed": {"texts": ["hi"]},
}


@pytest.mark.parametrize("method", METHODS)
async def test_no_name_of_a_model_that_is_not_served_is_looked_for(
    served: Served, method: str
) -> None:
    before = connections_of(served.server)
    async with client_of(served.server, ALL) as (client, _):
        for id, name in enumerate(NAMES, 1):
            params = PARAMS[method] | {"model": name}
            await client.say({"type": "open", "id": id, "method": method, "params": params})
            error = (await client.hear_until("rejected", id))["error"]
            assert error["code"] in ("model_not_found", "invalid_request")
            assert (error["param"], len(error["message"]) < 300) == ("model", True)
        assert connections_of(served.server) <= before


def connections_of(server: LiveServer) -> int:
    """Of the gateway and its workers, to anywhere but this machine."""
    processes = [psutil.Process(server.process.pid), *server.workers]
    open_ones = [c for process in processes for c in process.net_connections("inet")]
    made = [c for c in open_ones if c.status == psutil.CONN_ESTABLISHED]
    return sum(connection.raddr.ip != "127.0.0.1" for connection in made)


async def test_a_client_raises_the_typed_error(served: Served) -> None:
    async with connect_client(served.server.ws_url, MONITOR) as client:
        with pytest.raises(CapabilityDenied) as denied:
            await client.chat([{"role": "user", "content": "hi"}]).text()
        assert denied.value.data == {"capability": "chat"}


async def test_an_apps_streams_are_bounded_over_its_connections_and_others_are_not(
    served: Served,
) -> None:
    async with (
        client_of(served.server, NOTES) as (one, _),
        client_of(served.server, NOTES) as (two, _),
        client_of(served.server, ALL) as (other, _),
    ):
        for id in (1, 2, 3):
            await one.open(id, LONG, window=0)
            await one.hear_until("accepted", id)
        await two.open(1, LONG)
        error = (await two.hear_until("rejected", 1))["error"]
        assert (error["code"], error["data"]) == ("too_many_streams", {"limit": 3})
        await other.open(1)
        assert (await other.hear_terminals(1))[1]["type"] == "done"
        await one.say({"type": "cancel", "id": 1})
        await one.hear_until("cancelled", 1)
        await two.open(2)
        assert (await two.hear_terminals(2))[2]["type"] == "done"
    await asyncio.to_thread(served.server.wait_idle)


async def test_an_apps_rate_is_its_own_and_all_its_connections_share_it(served: Served) -> None:
    ids = range(1, 31)
    async with (
        client_of(served.server, HASTY) as (one, _),
        client_of(served.server, HASTY) as (two, _),
        client_of(served.server, ALL) as (other, _),
    ):
        for id in ids:
            await one.open(id, "tokens=1")
            await two.open(id, "tokens=1")
        ends = [await client.hear_terminals(*ids) for client in (one, two)]
        rejected = [end for heard in ends for end in heard.values() if end["type"] == "rejected"]
        errors = [end["error"] for end in rejected]
        assert {error["code"] for error in errors} == {"rate_limited"}
        assert all(error["retry_after_ms"] >= 1 for error in errors)
        await other.open(1)
        assert (await other.hear_terminals(1))[1]["type"] == "done"


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        (MONITOR, "/metrics", 200),
        (ALL, "/metrics", 200),
        (MONITOR, "/v1/status", 200),
        (NOTES, "/metrics", 403),
        (NOTES, "/v1/status", 403),
        (None, "/metrics", 401),
        (None, "/v1/status", 401),
        ("wrong", "/v1/status", 401),
    ],
)
def test_pages_of_figures_ask_for_their_capability(
    served: Served, token: str | None, path: str, status: int
) -> None:
    answered, text = served.server.get(path, **shown(token))
    assert answered == status
    assert status != 403 or {"/metrics": "metrics", "/v1/status": "admin"}[path] in text


async def test_an_apps_own_pages_may_use_its_tokens_and_no_others(served: Served) -> None:
    for origin in (NOTES_PAGE, served.server.url):
        async with page(served.server, NOTES, origin) as ws:
            assert json.loads(await ws.recv())["app"] == "notes"
    assert await refused_status(page(served.server, ALL, NOTES_PAGE)) == 403
    assert await refused_status(page(served.server, NOTES, "https://evil.example")) == 403
    assert served.server.get("/healthz", Origin=NOTES_PAGE)[0] == 403


def test_only_declared_apps_are_labels_each_from_the_start(served: Served) -> None:
    for name in ("plait_app_connections", "plait_app_memory_bytes", "plait_app_streams_active"):
        labels = [dict(labels) for found, labels in served.server.metrics() if found == name]
        assert {label["app"] for label in labels} == {"notes", "monitor", "all", "hasty"}


async def test_the_status_shows_what_each_app_does(served: Served) -> None:
    def of_notes() -> dict[str, Any]:
        status = json.loads(served.server.get("/v1/status", **shown(MONITOR))[1])
        app: dict[str, Any] = next(app for app in status["apps"] if app["name"] == "notes")
        return app

    async with client_of(served.server, NOTES) as (client, _):
        await client.open(1, LONG, window=0)
        await client.hear_until("item", 1)
        seen = await asyncio.to_thread(of_notes)
        assert (seen["active"], seen["queued"]) == (1, 0)
        assert seen["connections"] >= 1  # one that has just left may still be counted
        assert seen["memory_bytes"] > 0
    await asyncio.to_thread(served.server.wait_idle)
    assert (await asyncio.to_thread(of_notes))["active"] == 0


# --- tokens that end -------------------------------------------------------------------------


async def test_a_token_works_from_its_making_to_its_revocation(served: Served) -> None:
    token = await asyncio.to_thread(served.token, "create", "notes", "--note", "for a test")
    async with contextlib.AsyncExitStack() as stack:
        client = await until_admitted(stack, served.server, token)
        await client.open(1, LONG, window=0)
        await client.hear_until("item", 1)
        id = await asyncio.to_thread(served.id_of, "for a test")
        await asyncio.to_thread(served.token, "revoke", id)
        assert await asyncio.wait_for(client.hear_close(), SECONDS) == 4401
    await asyncio.to_thread(served.server.wait_idle)
    assert await refused_status(program(served.server, token)) == 401
    assert token not in served.server.output


async def test_a_token_that_expires_closes_its_connections(served: Served) -> None:
    token, file = "plait_expires", TokenFile(served.home)
    kept = TokenRecord(new_id(), "notes", written_hash(token.encode()), datetime.now(UTC))
    await asyncio.to_thread(file.add, kept)
    async with contextlib.AsyncExitStack() as stack:
        client = await until_admitted(stack, served.server, token)
        await client.open(1, LONG, window=0)
        await client.hear_until("item", 1)
        await asyncio.to_thread(file.remove, kept.id)
        await asyncio.to_thread(file.add, expiring(kept))
        assert await asyncio.wait_for(client.hear_close(), SECONDS) == 4401
    assert await refused_status(program(served.server, token)) == 401
    await asyncio.to_thread(served.server.wait_idle)


def expiring(kept: TokenRecord) -> TokenRecord:
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    return TokenRecord(kept.id, kept.app, kept.hash, kept.created, soon)


def program(server: LiveServer, token: str) -> Any:
    return connect(
        server.ws_url,
        subprotocols=["plait.v1"],  # type: ignore[list-item]
        additional_headers=shown(token),
        close_timeout=1,
    )


async def until_admitted(stack: contextlib.AsyncExitStack, server: LiveServer, token: str) -> Peer:
    """The server watches the file: how soon it sees a token is up to the machine."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                ws = await stack.enter_async_context(program(server, token))
            except InvalidStatus:
                await asyncio.sleep(0.05)
            else:
                client = Peer(ws)
                await client.hear_until("welcome")
                return client


# --- tickets ---------------------------------------------------------------------------------


async def test_a_ticket_opens_one_connection_with_its_tokens_rights(served: Served) -> None:
    ticket = await asyncio.to_thread(served.ticket, NOTES)
    async with page(served.server, ticket, NOTES_PAGE) as ws:
        welcome = json.loads(await ws.recv())
        assert (welcome["app"], welcome["capabilities"]) == ("notes", ["chat"])
    async with page(served.server, ticket, NOTES_PAGE) as ws:
        assert await close_code(ws) == 4401
    assert await refused_status(program(served.server, ticket)) == 401
    assert ticket not in served.server.output


async def test_a_ticket_is_no_token(served: Served) -> None:
    ticket = await asyncio.to_thread(served.ticket, ALL)
    assert served.server.get("/metrics", **shown(ticket))[0] == 401
    assert served.post("/v1/ticket", ticket)[0] == 401


async def test_a_ticket_of_a_revoked_token_opens_nothing(served: Served) -> None:
    token = await asyncio.to_thread(served.token, "create", "all", "--note", "revoked early")
    async with contextlib.AsyncExitStack() as stack:
        client = await until_admitted(stack, served.server, token)
        ticket = await asyncio.to_thread(served.ticket, token)
        id = await asyncio.to_thread(served.id_of, "revoked early")
        await asyncio.to_thread(TokenFile(served.home).remove, id)
        assert await asyncio.wait_for(client.hear_close(), SECONDS) == 4401
    async with page(served.server, ticket, served.server.url) as ws:
        assert await close_code(ws) == 4401


def test_a_ticket_is_given_for_a_good_token_only_and_to_no_other_site(served: Served) -> None:
    assert served.post("/v1/ticket")[0] == 401
    assert served.post("/v1/ticket", "wrong")[0] == 401
    assert served.post("/v1/ticket", NOTES, Host="evil.example")[0] == 403
    assert served.post("/v1/ticket", NOTES, Origin="https://evil.example")[0] == 403
    assert served.post("/v1/ticket", ALL, Origin=NOTES_PAGE)[0] == 403
    assert served.post(f"/v1/ticket?token={NOTES}")[0] == 400
    for method in ("GET", "OPTIONS", "PUT"):
        status, text = served.server.get("/v1/ticket", method=method, **shown(NOTES))
        assert (status, "plait_once" in text) == (405, False)


def test_no_answer_lets_another_site_read_it(served: Served) -> None:
    import urllib.request

    request = urllib.request.Request(
        served.server.url + "/v1/ticket",
        method="POST",
        headers={"Origin": NOTES_PAGE} | shown(NOTES),
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        names = {name.lower() for name in response.headers}
        assert response.headers["cache-control"].startswith("no-store")
    assert not any(name.startswith("access-control") for name in names)


def test_open_tickets_are_bounded_per_app(served: Served) -> None:
    for _ in range(MAX_OPEN_PER_APP):
        if served.post("/v1/ticket", MONITOR)[0] != 200:
            break
    assert served.post("/v1/ticket", MONITOR)[0] == 429
    assert served.post("/v1/ticket", ALL)[0] == 200


def test_a_body_is_neither_waited_for_nor_read(served: Served) -> None:
    head = f"POST /v1/ticket HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {NOTES}\r\n"
    with socket.create_connection(("127.0.0.1", served.server.port), timeout=SECONDS) as sock:
        sock.sendall(f"{head}Content-Length: 1000000000\r\n\r\nbegins".encode())
        assert sock.recv(100).startswith(b"HTTP/1.1 200")
