"""§3 synthesize: audio and marks, text that comes by input, and what is refused."""

from __future__ import annotations

from plait.conformance.cases import case, expect
from plait.conformance.lab import Lab

TEXT = "Hello there. The keeper waved."
NEEDS = ("synthesize",)


@case("§3 synthesize", "the frames joined are the speech; offsets are dense", needs=NEEDS)
async def speech(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("synthesize", {"text": TEXT})
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        expect(len(stream.audio) > 0, "some audio", len(stream.audio))
        form = (stream.started or {})["format"]
        samples = len(stream.audio) // 2
        audio_ms = (stream.terminal or {})["usage"]["audio_ms"]
        spoken = 1000 * samples / form["sample_rate"]
        expect(abs(spoken - audio_ms) <= 2, f"usage.audio_ms {spoken:.0f}", audio_ms, "§2")
        contents = peer.checker.streams[stream.id].contents
        expect(contents.last_of_sentence, "flag 1 on the last frame", stream, "§4")


@case("§3 synthesize", "the marks' texts joined are the input", needs=NEEDS)
async def marks(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("synthesize", {"text": TEXT, "marks": True})
        await peer.ended(stream)
        shown = [item.data["mark"] for item in stream.items if "mark" in item.data]
        joined = "".join(mark["text"] for mark in shown)
        expect(joined == TEXT, f"{TEXT!r}", repr(joined))
        expect("mark" in stream.items[0].data, "a mark before the first audio", stream.items[:1])
        starts = [mark["start"] for mark in shown]
        expect(starts == sorted(starts), "times that never decrease", starts)


@case("§3 synthesize", "text by input, in pieces: spoken, all of it, after end", needs=NEEDS)
async def by_input(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("synthesize", {"marks": True})
        await peer.answered(stream)
        window = stream.accepted[0].get("window_bytes")
        expect(isinstance(window, int), "accepted.window_bytes", stream.accepted[0], "§2")
        half = len(TEXT) // 2
        for piece in (TEXT[:half], TEXT[half:]):
            peer.say({"type": "input", "id": stream.id, "text": piece})
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        joined = "".join(i.data["mark"]["text"] for i in stream.items if "mark" in i.data)
        expect(joined == TEXT, f"marks of {TEXT!r}", repr(joined))


@case("§3 synthesize", "a text with nothing to speak: error empty_text", needs=NEEDS)
async def empty_text(lab: Lab) -> None:
    async with lab.connect() as peer:
        for text in ("", "   ", "\n", "..."):
            stream = peer.open("synthesize", {"text": text})
            await lab.fails(peer, stream, "empty_text")


@case("§3 synthesize", "input with nothing to speak: done with audio_ms 0", needs=NEEDS)
async def empty_input(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("synthesize", {})
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        expect(not (stream.terminal or {})["usage"].get("audio_ms"), "audio_ms 0", stream.terminal)


@case("§3 synthesize", "an unknown voice: rejected voice_not_found, with the voices", needs=NEEDS)
async def unknown_voice(lab: Lab) -> None:
    async with lab.connect() as peer:
        for voice in ("no_such_voice", "a:b:c", ""):
            await lab.refuses(peer, "synthesize", {"text": TEXT, "voice": voice}, "voice_not_found")


@case("§3 synthesize", "params out of bounds: rejected, naming the field", needs=NEEDS)
async def bad_params(lab: Lab) -> None:
    bad = (("speed", 0.4), ("speed", 2.1), ("format", "mp3"), ("marks", "yes"), ("text", 5))
    async with lab.connect() as peer:
        for name, value in (*bad, ("language", "tlh")):
            params = {"text": TEXT, name: value}
            await lab.refuses(peer, "synthesize", params, "invalid_request", name)


@case("§3 synthesize", "speed 2 gives about half the audio of speed 1", needs=NEEDS)
async def speed(lab: Lab) -> None:
    async with lab.connect() as peer:
        streams = [peer.open("synthesize", {"text": TEXT, "speed": speed}) for speed in (1, 2)]
        await peer.ended(*streams)
        slow, fast = (len(stream.audio) for stream in streams)
        expect(0.3 * slow < fast < 0.8 * slow, "about half", f"{fast} of {slow} bytes")
