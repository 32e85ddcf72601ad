"""§1: tokens and tickets. Without a token of the server's there is nothing to refuse."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from websockets.exceptions import InvalidStatus

from plait.conformance.cases import Broken, Skipped, case, expect
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer
from plait.conformance.target import SUBPROTOCOL, Target

WRONG = "wrong-token-of-the-conformance-suite"


def as_subprotocol(token: str) -> str:
    return "plait.token." + base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def _guarded(lab: Lab) -> Target:
    """Raises Skipped for a server that asks for no token, as far as we were told."""
    if not lab.target.token:
        raise Skipped("no --token given")
    return lab.target


async def _closed_4401(lab: Lab, token: str) -> None:
    offered = (SUBPROTOCOL, as_subprotocol(token))
    target = lab.target.as_page()
    try:
        peer = Peer(await target.connect(subprotocols=offered), target.seconds)
    except InvalidStatus as refused:
        if refused.response.status_code != 403:
            raise
        raise Skipped(f"{target.origin} may not connect; give --origin one that may") from refused
    lab.peers.append(peer)
    try:
        await peer.closes(4401, "a wrong token as a subprotocol")
        expect(not peer.welcome, "no welcome before the close 4401", peer.welcome)
    finally:
        await peer.drop()


@case("§1", "no token, and a wrong one: HTTP 401")
async def wrong_token(lab: Lab) -> None:
    target = _guarded(lab)
    for header in (None, f"Bearer {WRONG}", f"Basic {WRONG}"):
        status, _ = await target.status(target.upgrade(Authorization=header))
        expect(status == 401, f"HTTP 401 for Authorization {header}", f"HTTP {status}")


@case("§1", "a wrong token as a subprotocol: accepted, then closed 4401, no welcome")
async def wrong_token_of_a_page(lab: Lab) -> None:
    _guarded(lab)
    await _closed_4401(lab, WRONG)


@case("§1", "the token as a subprotocol is served, and plait.v1 selected")
async def token_of_a_page(lab: Lab) -> None:
    target = _guarded(lab)
    offered = (SUBPROTOCOL, as_subprotocol(target.token))
    async with lab.connect(target.as_page(), subprotocols=offered) as peer:
        expect(peer.ws.subprotocol == SUBPROTOCOL, "plait.v1 selected", peer.ws.subprotocol)


@case("§1", "a ticket opens one connection, once")
async def ticket(lab: Lab) -> None:
    target = _guarded(lab)
    got = await _ticket(target)
    offered = (SUBPROTOCOL, as_subprotocol(got))
    async with lab.connect(target.as_page(), subprotocols=offered) as peer:
        await lab.works(peer)
    await _closed_4401(lab, got)


@case("§1", "no ticket for a wrong token: HTTP 401")
async def no_ticket(lab: Lab) -> None:
    target = replace(_guarded(lab), token=WRONG)
    status, _ = await target.status(_asking(target), "/v1/ticket", "POST")
    expect(status == 401, "HTTP 401 for a ticket with a wrong token", f"HTTP {status}")


def _asking(target: Target) -> dict[str, str]:
    headers = {"Host": target.host, "Content-Length": "0", "Connection": "close"}
    return headers | {"Authorization": f"Bearer {target.token}"}


async def _ticket(target: Target) -> str:
    status, answer = await target.status(_asking(target), "/v1/ticket", "POST")
    try:
        body = json.loads(answer.partition("\r\n\r\n")[2])
        return str(body["ticket"])
    except (ValueError, KeyError) as error:
        raise Broken("{ticket, expires_in} from POST /v1/ticket", f"HTTP {status}") from error
