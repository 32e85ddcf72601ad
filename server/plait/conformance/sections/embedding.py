"""§3 embed: every text answered, in order, as rows or JSON, or by an error of its own."""

from __future__ import annotations

from typing import Any

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard
from plait.conformance.lab import Lab
from plait.conformance.peer import Peer

NEEDS = ("embed",)
TOO_LONG = "word " * 20_000


async def _done(lab: Lab, peer: Peer, **params: Any) -> Heard:
    stream = peer.open("embed", params)
    await peer.ended(stream)
    expect(stream.ended == "done", f"done of {str(params)[:80]}", f"{stream}: {stream.error}")
    return stream


@case("§3 embed", "every text is answered in order, as rows and as JSON", needs=NEEDS)
async def rows_and_json(lab: Lab) -> None:
    texts = ["one", "", "three words here", "four"]
    async with lab.connect() as peer:
        for encoding in ("f32", "json"):
            stream = await _done(lab, peer, texts=texts, encoding=encoding)
            counted = peer.checker.streams[stream.id].contents.rows
            expect(counted == len(texts), f"{len(texts)} answers as {encoding}", counted)
            usage = (stream.terminal or {})["usage"]
            expect(usage.get("texts") == len(texts), f"usage.texts {len(texts)}", usage)


@case("§3 embed", "no texts at all are done with texts 0", needs=NEEDS)
async def no_texts(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _done(lab, peer, texts=[])
        expect(not (stream.terminal or {})["usage"].get("texts"), "texts 0", stream.terminal)
        expect(stream.seq == 0, "no items", stream)


@case("§3 embed", "a text too long has an item of its own and ends nothing else", needs=NEEDS)
async def too_long(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _done(lab, peer, texts=["one", TOO_LONG, "three"])
        errors = [item.data["error"] for item in stream.items if "error" in item.data]
        if not errors:
            raise Skipped("20,000 words are not too long for it")
        expect(errors[0]["code"] == "input_too_long", "input_too_long", errors[0])
        expect(errors[0]["data"]["index"] == 1, "its index", errors[0])
        failed = (stream.terminal or {})["usage"].get("failed")
        expect(failed == 1, "usage.failed 1", failed)
        expect(peer.checker.streams[stream.id].contents.rows == 3, "three answers", stream)


@case("§3 embed", "with truncate it is cut, and done says which", needs=NEEDS)
async def truncated(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = await _done(lab, peer, texts=["one", TOO_LONG], truncate=True)
        terminal = stream.terminal or {}
        if not terminal["usage"].get("truncated"):
            raise Skipped("20,000 words are not too long for it")
        expect(terminal.get("truncated") == [1], "done.truncated [1]", terminal)
        flags = [item.frame.flags & 4 for item in stream.items if item.frame]
        expect(any(flags), "flag 4 on the frame of cut rows", flags, "§4")


@case("§3 embed", "texts by input: indexes go on counting", needs=NEEDS)
async def by_input(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("embed", {})
        await peer.answered(stream)
        for texts in (["one", "two"], [], ["three"]):
            peer.say({"type": "input", "id": stream.id, "texts": texts})
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        counted = peer.checker.streams[stream.id].contents.rows
        expect(counted == 3, "three answers", counted)


@case("§3 embed", "params out of bounds: rejected, naming the field", needs=NEEDS)
async def bad_params(lab: Lab) -> None:
    bad = (("texts", "one"), ("texts", [1]), ("encoding", "f64"), ("normalize", "yes"))
    async with lab.connect() as peer:
        for name, value in (*bad, ("truncate", 2)):
            params = {"texts": ["one"], name: value}
            await lab.refuses(peer, "embed", params, "invalid_request", name)
