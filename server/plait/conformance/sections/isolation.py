"""What happens to one stream or connection touches no other; order within and between streams."""

from __future__ import annotations

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import SHORT_TOKENS, Lab
from plait.conformance.peer import Peer


async def _watched(lab: Lab, peer: Peer) -> Heard:
    return await lab.streaming(peer, lab.itemised, window=2, acks=False)


async def _goes_on(lab: Lab, peer: Peer, stream: Heard) -> None:
    before = len(stream.items)
    peer.ack(stream)
    await peer.items(stream, before + 1)
    lab.must_run(stream)


@case("§2", "a connection that breaks disturbs no other connection's stream")
async def broken_connections(lab: Lab) -> None:
    async with lab.connect() as bystander:
        stream = await _watched(lab, bystander)
        for how in ("not json", b"\x01", '{"type": "nope", "id": 1}', "reset"):
            async with lab.connect() as peer:
                peer.open(lab.itemised, lab.long(lab.itemised))
                if how == "reset":
                    peer.reset()
                else:
                    peer.say(how)
                await peer.until(lambda: peer.closed, "its own close")
            await bystander.barrier()
        await _goes_on(lab, bystander, stream)


@case("§2", "ids are each connection's own: equal ids do not meet")
async def equal_ids(lab: Lab) -> None:
    async with lab.connect() as one, lab.connect() as other:
        streams = [await _watched(lab, peer) for peer in (one, other)]
        expect(streams[0].id == streams[1].id, "equal ids", [s.id for s in streams])
        one.cancel(streams[0])
        await one.ended(streams[0])
        await other.barrier()
        await _goes_on(lab, other, streams[1])


@case("§5", "a stream at its window pauses alone: another of the connection goes on")
async def paused_alone(lab: Lab) -> None:
    if int(lab.limits["max_streams"]) < 2:
        raise Skipped("one stream a connection")
    async with lab.connect() as peer:
        paused = await _watched(lab, peer)
        method = lab.any_method
        other = peer.open(method, lab.short(method))
        peer.end(other)
        await peer.ended(other)
        expect(other.ended == "done", "done, beside a paused stream", other)
        await _goes_on(lab, peer, paused)


@case("§2", "one cancel of several streams stops that one alone", needs=["chat"])
async def one_of_several(lab: Lab) -> None:
    async with lab.connect() as peer:
        count = min(3, int(lab.limits["max_streams"]))
        streams = [
            peer.open("chat", lab.chat(SHORT_TOKENS), window=1, acks=False) for _ in range(count)
        ]
        await peer.items(streams[0], 1)
        victim = streams[-1]
        peer.cancel(victim)
        for stream in streams[:-1]:
            stream.acks = True
            if stream.items:
                peer.ack(stream)
        await peer.ended(*streams)
        expect(
            all(s.ended == "done" for s in streams[:-1]), "the others done", [*map(str, streams)]
        )


@case("§2 G8", "a connection left with streams gives its place to the next")
async def left_behind(lab: Lab) -> None:
    for _ in range(3):
        async with lab.connect() as peer:
            method = lab.itemised
            count = min(4, int(lab.limits["max_streams"]))
            streams = [peer.open(method, lab.long(method)) for _ in range(count)]
            await peer.items(streams[0], 1)
            await peer.drop()
    async with lab.connect() as peer:
        await lab.works(peer)


@case("§5", "priority batch is served as well")
async def batch(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        streams = [
            peer.open(method, lab.short(method), priority=priority)
            for priority in ("batch", "interactive")
        ]
        for stream in streams:
            peer.end(stream)
        await peer.ended(*streams)
        expect(all(s.ended == "done" for s in streams), "both done", [*map(str, streams)])
