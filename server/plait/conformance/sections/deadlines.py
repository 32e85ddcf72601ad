"""§2: deadline_ms ends a stream in any state, as cancelled by deadline."""

from __future__ import annotations

import time

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer

DEADLINE_MS = 400


async def _ends_by_deadline(lab: Lab, peer: Peer, stream: Heard, begin: float) -> None:
    await peer.ended(stream)
    terminal = stream.terminal or {}
    if stream.ended == "done":
        raise Skipped("done before its deadline")
    expect(terminal.get("by") == "deadline", "`cancelled {by: deadline}`", terminal)
    seconds = time.monotonic() - begin
    expect(
        seconds >= DEADLINE_MS / 1000 - 0.005, f"not before {DEADLINE_MS} ms", f"{seconds:.3f} s"
    )
    lab.note(f"after {1000 * seconds:.0f} ms of {DEADLINE_MS}")


@case("§2 G9", "a deadline while paused at the window")
async def paused(lab: Lab) -> None:
    async with lab.connect() as peer:
        method, begin = lab.itemised, time.monotonic()
        stream = peer.open(method, lab.long(method), window=1, acks=False, deadline_ms=DEADLINE_MS)
        await _ends_by_deadline(lab, peer, stream, begin)


@case("§2 G9", "a deadline while streaming", needs=["chat"])
async def streaming(lab: Lab) -> None:
    async with lab.connect() as peer:
        begin = time.monotonic()
        stream = peer.open("chat", lab.chat(), deadline_ms=DEADLINE_MS)
        await _ends_by_deadline(lab, peer, stream, begin)


@case("§2 G9", "a deadline while it waits for input that never comes")
async def without_input(lab: Lab) -> None:
    takes = [name for name in ("transcribe", "synthesize", "embed") if name in lab.methods]
    if not takes:
        raise Skipped("no method that takes input is offered")
    async with lab.connect() as peer:
        begin = time.monotonic()
        streams = [
            peer.open(
                method,
                lab.short(method) if method == "transcribe" else {},
                deadline_ms=DEADLINE_MS,
            )
            for method in takes
        ]
        for stream in streams:
            await _ends_by_deadline(lab, peer, stream, begin)


@case("§2", "a deadline that is never reached changes nothing; null is none")
async def unreached(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        for deadline in (86_400_000, None):
            stream = peer.open(method, lab.short(method), deadline_ms=deadline)
            peer.end(stream)
            await peer.ended(stream)
            expect(stream.ended == "done", f"done with deadline_ms {deadline}", stream)


@case("§2", "deadline_ms 0, 86400001, 1.5 and text are invalid_request")
async def bad(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        for deadline in (0, 86_400_001, -5, 1.5, "soon"):
            await lab.refuses(
                peer,
                method,
                lab.short(method),
                "invalid_request",
                "deadline_ms",
                deadline_ms=deadline,
            )


@case("R6", "a cancel before the deadline decides `by`")
async def cancel_first(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.itemised
        stream = peer.open(method, lab.long(method), window=1, acks=False, deadline_ms=30_000)
        await peer.items(stream, 1)
        lab.must_run(stream)
        peer.cancel(stream)
        await lab.cancelled(peer, stream)
