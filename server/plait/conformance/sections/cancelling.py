"""§2 G2 … G6: a cancel in every state of a stream, each method in turn."""

from __future__ import annotations

import time

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer

YIELD_SECONDS = 1.5  # a paused stream yields its slot after 1 s


async def _stop(lab: Lab, peer: Peer, stream: Heard) -> None:
    begin = time.monotonic()
    peer.cancel(stream)
    await lab.cancelled(peer, stream)
    lab.outside_ms.append(1000 * (time.monotonic() - begin))


async def _paused(lab: Lab, peer: Peer, method: str, window: int = 1) -> Heard:
    """A long stream at its window, so that no engine is too fast for the cancel."""
    stream = await lab.streaming(peer, method, window=window, acks=False)
    await peer.items(stream, window)
    lab.must_run(stream)
    return stream


@case("§2 G2", "a cancel of a streaming chat: released, or honestly not", needs=["chat"])
async def streaming_chat(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await lab.streaming(peer)
        await _stop(lab, peer, stream)


@case("§2 G2", "a cancel at a random item, five times", needs=["chat"])
async def at_a_random_item(lab: Lab) -> None:
    async with lab.connect() as peer:
        for _ in range(5):
            stream = await lab.streaming(peer)
            await peer.items(stream, lab.random.randint(1, 6))
            lab.must_run(stream)
            await _stop(lab, peer, stream)


@case("R14", "a cancel at the window, paused", needs=["chat"])
async def paused_chat(lab: Lab) -> None:
    async with lab.connect() as peer:
        await _stop(lab, peer, await _paused(lab, peer, "chat"))


@case("R14", "a cancel after a pause so long that the slot was yielded", needs=["chat"])
async def yielded_chat(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _paused(lab, peer, "chat", window=2)
        await lab.quiet(peer, stream, YIELD_SECONDS)
        await _stop(lab, peer, stream)


@case("§2 G2", "a cancel of a synthesis", needs=["synthesize"])
async def synthesis(lab: Lab) -> None:
    async with lab.connect() as peer:
        await _stop(lab, peer, await _paused(lab, peer, "synthesize"))


@case("§2 G2", "a cancel of an embedding", needs=["embed"])
async def embedding(lab: Lab) -> None:
    async with lab.connect() as peer:
        await _stop(lab, peer, await _paused(lab, peer, "embed"))


@case("§2 G2", "a cancel of a transcription before, during and after its audio")
async def transcription(lab: Lab) -> None:
    if "transcribe" not in lab.methods:
        raise Skipped("the server does not offer transcribe")
    async with lab.connect() as peer:
        for seconds in (0.0, 0.5, 2.0):
            stream = peer.open("transcribe", lab.long("transcribe"))
            await peer.started(stream)
            lab.must_run(stream)
            if seconds:
                peer.say(lab.audio(stream, lab.hum(seconds)))
            await _stop(lab, peer, stream)


@case("R11", "end, then cancel, in one segment: cancelled")
async def after_end(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in ("synthesize", "embed"):
            if method not in lab.methods:
                continue
            stream = peer.open(method, {})
            await peer.started(stream)
            key = "text" if method == "synthesize" else "texts"
            given = {"type": "input", "id": stream.id, key: lab.long(method)[key]}
            ends = {"type": "end", "id": stream.id}
            peer.say(given, ends, {"type": "cancel", "id": stream.id})
            await lab.cancelled(peer, stream)
            return
    raise Skipped("neither synthesize nor embed is offered")


@case("R11", "cancel, then end: cancelled")
async def before_end(lab: Lab) -> None:
    if "transcribe" not in lab.methods:
        raise Skipped("the server does not offer transcribe")
    async with lab.connect() as peer:
        stream = peer.open("transcribe", lab.long("transcribe"))
        await peer.started(stream)
        peer.say({"type": "cancel", "id": stream.id}, {"type": "end", "id": stream.id})
        await lab.cancelled(peer, stream)


@case("R6", "two cancels, in one segment and one by one: one cancelled")
async def twice(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        stream = await _paused(lab, peer, method) if method != "transcribe" else None
        if stream is None:
            raise Skipped("only transcriptions are offered")
        peer.cancel(stream, stream)
        await lab.cancelled(peer, stream)
        peer.cancel(stream)
        await peer.barrier()
        expect(stream.ended == "cancelled", "one `cancelled`", stream)


@case("§2 G6", "a cancel of a finished id is ignored")
async def after_done(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        stream = peer.open(method, lab.short(method))
        peer.end(stream)
        await peer.ended(stream)
        peer.cancel(stream)
        await peer.barrier()
        await lab.works(peer)


@case("§8", "a cancel of an id never opened, or rejected, is ignored")
async def of_nobody(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        peer.say({"type": "cancel", "id": 4000}, {"type": "cancel", "id": 1, "heard_ms": 10})
        refused = peer.open(method, lab.short(method) | {"model": "no such model"}, id=3)
        await peer.ended(refused)
        peer.cancel(refused)
        await peer.barrier()
        expect(refused.ended == "rejected", "`rejected` and nothing more", refused)
        await lab.works(peer)


@case("§2 G4", "a cancel with a full window under way: no item after it was read", needs=["chat"])
async def no_item_after_it(lab: Lab) -> None:
    async with lab.connect() as peer:
        for _ in range(5):
            stream = await lab.streaming(peer, window=256, acks=False)
            peer.cancel(stream)
            await lab.cancelled(peer, stream)
            await peer.barrier()


@case("§2", "heard_ms: cancelled.heard is what was spoken until then", needs=["synthesize"])
async def heard(lab: Lab) -> None:
    async with lab.connect() as peer:
        for heard_ms in (0, 700, 1e9):
            stream = await _paused(lab, peer, "synthesize", window=6)
            peer.cancel(stream, heard_ms=heard_ms)
            terminal = await lab.cancelled(peer, stream)
            said = terminal.get("heard")
            expect(isinstance(said, str), "`heard`, as heard_ms was given", terminal, "§3")
            spoken = lab.long("synthesize")["text"]
            expect(spoken.startswith(str(said).rstrip()), "the beginning of the text", said, "§3")
            expect(heard_ms or not said, "nothing heard at 0 ms", said, "§3")


@case("§2", "without heard_ms there is no heard", needs=["synthesize"])
async def not_heard(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _paused(lab, peer, "synthesize")
        peer.cancel(stream)
        terminal = await lab.cancelled(peer, stream)
        expect(terminal.get("heard") is None, "no `heard`", terminal)
