"""§6, "Where a fault goes": to the open, to the stream, to nobody, or to the connection."""

from __future__ import annotations

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard, Message
from plait.conformance.lab import Lab
from plait.conformance.media import audio_in
from plait.conformance.peer import Peer

UNREADABLE = (
    "",
    "not json",
    '{"type": "open"',
    "[]",
    "1",
    "null",
    '"open"',
    "{}",
    '{"id": 1}',
    '{"type": 5, "id": 1}',
    '{"type": "nope", "id": 1}',
    '{"type": "welcome", "id": 1}',
    '{"type": "cancel"}',
    '{"type": "ack", "seq": 1}',
    '{"type": "ack", "id": "x", "seq": 1}',
    '{"type": "ping"}',
    '{"type": "ping", "n": -1}',
    '{"type": "ping", "n": 1.5}',
    '{"type": "ping", "n": 9007199254740992}',
    '{"type": "ping", "n": "1"}',
)
BAD_BODIES: tuple[tuple[str, Message, str], ...] = (
    ("ack without seq", {"type": "ack"}, "invalid_request"),
    ("ack with a seq below 0", {"type": "ack", "seq": -1}, "invalid_request"),
    ("ack with a text as seq", {"type": "ack", "seq": "1"}, "invalid_request"),
    ("cancel with heard_ms below 0", {"type": "cancel", "heard_ms": -1}, "invalid_request"),
    ("input with a number as text", {"type": "input", "text": 5}, "invalid_request"),
    ("input with numbers as texts", {"type": "input", "texts": [1]}, "invalid_request"),
)
BAD_OPENS: tuple[tuple[str, Message], ...] = (
    ("priority", {"priority": "urgent"}),
    ("window", {"window": "64"}),
    ("window", {"window": 1.5}),
    ("params", {"params": []}),
    ("params", {"params": "text"}),
    ("resume_seconds", {"resume_seconds": -1}),
)


@case("§6", "unreadable messages, and those that name nobody: close 4400")
async def unreadable(lab: Lab) -> None:
    for text in UNREADABLE:
        async with lab.connect() as peer:
            peer.say(text)
            await peer.closes(4400, repr(text))


@case("§6", "a binary frame under 16 bytes: close 4400")
async def short_binary(lab: Lab) -> None:
    for data in (b"", b"\x01", bytes(15)):
        async with lab.connect() as peer:
            peer.say(data)
            await peer.closes(4400, f"{len(data)} bytes")


@case("§6", "a bad open with a new id: rejected, naming the field; the id is used up")
async def bad_open(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        for param, fields in BAD_OPENS:
            opening = peer.opening(method, lab.short(method)) | fields
            peer.say(opening)
            stream = peer.streams[opening["id"]]
            await peer.ended(stream)
            seen = f"{stream}: {stream.error}"
            expect(stream.ended == "rejected", f"`rejected` for {fields}", seen)
            expect(stream.error.get("code") == "invalid_request", "invalid_request", seen)
            expect(stream.error.get("param") == param, f"param {param}", seen)
        await lab.works(peer)


@case("§6", "an open without a method: rejected, naming it")
async def no_method(lab: Lab) -> None:
    async with lab.connect() as peer:
        id = peer.next_id()
        peer.say({"type": "open", "id": id, "params": {}})
        stream = peer.streams[id]
        await peer.ended(stream)
        expect(stream.ended == "rejected", "`rejected`", stream)
        expect(stream.error.get("param") == "method", "param method", stream.error)


async def _held(lab: Lab, peer: Peer) -> Heard:
    """Live, whatever its engine's speed."""
    method = lab.itemised
    stream = peer.open(method, lab.long(method), window=1, acks=False)
    await peer.items(stream, 1)
    lab.must_run(stream)
    return stream


@case("§6", "any other bad message that names a live stream: that stream's error")
async def bad_message(lab: Lab) -> None:
    async with lab.connect() as peer:
        for what, body, code in BAD_BODIES:
            stream = await _held(lab, peer)
            peer.say(body | {"id": stream.id})
            await peer.ended(stream)
            seen = f"{stream}: {stream.error}"
            expect(stream.ended == "error", f"`error` for {what}", seen)
            expect(stream.error.get("code") == code, f"{code} for {what}", seen)


@case("§6", "the same, naming a stream that is not live: ignored")
async def bad_message_for_nobody(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        over = peer.open(method, lab.short(method))
        peer.end(over)
        await peer.ended(over)
        for id in (over.id, 4000):
            await peer.barrier(*(body | {"id": id} for _, body, _ in BAD_BODIES))
        await lab.works(peer)


@case("§6", "a binary frame of another version or kind, of a live stream: its error")
async def bad_header(lab: Lab) -> None:
    async with lab.connect() as peer:
        for version, kind in ((2, 2), (0, 2), (1, 1), (1, 3), (1, 9)):
            stream = await _held(lab, peer)
            peer.say(audio_in(stream.id, bytes(32), version=version, kind=kind))
            await peer.ended(stream)
            seen = f"{stream}: {stream.error}"
            wanted = f"`error invalid_message` for version {version}, kind {kind}"
            expect(stream.error.get("code") == "invalid_message", wanted, seen)
            named = "version" if version != 1 else "kind"
            expect(stream.error.get("param") == named, f"param {named}", seen)


@case("§6", "a fault ends its stream alone: others of the connection go on")
async def others_go_on(lab: Lab) -> None:
    if int(lab.limits["max_streams"]) < 2:
        raise Skipped("one stream a connection")
    async with lab.connect() as peer:
        bystander, victim = await _held(lab, peer), await _held(lab, peer)
        peer.say({"type": "ack", "id": victim.id, "seq": -5})
        await lab.fails(peer, victim, "invalid_request")
        peer.ack(bystander)
        await peer.items(bystander, 2)
        lab.must_run(bystander)


@case("§6", "more live streams than max_streams: rejected too_many_streams, with the limit")
async def too_many_streams(lab: Lab) -> None:
    limit = int(lab.limits["max_streams"])
    if limit > 64 or limit > int(lab.limits["opens_per_second"]):
        raise Skipped(f"max_streams is {limit}")
    async with lab.connect() as peer:
        method = "transcribe" if "transcribe" in lab.methods else lab.itemised
        streams = [
            peer.open(method, lab.long(method), window=1, acks=False) for _ in range(limit + 1)
        ]
        await peer.until(lambda: all(s.answered for s in streams), "an answer for each")
        last = streams[-1]
        if any(stream.ended for stream in streams[:-1]):
            raise Skipped("streams ended, or found no room, before the limit was reached")
        expect(last.error.get("code") == "too_many_streams", "too_many_streams", last)
        expect(last.error["data"]["limit"] == limit, f"data.limit {limit}", last.error)
        peer.cancel(streams[0])
        await peer.ended(streams[0])
        again = peer.open(method, lab.long(method), window=1, acks=False)
        await peer.until(lambda: again.answered, "an answer")
        expect(again.accepted, "`accepted` once one has ended", again)
