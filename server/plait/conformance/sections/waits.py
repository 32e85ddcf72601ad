"""Promises with half a minute in them: run with --slow only."""

from __future__ import annotations

import asyncio
import contextlib
import time

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.lab import Lab

SLOW_SECONDS = 30.0
SLACK_SECONDS = 10.0


@case("§5", "no acks for 30 s: cancelled by slow", slow=True)
async def slow_reader(lab: Lab) -> None:
    async with lab.connect() as peer:
        begin = time.monotonic()
        stream = await lab.streaming(peer, lab.itemised, window=1, acks=False)
        await peer.ended(stream, seconds=SLOW_SECONDS + SLACK_SECONDS)
        terminal = stream.terminal or {}
        expect(terminal.get("by") == "slow", "`cancelled {by: slow}`", terminal)
        seconds = time.monotonic() - begin
        expect(seconds >= SLOW_SECONDS - 1, "not before 30 s", f"{seconds:.1f} s")
        lab.note(f"after {seconds:.1f} s")


@case("§5", "window 0 has no slow timer, nor has a stream that waits for input", slow=True)
async def never_slow(lab: Lab) -> None:
    takers = [name for name in ("transcribe", "synthesize", "embed") if name in lab.methods]
    if not takers:
        raise Skipped("no method that takes input is offered")
    async with lab.connect() as peer:
        method = takers[0]
        params = lab.short(method) if method == "transcribe" else {}
        streams = [peer.open(method, params, window=window) for window in (0, 64)]
        for stream in streams:
            await lab.quiet(peer, stream, (SLOW_SECONDS + 3) / 2)
            peer.end(stream)
        await peer.ended(*streams)
        expect(all(s.ended == "done" for s in streams), "done", [*map(str, streams)])


@case("§1", "the server pings every ping_seconds", slow=True)
async def pings(lab: Lab) -> None:
    patience = float(lab.limits["ping_seconds"])
    if patience > SLOW_SECONDS:
        raise Skipped(f"limits.ping_seconds is {patience:g}")
    async with lab.connect() as peer:
        begin = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * patience + SLACK_SECONDS):
                await peer.ws.next_ping()
        seconds = time.monotonic() - begin
        expect(seconds < 2 * patience, f"a ping within {patience:g} s", f"{seconds:.1f} s")
        await peer.barrier()
        lab.note(f"after {time.monotonic() - begin:.1f} s of {patience:g}")


@case("§1", "a peer that answers no ping is gone within twice ping_seconds", slow=True)
async def dead_peer(lab: Lab) -> None:
    patience = float(lab.limits["ping_seconds"])
    if patience > SLOW_SECONDS:
        raise Skipped(f"limits.ping_seconds is {patience:g}")
    async with lab.connect() as peer:
        peer.ws.transport.pause_reading()
        await asyncio.sleep(2 * patience + SLACK_SECONDS / 2)
        peer.ws.transport.resume_reading()
        await peer.until(lambda: peer.closed, "a connection that was closed", SLACK_SECONDS / 2)
