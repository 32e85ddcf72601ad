"""§2: ids rise, leave gaps as they like, and are used up once, even by a refusal."""

from __future__ import annotations

from plait.conformance.cases import case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer

HIGHEST = 2**32 - 1


async def _refused(peer: Peer, stream: Heard, code: str) -> None:
    await peer.until(lambda: stream.rejections, f"`rejected {code}`")
    seen = stream.rejections[-1]["error"]["code"]
    expect(seen == code, f"`rejected {code}`", seen)


@case("§2", "ids may leave gaps, up to the highest there is")
async def gaps(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        streams = [
            peer.open(method, lab.short(method), id=id) for id in (5, 1000, HIGHEST - 1, HIGHEST)
        ]
        for stream in streams:
            peer.end(stream)
        await peer.ended(*streams)
        expect(all(s.ended == "done" for s in streams), "all done", [str(s) for s in streams])


@case("§6", "an id at or below the highest used: rejected id_reused, with highest_id")
async def reuse(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        first = peer.open(method, lab.short(method), id=10)
        peer.end(first)
        await peer.ended(first)
        for id in (10, 9, 1):
            again = peer.open(method, lab.short(method), id=id)
            await _refused(peer, again, "id_reused")
            highest = again.rejections[-1]["error"]["data"]["highest_id"]
            expect(highest == 10, "data.highest_id 10", highest, "§6")


@case("R10", "an old id while another stream lives: rejected, the live ones go on", needs=["chat"])
async def reuse_of_a_live_id(lab: Lab) -> None:
    async with lab.connect() as peer:
        live = await lab.streaming(peer, window=4, acks=False)
        peer.open("chat", lab.chat(), id=live.id)
        await _refused(peer, live, "id_reused")
        before = len(live.items)
        live.acks = True
        peer.ack(live)
        await peer.items(live, before + 1)
        lab.must_run(live)
        peer.cancel(live)
        await lab.cancelled(peer, live)


@case("§2", "a rejected open uses up its id")
async def used_up_by_a_refusal(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        refused = peer.open(method, lab.short(method) | {"model": "no such model"}, id=7)
        await _refused(peer, refused, "model_not_found")
        await _refused_again(peer, method, lab, 7)
        await lab.works(peer)


async def _refused_again(peer: Peer, method: str, lab: Lab, id: int) -> None:
    again = peer.open(method, lab.short(method), id=id)
    await peer.until(lambda: len(again.rejections) >= 2, "`rejected id_reused`")
    code = again.rejections[-1]["error"]["code"]
    expect(code == "id_reused", "`rejected id_reused`", code)


@case("§6", "an unusable id (0, 2³², -1, 1.5, text) names nobody: close 4400")
async def unusable_ids(lab: Lab) -> None:
    for id in ("0", "4294967296", "-1", "1.5", '"one"', "null", "true"):
        async with lab.connect() as peer:
            peer.say(f'{{"type": "open", "id": {id}, "method": "chat", "params": {{}}}}')
            await peer.closes(4400, f"id {id}")
