"""§2 G1, G5: how streams end by themselves, and what their terminals say."""

from __future__ import annotations

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.lab import SHORT_TOKENS, Lab

USAGE = {
    "chat": ("prompt_tokens", "completion_tokens"),
    "transcribe": ("audio_ms",),
    "synthesize": ("characters", "audio_ms"),
    "embed": ("texts", "tokens"),
}


@case("S1", "a stream of each method: accepted, started, items, done")
async def each_method(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in lab.methods:
            stream = peer.open(method, lab.short(method))
            if method == "transcribe":
                await peer.started(stream)
                peer.say(lab.audio(stream, lab.hum(0.5)))
                peer.end(stream)
            await peer.ended(stream)
            expect(stream.ended == "done", f"{method} is done", f"{stream}: {stream.error}")
            usage = (stream.terminal or {})["usage"]
            known = set(USAGE[method])
            known |= {"cached_tokens", "reseeded", "truncated", "failed"}
            expect(set(usage) <= known, f"usage of {method}: {sorted(known)}", usage, "§2")
            expect(any(usage.values()), f"a usage of {method} that counts", usage, "§2 G5")


@case("§3 chat", "max_tokens is an upper bound, and finish_reason length says so", needs=["chat"])
async def length(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("chat", lab.chat(2))
        await peer.ended(stream)
        terminal, started = stream.terminal or {}, stream.started or {}
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        expect(started["max_tokens"] <= 2, "started.max_tokens at most 2", started)
        counted = terminal["usage"].get("completion_tokens", 0)
        expect(counted <= 2, "at most 2 completion_tokens", counted)
        if terminal["finish_reason"] == "stop":
            raise Skipped("the answer was shorter")
        expect(terminal["finish_reason"] == "length", "finish_reason length", terminal)


@case("§3 chat", "max_tokens beyond the server's cap is capped, not refused", needs=["chat"])
async def capped(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("chat", lab.chat(2**31 - 1))
        await peer.started(stream)
        lab.must_run(stream)
        cap = (stream.started or {})["max_tokens"]
        expect(cap < 2**31 - 1, "an effective bound", cap)
        lab.note(f"started.max_tokens {cap}")


@case("§2 G5", "usage and timing are on done, cancelled and error alike")
async def on_all_three(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        done = peer.open(method, lab.short(method))
        peer.end(done)
        cancelled = peer.open(method, lab.long(method), window=1, acks=False)
        broken = peer.open(method, lab.long(method), window=1, acks=False)
        peer.cancel(cancelled)
        peer.say({"type": "ack", "id": broken.id, "seq": 5000})
        await peer.ended(done, cancelled, broken)
        ends = [stream.ended for stream in (done, cancelled, broken)]
        expect(ends == ["done", "cancelled", "error"], "done, cancelled and error", ends)


@case("§2 G1", "ten streams at once: ten terminals, each with its own seq", needs=["chat"])
async def many(lab: Lab) -> None:
    async with lab.connect() as peer:
        count = min(10, int(lab.limits["max_streams"]))
        streams = [peer.open("chat", lab.chat(SHORT_TOKENS)) for _ in range(count)]
        await peer.ended(*streams)
        expect(all(s.ended == "done" for s in streams), "all done", [str(s) for s in streams])


@case(
    "§3 chat",
    "no finish_reason but stop, length and tool_calls; the text is not empty",
    needs=["chat"],
)
async def text(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("chat", lab.chat(SHORT_TOKENS))
        await peer.ended(stream)
        expect(stream.ended == "done", "done", stream)
        expect(stream.text or stream.seq == 0, "texts in the items", stream)


@case("§2", "a refused stream has no terminal, and its error names the field")
async def refusal(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        stream = peer.open(method, lab.short(method), window=257)
        await peer.ended(stream)
        expect(stream.ended == "rejected", "`rejected`", stream)
        expect(stream.error.get("param") == "window", "param window", stream.error, "§6")
        await peer.barrier()
        expect(stream.terminal is None, "no terminal after `rejected`", stream.terminal)
