"""§6, "Reading JSON": odd numbers, half surrogates, nesting, repeated keys."""

from __future__ import annotations

import json

from plait.conformance.cases import case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer

ODD = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"\\ud800"', "1" + "0" * 400)


async def _opened(lab: Lab, peer: Peer, extra: str, params: str = "") -> Heard:
    """An open whose text has `extra` fields in it, or `params` as they are written."""
    method, id = lab.any_method, peer.next_id()
    shown = params or json.dumps(lab.short(method))
    head = f'{{"type": "open", "id": {id}, "method": "{method}"'
    peer.say(f'{head}, "params": {shown}{extra}}}')
    stream = peer.streams[id]
    await peer.ended(stream)
    return stream


def _deep(levels: int) -> str:
    return "[" * levels + "]" * levels


@case("§6 JSON", "NaN, Infinity, 1e999 and half a surrogate are faults of their field")
async def odd_values(lab: Lab) -> None:
    async with lab.connect() as peer:
        for value in ODD:
            stream = await _opened(lab, peer, f', "deadline_ms": {value}')
            seen = f"{stream}: {stream.error}"
            expect(stream.ended == "rejected", f"`rejected` for deadline_ms {value[:20]}", seen)
            expect(stream.error.get("param") == "deadline_ms", "param deadline_ms", seen)
        await lab.works(peer)


@case("§6 JSON", "the same in params: rejected, naming the field", needs=["chat"])
async def odd_values_in_params(lab: Lab) -> None:
    async with lab.connect() as peer:
        for value in ("NaN", "1e999", '"\\ud800"'):
            said = '"messages": [{"role": "user", "content": "x"}]'
            stream = peer.streams[peer.next_id()]
            params = f'{{{said}, "temperature": {value}}}'
            peer.say(f'{{"type": "open", "id": {stream.id}, "method": "chat", "params": {params}}}')
            await peer.ended(stream)
            seen = f"{stream}: {stream.error}"
            expect(stream.ended == "rejected", f"`rejected` for temperature {value}", seen)
            expect(stream.error.get("param") == "temperature", "param temperature", seen)


@case("§6 JSON", "half a surrogate pair in a text: rejected on that stream", needs=["chat"])
async def half_surrogate(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.streams[peer.next_id()]
        said = '{"messages": [{"role": "user", "content": "\\ud800"}]}'
        peer.say(f'{{"type": "open", "id": {stream.id}, "method": "chat", "params": {said}}}')
        await peer.ended(stream)
        seen = f"{stream}: {stream.error}"
        expect(stream.ended == "rejected", "`rejected`", seen)
        expect(str(stream.error.get("param")).startswith("messages"), "param messages…", seen)


@case("§6 JSON", "nesting beyond 64 levels is refused, and below is not")
async def nesting(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        for levels, refused in ((40, False), (100, True), (5000, True)):
            inside = json.dumps(lab.short(method))[:-1] + f', "x_deep": {_deep(levels)}}}'
            id = peer.next_id()
            stream = peer.streams[id]
            peer.say(f'{{"type": "open", "id": {id}, "method": "{method}", "params": {inside}}}')
            peer.checker.sent({"type": "open", "id": id, "method": method} if refused else {})
            peer.end(stream)
            await peer.ended(stream)
            wanted = "rejected" if refused else "done"
            expect(stream.ended == wanted, f"{wanted} at {levels} levels", f"{stream}")
        await lab.works(peer)


@case("§6 JSON", "of a repeated key the last counts")
async def repeated_keys(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _opened(
            lab, peer, ', "window": "x", "window": 64, "deadline_ms": 0, "deadline_ms": null'
        )
        expect(stream.ended in ("done", ""), "done, by the last of each", f"{stream}")
        refused = await _opened(lab, peer, ', "window": 64, "window": 999')
        expect(refused.error.get("param") == "window", "`rejected`, param window", f"{refused}")


@case("§6 JSON", "a type repeated with another value names nobody")
async def repeated_type(lab: Lab) -> None:
    async with lab.connect() as peer:
        peer.say('{"type": "ping", "n": 1, "type": "nope"}')
        await peer.until(lambda: peer.closed or peer.pongs, "a close 4400")
        expect(peer.close_code == 4400, "close 4400", f"close {peer.close_code}")


@case("§6 JSON", "integers with a fraction or an exponent are faults of their field")
async def integers(lab: Lab) -> None:
    async with lab.connect() as peer:
        for value in ("64.0", "6.4e1", "1e2"):
            stream = await _opened(lab, peer, f', "window": {value}')
            seen = f"{stream}: {stream.error}"
            expect(stream.ended == "rejected", f"`rejected` for window {value}", seen)


@case("§1", "any JSON is read: spaces, escapes, keys in any order, non-ASCII")
async def any_spelling(lab: Lab) -> None:
    async with lab.connect() as peer:
        peer.checker.sent({"type": "ping", "n": 12})
        peer.say(
            ' \r\n\t{ "n" :12 , "ty\\u0070e"\n: "ping", "\u00e4\U0001f600": "\\ud83d\\ude00"} '
        )
        await peer.until(lambda: 12 in peer.pongs, "pong 12")
