"""§2 G7, R1, R4, R5, S2: streams that wait, and cancels of them."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from plait.conformance.cases import Broken, Skipped, case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer

MOST_FILLERS = 40
MOST_QUEUED = 128
CONNECTIONS_OF_SLOTS = 3  # so many more than the queue takes, for streams that get a slot


def expect_nothing_done(stream: Heard) -> None:
    """What G7 promises of a cancel while pending."""
    terminal = stream.terminal or {}
    expect(stream.ended == "cancelled", "`cancelled`", stream)
    expect(stream.started is None, "no `started`", stream.started)
    expect(terminal.get("by") == "client", "by client", terminal)
    expect(terminal.get("released") is True, "released true", terminal)
    expect(terminal.get("seq") == 0, "seq 0", terminal)


@case("R1", "open and cancel in one segment: accepted, cancelled, no started")
async def same_segment(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in lab.methods:
            opening = peer.opening(method, lab.long(method))
            peer.say(opening, {"type": "cancel", "id": opening["id"]})
            stream = peer.streams[opening["id"]]
            await peer.ended(stream)
            expect(stream.accepted, "`accepted` first", stream)
            expect_nothing_done(stream)


@case("R1", "twenty pairs of open and cancel in one segment: twenty terminals")
async def same_segment_many(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        pairs = []
        count = min(20, int(lab.limits["max_streams"]))
        for _ in range(count):
            opening = peer.opening(method, lab.long(method))
            pairs += [opening, {"type": "cancel", "id": opening["id"]}]
        peer.say(*pairs)
        streams = list(peer.streams.values())
        await peer.ended(*streams)
        for stream in streams:
            expect_nothing_done(stream)


async def _fill(lab: Lab, peer: Peer) -> list[Heard]:
    """Long chats until some wait for a slot; returns those that wait, first come first."""
    count = min(int(lab.limits["max_streams"]), int(lab.limits["max_queued"]), MOST_FILLERS)
    streams = [peer.open("chat", lab.chat(), window=256) for _ in range(count)]
    for stream in streams:
        await peer.until(partial(_settled, stream), f"stream {stream.id} starts or waits")
    waiting = [stream for stream in streams if _queued(stream)]
    if len(waiting) < 2:
        raise Skipped(f"{count} streams do not fill the slots")
    return waiting


def _queued(stream: Heard) -> bool:
    last = stream.accepted[-1] if stream.accepted else {}
    return not stream.started and not stream.ended and last.get("phase") == "queued"


def _settled(stream: Heard) -> bool:
    return bool(stream.started or stream.ended) or _queued(stream)


@case("R4", "a cancel while queued: cancelled at once, seq 0, no started", needs=["chat"])
async def queued(lab: Lab) -> None:
    async with lab.connect() as peer:
        waiting = await _fill(lab, peer)
        last = waiting[-1]
        peer.cancel(last)
        await peer.ended(last)
        if last.started:
            raise Skipped("a slot came free before the cancel")
        expect_nothing_done(last)


@case("R4", "cancels of those that wait move the queue up", needs=["chat"])
async def queue_moves_up(lab: Lab) -> None:
    async with lab.connect() as peer:
        first, *others = await _fill(lab, peer)
        last = others[-1]
        before = last.accepted[-1]["position"]
        peer.cancel(first, *others[:-1])
        await peer.until(
            lambda: last.started or last.ended or last.accepted[-1]["position"] < before,
            f"a position below {before}, or a start",
        )
        expect(last.ended in ("", "done"), "the last one goes on", last)


@case("§6", "more than max_queued that wait: rejected queue_full, no other harmed", needs=["chat"])
async def queue_full(lab: Lab) -> None:
    each, queued = int(lab.limits["max_streams"]), int(lab.limits["max_queued"])
    if queued > MOST_QUEUED:
        raise Skipped(f"limits.max_queued is {queued}")
    async with contextlib.AsyncExitStack() as peers:
        streams: list[Heard] = []
        for _ in range(queued // each + CONNECTIONS_OF_SLOTS):
            peer = await peers.enter_async_context(lab.connect())
            opened = [peer.open("chat", lab.chat(), window=256) for _ in range(each)]
            await peer.answered(*opened)
            streams += opened
            full = [stream for stream in opened if stream.error.get("code") == "queue_full"]
            if full:
                break
        else:
            raise Skipped(f"{len(streams)} streams do not fill the queue")
        expect(full[0].ended == "rejected", "`rejected queue_full`", full[0])
        broken = [s for s in streams if s.ended and s.error.get("code") not in (None, "queue_full")]
        expect(not broken, "no other error", [*map(str, broken)])
        lab.note(f"after {len(streams) - len(full)} streams")


@case("§2", "accepted repeats at most once a second", needs=["chat"])
async def accepted_is_rare(lab: Lab) -> None:
    async with lab.connect() as peer:
        waiting = await _fill(lab, peer)
        last = waiting[-1]
        begin, before = asyncio.get_running_loop().time(), len(last.accepted)
        while (some := [s for s in waiting[:-1] if not s.ended]) and not last.started:
            peer.cancel(some[0])
            await peer.ended(some[0])
        seconds = asyncio.get_running_loop().time() - begin
        came = len(last.accepted) - before
        expect(came <= seconds + 2.5, f"at most one a second in {seconds:.1f} s", came)


@case("R5", "a cancel during the prefill of a long prompt stops as in streaming", needs=["chat"])
async def prefill(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("chat", lab.long_prompt())
        await peer.started(stream)
        if stream.error.get("code") == "context_overflow":
            raise Skipped("the long prompt does not fit")
        lab.must_run(stream)
        await asyncio.sleep(lab.random.uniform(0, 0.05))
        peer.cancel(stream)
        terminal = await lab.cancelled(peer, stream)
        if terminal["seq"]:
            lab.note("its first token was there already")


@case("R8", "the socket is lost while streams are pending: the next client is served")
async def lost_while_pending(lab: Lab) -> None:
    method = lab.any_method
    async with lab.connect() as peer:
        streams = [peer.open(method, lab.long(method)) for _ in range(3)]
        await peer.until(lambda: all(s.answered for s in streams), "three answers")
        peer.reset()
    async with lab.connect() as peer:
        await lab.works(peer)


@case("§2 G7", "a cancel while preparing: released, and the engine computed nothing")
async def preparing(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        stream = peer.open(method, lab.long(method))
        await peer.answered(stream)
        peer.cancel(stream)
        await peer.ended(stream)
        if stream.started or stream.ended == "done":
            raise Skipped("it had started before the cancel")
        expect_nothing_done(stream)
        usage = (stream.terminal or {})["usage"]
        if usage.get("completion_tokens"):
            raise Broken("no completion_tokens of a stream that never started", str(usage))
