"""§1, §6: frames too large, texts that are no UTF-8, and fragments."""

from __future__ import annotations

from websockets.frames import Frame, Opcode

from plait.conformance.cases import Skipped, case
from plait.conformance.lab import Lab

LARGEST = 16 * 1024 * 1024  # beyond it the suite would only be slow


def _limit(lab: Lab, name: str) -> int:
    limit = int(lab.limits[name])
    if limit > LARGEST:
        raise Skipped(f"limits.{name} is {limit}")
    return limit


@case("§6", "a text frame over max_text_bytes: close 1009")
async def text_too_large(lab: Lab) -> None:
    limit = _limit(lab, "max_text_bytes")
    async with lab.connect() as peer:
        peer.say('{"type": "ping", "n": 1, "x": "' + "x" * limit + '"}')
        await peer.closes(1009, f"{limit + 33} bytes of text")


@case("§6", "a binary frame over max_binary_bytes: close 1009")
async def binary_too_large(lab: Lab) -> None:
    limit = _limit(lab, "max_binary_bytes")
    async with lab.connect() as peer:
        peer.say(bytes(limit + 1))
        await peer.closes(1009, f"{limit + 1} bytes")


@case("§1", "a text frame of exactly max_text_bytes is read")
async def text_at_the_limit(lab: Lab) -> None:
    limit = _limit(lab, "max_text_bytes")
    head, tail = '{"type": "ping", "n": 77, "x": "', '"}'
    async with lab.connect() as peer:
        peer.checker.sent({"type": "ping", "n": 77})
        text = head + "x" * (limit - len(head) - len(tail)) + tail
        peer.write([Frame(Opcode.TEXT, text.encode()).serialize(mask=True)])
        await peer.until(lambda: 77 in peer.pongs, f"pong 77 for {limit} bytes")


@case("§1", "a binary frame of exactly max_binary_bytes is read")
async def binary_at_the_limit(lab: Lab) -> None:
    limit = _limit(lab, "max_binary_bytes")
    async with lab.connect() as peer:
        await peer.barrier(b"\x01\x02\0\0\x99" + bytes(limit - 5))


@case("§6", "a text frame that is no UTF-8: close 1007")
async def not_utf8(lab: Lab) -> None:
    async with lab.connect() as peer:
        peer.write([Frame(Opcode.TEXT, b'{"type": "ping\xff\xfe"}').serialize(mask=True)])
        await peer.closes(1007, "bytes ff fe in a text")


@case("§1", "a message in fragments, a ping between them, is read as one")
async def fragments(lab: Lab) -> None:
    async with lab.connect() as peer:
        peer.checker.sent({"type": "ping", "n": 5})
        text = b'{"type": "ping", "n": 5}'
        parts = [
            Frame(Opcode.TEXT, text[:7], fin=False),
            Frame(Opcode.PING, b"between"),
            Frame(Opcode.CONT, text[7:9], fin=False),
            Frame(Opcode.CONT, text[9:]),
        ]
        peer.write(part.serialize(mask=True) for part in parts)
        await peer.until(lambda: 5 in peer.pongs, "pong 5")


@case("S7", "a client's close is answered, whatever its code")
async def close_codes(lab: Lab) -> None:
    for code in (1000, 1001, 3000, 4999):
        async with lab.connect() as peer:
            await peer.ws.close(code, "leaving")
            await peer.until(lambda: peer.closed, "the close is answered")
    async with lab.connect() as peer:
        await lab.works(peer)
