"""§5: windows and acknowledgements. The checker sees that no window is exceeded, in all cases."""

from __future__ import annotations

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer

QUIET_SECONDS = 0.3


async def _at_window(lab: Lab, peer: Peer, window: int) -> Heard:
    """A stream that has sent `window` items and waits for acks."""
    stream = await lab.streaming(peer, lab.itemised, window=window, acks=False)
    await peer.items(stream, window)
    lab.must_run(stream)
    return stream


async def _stays(lab: Lab, peer: Peer, stream: Heard, count: int) -> None:
    await lab.quiet(peer, stream, QUIET_SECONDS)
    expect(len(stream.items) == count, f"{count} items and no more", len(stream.items))


@case("§5", "window 1: one item at a time, each after its ack")
async def one_by_one(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _at_window(lab, peer, 1)
        for count in range(1, 4):
            await _stays(lab, peer, stream, count)
            peer.ack(stream)
            await peer.items(stream, count + 1)
            lab.must_run(stream)


async def _at_most(lab: Lab, peer: Peer, stream: Heard, count: int) -> None:
    """An engine rests until half of the window is free, so fewer is right, too."""
    await lab.quiet(peer, stream, QUIET_SECONDS)
    expect(len(stream.items) <= count, f"{count} items at most", len(stream.items))


async def _goes_on(lab: Lab, peer: Peer, stream: Heard, count: int = 1) -> None:
    """Each item acknowledged as it comes, the stream is never at rest."""
    before = len(stream.items)
    stream.acks = True
    peer.ack(stream)
    await peer.items(stream, before + count)
    stream.acks = False
    lab.must_run(stream)


@case("§5", "window n: n items, and n beyond an ack at most")
async def some_at_a_time(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _at_window(lab, peer, 5)
        await _stays(lab, peer, stream, 5)
        peer.ack(stream, 3)
        await _at_most(lab, peer, stream, 8)
        await _goes_on(lab, peer, stream)


@case("§5", "repeated and lower acks do no harm and give nothing")
async def repeated_acks(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _at_window(lab, peer, 4)
        peer.ack(stream, 2)
        for seq in (2, 1, 0, 2):
            peer.ack(stream, seq)
        peer.ack(stream, 1, window=200)
        await _at_most(lab, peer, stream, 6)
        await _goes_on(lab, peer, stream)


@case("§5", "ack 0 before the first item is legal, and may set the window")
async def ack_before_items(lab: Lab) -> None:
    async with lab.connect() as peer:
        opening = peer.opening(lab.itemised, lab.long(lab.itemised), window=1, acks=False)
        peer.say(opening, {"type": "ack", "id": opening["id"], "seq": 0, "window": 3})
        stream = peer.streams[opening["id"]]
        await peer.items(stream, 3)
        lab.must_run(stream)
        await _stays(lab, peer, stream, 3)


@case("§5", "a larger window in an ack extends the credit, without a new seq")
async def larger_window(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _at_window(lab, peer, 2)
        await _stays(lab, peer, stream, 2)
        peer.ack(stream, 0, window=64)
        await peer.items(stream, 3)
        lab.must_run(stream)


@case("§5", "a smaller window applies from then on and never retracts")
async def smaller_window(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _at_window(lab, peer, 6)
        peer.ack(stream, 4)
        peer.ack(stream, 4, window=1)
        await _at_most(lab, peer, stream, 10)
        await _goes_on(lab, peer, stream, 10 - len(stream.items) + 2)
        await lab.quiet(peer, stream, QUIET_SECONDS)
        expect(stream.seq > 10, "an item after each ack", stream.seq)


@case("§5", "an ack beyond what was sent: error invalid_request, param seq")
async def ack_beyond(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _at_window(lab, peer, 2)
        peer.ack(stream, 3)
        await lab.fails(peer, stream, "invalid_request", "seq")


@case("§5", "window 0: items need no acks, and none are counted")
async def window_zero(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.itemised
        stream = peer.open(method, lab.long(method), window=0, acks=False)
        await peer.items(stream, 5)
        lab.must_run(stream)
        peer.ack(stream, 1)
        await peer.barrier()
        lab.must_run(stream)


@case("§2", "the default window is limits.window")
async def default_window(lab: Lab) -> None:
    window = int(lab.limits["window"])
    if window == 0 or window > 100:
        raise Skipped(f"limits.window is {window}")
    async with lab.connect() as peer:
        method = lab.itemised
        stream = peer.open(method, lab.long(method), acks=False)
        await peer.until(lambda: len(stream.items) >= min(window, 12) or stream.ended, "some items")
        if stream.ended == "done":
            raise Skipped("the answer ended within the window")
        if len(stream.items) >= window:
            await _stays(lab, peer, stream, window)


@case("§5", "terminals need no credit: done comes at the window, the items all there")
async def done_needs_no_credit(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.itemised
        stream = peer.open(method, lab.short(method), window=256, acks=False)
        await peer.ended(stream)
        expect(stream.ended == "done", "done, without any ack", f"{stream}: {stream.error}")


@case("§5", "bad windows: 257 and -1 at open, 0 and 257 in an ack, are invalid_request")
async def bad_windows(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.itemised
        for window in (257, -1):
            await lab.refuses(
                peer, method, lab.short(method), "invalid_request", "window", window=window
            )
        for window in (0, 257):
            stream = await _at_window(lab, peer, 1)
            peer.ack(stream, 1, window=window)
            await lab.fails(peer, stream, "invalid_request", "window")


@case("R9", "an ack after the terminal is ignored")
async def late_ack(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        stream = peer.open(method, lab.short(method))
        peer.end(stream)
        await peer.ended(stream)
        for seq in (0, stream.seq, stream.seq + 100):
            peer.ack(stream, seq)
        await peer.barrier()
        await lab.works(peer)


@case("§2 G9", "a paused stream goes on where it was, after a pause beyond 1 s", needs=["chat"])
async def resumes(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _at_window(lab, peer, 3)
        await lab.quiet(peer, stream, 1.5)
        stream.acks = True
        peer.ack(stream)
        await peer.items(stream, 8)
        lab.must_run(stream)
        peer.cancel(stream)
        await peer.ended(stream)
        paused = (stream.terminal or {})["timing"]["paused_ms"]
        lab.note(f"paused_ms {paused:g}")
