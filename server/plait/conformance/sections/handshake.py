"""§1: how one connects, what is refused before anything is accepted, and who speaks first."""

from __future__ import annotations

import asyncio

from plait.conformance.cases import case, expect
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer
from plait.conformance.target import SUBPROTOCOL

FOREIGN = "https://elsewhere.example"


async def _refused(lab: Lab, expected: int, what: str, **headers: str | None) -> None:
    status, _ = await lab.target.status(lab.target.upgrade(**headers))
    expect(status == expected, f"HTTP {expected} for {what}", f"HTTP {status}")


@case("§1", "no subprotocol offered: HTTP 400")
async def no_subprotocol(lab: Lab) -> None:
    await _refused(lab, 400, "no subprotocol", Sec_WebSocket_Protocol=None)


@case("§1", "only other subprotocols offered: HTTP 400")
async def other_subprotocol(lab: Lab) -> None:
    for offered in ("plait.v2", "PLAIT.V1", "graphql-ws, mqtt"):
        await _refused(lab, 400, f"subprotocol {offered}", Sec_WebSocket_Protocol=offered)


@case("§1", "of several subprotocols plait.v1 is selected")
async def selects_its_subprotocol(lab: Lab) -> None:
    async with lab.connect(subprotocols=("mqtt", SUBPROTOCOL)) as peer:
        chosen = peer.ws.subprotocol
        expect(chosen == SUBPROTOCOL, "plait.v1 selected", chosen)


@case("§1", "a Host that is neither loopback nor configured: HTTP 403")
async def foreign_host(lab: Lab) -> None:
    await _refused(lab, 403, "Host elsewhere.example", Host="elsewhere.example")


@case("§1", "an Origin that is not allowed exactly: HTTP 403")
async def foreign_origin(lab: Lab) -> None:
    await _refused(lab, 403, f"Origin {FOREIGN}", Origin=FOREIGN)
    near = f"https://{lab.target.host}.elsewhere.example"
    await _refused(lab, 403, f"Origin {near}", Origin=near)


@case("§1", "Origin null: HTTP 403")
async def null_origin(lab: Lab) -> None:
    await _refused(lab, 403, "Origin null", Origin="null")


@case("§1", "a token in the URL: HTTP 400, whatever else the request is")
async def token_in_url(lab: Lab) -> None:
    for query in ("token=x", "a=1&access_token=x"):
        path = f"{lab.target.path}?{query}"
        for headers in ({}, {"Origin": FOREIGN}):
            status, _ = await lab.target.status(lab.target.upgrade(**headers), path)
            expect(status == 400, f"HTTP 400 for ?{query} {headers}", f"HTTP {status}")


@case("§1", "permessage-deflate is offered and not negotiated")
async def no_compression(lab: Lab) -> None:
    async with lab.connect(compression="deflate") as peer:
        response = peer.ws.response
        agreed = response.headers.get("Sec-WebSocket-Extensions") if response else None
        expect(not agreed, "no extension negotiated", agreed)
        await lab.works(peer)


@case("§1", "welcome comes first, once, with all its fields")
async def welcome(lab: Lab) -> None:
    async with lab.connect() as peer:
        await peer.barrier()
        known = {"chat", "transcribe", "synthesize", "embed"}
        methods = set(peer.welcome["methods"])
        expect(methods <= known, f"methods of {sorted(known)}", sorted(methods))
        window = peer.welcome["limits"]["window"]
        expect(0 <= window <= 256, "limits.window 0 … 256", window)
        lab.note(f"{', '.join(sorted(methods)) or 'no methods'}, session of its own")


@case("§1", "each connection has a session name of its own")
async def sessions_differ(lab: Lab) -> None:
    async with lab.connect() as one, lab.connect() as other:
        names = one.welcome["session"], other.welcome["session"]
        expect(names[0] != names[1], "two names of two connections", names)


@case("§1", "a client may send before it has read welcome")
async def sends_before_welcome(lab: Lab) -> None:
    peer = Peer(await lab.target.connect(), lab.target.seconds)
    lab.peers.append(peer)
    try:
        peer.say({"type": "ping", "n": 2**53 - 1})
        await peer.until(lambda: 2**53 - 1 in peer.pongs, "a pong for a ping sent at once")
    finally:
        await peer.leave()


@case("§1", "ping {n} gets pong {n}, each once and in order")
async def pings(lab: Lab) -> None:
    async with lab.connect() as peer:
        wanted = [0, 7, 2**53 - 1, 7, 1000]
        peer.say(*({"type": "ping", "n": n} for n in wanted))
        await peer.until(lambda: len(peer.pongs) >= len(wanted), "five pongs")
        expect(list(peer.pongs) == wanted, f"pongs {wanted}", list(peer.pongs))


@case("§1", "a WebSocket ping is answered by a WebSocket pong")
async def socket_ping(lab: Lab) -> None:
    async with lab.connect() as peer:
        pong = await peer.ws.ping(b"conform")
        async with asyncio.timeout(lab.target.seconds):
            await pong


@case("§8", "unknown fields are ignored, in open, params and every other message")
async def unknown_fields(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        extra = {"x_new": {"deep": [1, None]}, "y": "z"}
        stream = peer.open(method, lab.short(method) | extra, **extra)
        peer.say({"type": "ack", "id": stream.id, "seq": 0} | extra)
        peer.say({"type": "end", "id": stream.id} | extra)
        await peer.barrier({"type": "ack", "id": stream.id + 5, "seq": 0} | extra)
        await peer.ended(stream)
        expect(stream.ended == "done", "done, as without those fields", stream)
