"""§5 and §8: input where it belongs, and where it does not."""

from __future__ import annotations

from typing import Any

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard, Message
from plait.conformance.lab import Lab
from plait.conformance.media import audio_in
from plait.conformance.peer import Peer

FITTING: dict[str, Message] = {"synthesize": {"text": "a."}, "embed": {"texts": ["a"]}}


async def _open_for_input(lab: Lab, peer: Peer, method: str) -> Heard:
    params = lab.short(method) if method == "transcribe" else {}
    stream = peer.open(method, params)
    await peer.answered(stream)
    return stream


def _takers(lab: Lab) -> list[str]:
    takers = [name for name in ("transcribe", "synthesize", "embed") if name in lab.methods]
    if not takers:
        raise Skipped("no method that takes input is offered")
    return takers


@case("§2", "accepted.window_bytes: only where input is possible")
async def window_bytes(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in lab.methods:
            stream = peer.open(method, lab.long(method), window=1, acks=False)
            await peer.answered(stream)
            has = "window_bytes" in stream.accepted[0]
            expect(has == (method == "transcribe"), f"{method}: only for input", stream.accepted[0])


@case("§8", "end for a stream that takes no input is ignored, and so are repeated ends")
async def ends(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        stream = peer.open(method, lab.short(method))
        for _ in range(3):
            peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")


@case("§8", "input after end: that stream's error invalid_request")
async def after_end(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in _takers(lab):
            stream = await _open_for_input(lab, peer, method)
            given: Any = (
                audio_in(stream.id, bytes(3200))
                if method == "transcribe"
                else {"type": "input", "id": stream.id} | FITTING[method]
            )
            peer.say({"type": "end", "id": stream.id}, given)
            await peer.ended(stream)
            if stream.ended == "done":
                lab.note(f"{method} was done before the input")
                continue
            await lab.fails(peer, stream, "invalid_request")


@case("§8", "input of another kind: that stream's error invalid_request")
async def of_another_kind(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in _takers(lab):
            wrong: list[Any] = [body for name, body in FITTING.items() if name != method]
            for body in wrong:
                stream = await _open_for_input(lab, peer, method)
                peer.say({"type": "input", "id": stream.id} | body)
                await lab.fails(peer, stream, "invalid_request")
        for method in set(_takers(lab)) - {"transcribe"}:
            stream = await _open_for_input(lab, peer, method)
            peer.say(audio_in(stream.id, bytes(320)))
            await lab.fails(peer, stream, "invalid_request")


@case("§8", "input for a stream that takes none: error invalid_request")
async def where_none_is_taken(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in lab.methods:
            if method == "transcribe":
                continue
            for given in ({"text": "a"}, {"texts": ["a"]}):
                stream = peer.open(method, lab.long(method), window=1, acks=False)
                await peer.answered(stream)
                peer.say({"type": "input", "id": stream.id} | given)
                await lab.fails(peer, stream, "invalid_request")


@case("§2", "input with both of text and texts, or with neither: invalid_request")
async def both_or_neither(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in _takers(lab):
            for given in ({}, {"text": "a", "texts": ["a"]}):
                stream = await _open_for_input(lab, peer, method)
                peer.say({"type": "input", "id": stream.id} | given)
                await lab.fails(peer, stream, "invalid_request")


@case("§5", "more text than the credit: error input_overflow")
async def overflow(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in _takers(lab):
            if method == "transcribe":
                continue
            stream = await _open_for_input(lab, peer, method)
            window = stream.accepted[0].get("window_bytes", 0)
            if window >= int(lab.limits["max_text_bytes"]) - 200:
                lab.note(f"{method}: a window of {window} bytes is not overrun by a frame")
                continue
            text = "word " * (window // 5 + 20)
            given = {"text": text} if method == "synthesize" else {"texts": [text]}
            peer.say({"type": "input", "id": stream.id} | given)
            await lab.fails(peer, stream, "input_overflow")


@case("§8", "input, end and audio for ids that are not live are ignored")
async def for_nobody(lab: Lab) -> None:
    async with lab.connect() as peer:
        await peer.barrier(
            {"type": "input", "id": 900, "text": "a"},
            {"type": "input", "id": 900, "texts": [1, 2]},
            {"type": "end", "id": 900},
            {"type": "ack", "id": 900, "seq": 10},
            audio_in(900, bytes(320)),
            audio_in(900, bytes(320), version=9, kind=9),
        )
        await lab.works(peer)
