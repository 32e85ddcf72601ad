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
    method = "chat" if "messages" in params else lab.any_method
    id = peer.next_id()
    shown = params or json.dumps(lab.short(method))
    head = f'{{"type": "open", "id": {id}, "method": "{method}"'
    peer.say(f'{head}, "params": {shown}{extra}}}')
    stream = peer.streams[id]
    peer.end(stream)
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
            params = f'{{{said}, "temperature": {value}}}'
            stream = await _opened(lab, peer, "", params)
            seen = f"{stream}: {stream.error}"
            expect(stream.ended == "rejected", f"`rejected` for temperature {value}", seen)
            expect(stream.error.get("param") == "temperature", "param temperature", seen)


@case("§6 JSON", "half a surrogate pair in a text: rejected on that stream", needs=["chat"])
async def half_surrogate(lab: Lab) -> None:
    async with lab.connect() as peer:
        said = '{"messages": [{"role": "user", "content": "\\ud800"}]}'
        stream = await _opened(lab, peer, "", said)
        seen = f"{stream}: {stream.error}"
        expect(stream.ended == "rejected", "`rejected`", seen)
        expect(str(stream.error.get("param")).startswith("messages"), "param messages…", seen)


@case("§6 JSON", "nesting beyond 64 levels: rejected, and the connection goes on")
async def nesting(lab: Lab) -> None:
    async with lab.connect() as peer:
        for levels in (66, 1000, 2000):
            stream = await _opened(lab, peer, "", _deep(levels))
            expect(stream.ended == "rejected", f"`rejected` at {levels} levels", stream)
        await lab.works(peer)


@case("§6 JSON", "a schema nested beyond 64 levels: rejected, naming the field", needs=["chat"])
async def nested_schema(lab: Lab) -> None:
    async with lab.connect() as peer:
        schema = '{"items": ' * 80 + "{}" + "}" * 80
        tool = f'{{"type": "function", "function": {{"name": "f", "parameters": {schema}}}}}'
        said = '"messages": [{"role": "user", "content": "x"}]'
        stream = await _opened(lab, peer, "", f'{{{said}, "tools": [{tool}]}}')
        expect(stream.ended == "rejected", "`rejected` at 80 levels", stream)
        expect(str(stream.error.get("param")).startswith("tools"), "param tools…", stream.error)


@case("§6 JSON", "of a repeated key the last counts")
async def repeated_keys(lab: Lab) -> None:
    async with lab.connect() as peer:
        last = ', "window": 1, "window": 256, "deadline_ms": 1, "deadline_ms": null'
        stream = await _opened(lab, peer, last)
        expect(stream.ended == "done", "done, by the last of each", stream)
        refused = await _opened(lab, peer, ', "window": 64, "window": 999')
        expect(refused.error.get("param") == "window", "`rejected`, param window", refused)


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
