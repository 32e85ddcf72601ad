"""§3 chat: params and their bounds, and what answers look like."""

from __future__ import annotations

import json
from typing import Any

from plait.conformance.cases import Broken, Skipped, case, expect
from plait.conformance.lab import SHORT_TOKENS, Lab

BAD_PARAMS: tuple[tuple[str, Any], ...] = (
    ("messages", []),
    ("messages", "hello"),
    ("messages", [{"content": "no role"}]),
    ("messages", [{"role": "user", "content": [{"type": "text", "text": "parts"}]}]),
    ("messages", [{"role": "", "content": "x"}]),
    ("max_tokens", 0),
    ("max_tokens", 1.5),
    ("max_tokens", "8"),
    ("temperature", -0.1),
    ("temperature", 10.5),
    ("temperature", "warm"),
    ("temperature", None),
    ("top_p", 0),
    ("top_p", 1.01),
    ("top_k", -1),
    ("top_k", 2**31),
    ("min_p", 1.5),
    ("repetition_penalty", 0),
    ("repetition_penalty", 11),
    ("seed", -1),
    ("seed", 2**32),
    ("stop", "text"),
    ("stop", [""]),
    ("stop", ["x"] * 17),
    ("stop", ["x" * 4097]),
    ("logprobs", 21),
    ("logprobs", -1),
    ("tools", [{"type": "function", "function": {"name": "two words"}}]),
    ("tools", [{"type": "function", "function": {"name": "x"}}] * 2),
    ("tool_choice", "always"),
    ("response_format", {"type": "xml"}),
    ("model", 5),
)


@case("§3 chat", "params out of bounds: rejected invalid_request, naming the field", needs=["chat"])
async def bad_params(lab: Lab) -> None:
    async with lab.connect() as peer:
        for name, value in BAD_PARAMS:
            params = lab.chat(SHORT_TOKENS) | {name: value}
            stream = peer.open("chat", params)
            await peer.ended(stream)
            seen = f"{stream}: {stream.error}"
            expect(stream.error.get("code") == "invalid_request", f"{name}={value!r} refused", seen)
            expect(str(stream.error.get("param")).startswith(name), f"param {name}", seen, "§6")
        await lab.works(peer)


@case("§3 chat", "params at their bounds are served", needs=["chat"])
async def params_at_bounds(lab: Lab) -> None:
    low = {"temperature": 0, "top_k": 0, "min_p": 0, "repetition_penalty": 1, "seed": 0}
    high = {"temperature": 10, "top_p": 1, "min_p": 1, "seed": 2**32 - 1, "stop": ["\u2603"] * 16}
    async with lab.connect() as peer:
        for bounds in (low, high):
            stream = peer.open("chat", lab.chat(2, **bounds))
            await peer.ended(stream)
            expect(stream.ended == "done", f"done with {bounds}", f"{stream}: {stream.error}")


@case("§3", "null is not given, where the default is none", needs=["chat"])
async def null_params(lab: Lab) -> None:
    nulls = ("model", "seed", "stop", "tools", "logprobs_of_no_such_param")
    async with lab.connect() as peer:
        stream = peer.open("chat", lab.chat(2, **dict.fromkeys(nulls)))
        await peer.ended(stream)
        expect(stream.ended == "done", f"done with null {nulls}", f"{stream}: {stream.error}")


@case("§3 chat", "messages are required", needs=["chat"])
async def no_messages(lab: Lab) -> None:
    async with lab.connect() as peer:
        await lab.refuses(peer, "chat", {"max_tokens": 2}, "invalid_request", "messages")


@case("§6", "an unknown model: rejected model_not_found")
async def unknown_model(lab: Lab) -> None:
    async with lab.connect() as peer:
        for method in lab.methods:
            params = lab.short(method) | {"model": "no such model"}
            await lab.refuses(peer, method, params, "model_not_found")


@case("§1", "each model of methods can be asked for by name; the first is the default")
async def models_by_name(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        first = lab.methods[method]["models"][0]
        for params in ({}, {"model": first}):
            stream = peer.open(method, lab.short(method) | params)
            peer.end(stream)
            await peer.ended(stream)
            expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
            model = (stream.started or {}).get("model")
            expect(model == first, f"started.model {first}", model)


@case("§6", "a method the server does not offer: rejected unsupported_method")
async def unsupported_method(lab: Lab) -> None:
    async with lab.connect() as peer:
        absent = [m for m in ("chat", "transcribe", "synthesize", "embed") if m not in lab.methods]
        for method in (*absent, "paint", ""):
            await lab.refuses(peer, method, {}, "unsupported_method")


@case("§7", "resume_seconds above 0: rejected invalid_request, param resume_seconds")
async def resume_seconds(lab: Lab) -> None:
    async with lab.connect() as peer:
        method = lab.any_method
        await lab.refuses(
            peer, method, lab.short(method), "invalid_request", "resume_seconds", resume_seconds=5
        )
        stream = peer.open(method, lab.short(method), resume_seconds=0)
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done with resume_seconds 0", stream)


@case("§3 chat", "greedy answers to one prompt are the same text", needs=["chat"])
async def greedy(lab: Lab) -> None:
    async with lab.connect() as peer:
        texts = []
        for _ in range(2):
            stream = peer.open("chat", lab.chat(SHORT_TOKENS, temperature=0))
            await peer.ended(stream)
            texts.append(stream.text)
        expect(texts[0] == texts[1], f"the same text: {texts[0]!r}", repr(texts[1]))


@case("§3 chat", "a stop string ends the answer and is never shown", needs=["chat"])
async def stop_strings(lab: Lab) -> None:
    async with lab.connect() as peer:
        whole = peer.open("chat", lab.chat(SHORT_TOKENS * 2, temperature=0))
        await peer.ended(whole)
        words = whole.text.split()
        if len(words) < 4:
            raise Skipped("the answer is too short to be stopped")
        stop = words[2]
        cut = peer.open("chat", lab.chat(SHORT_TOKENS * 2, temperature=0, stop=[stop]))
        await peer.ended(cut)
        expect(cut.ended == "done", "done", f"{cut}: {cut.error}")
        expect(stop not in cut.text, f"nothing of {stop!r}", repr(cut.text))
        if cut.text and not whole.text.startswith(cut.text):
            raise Broken(f"the beginning of {whole.text!r}", repr(cut.text))


@case("§6", "a prompt that cannot fit: error context_overflow with its numbers", needs=["chat"])
async def context_overflow(lab: Lab) -> None:
    words = min(int(lab.limits["max_text_bytes"]) - 2000, 600_000) // 2
    params = {"messages": [{"role": "user", "content": "a " * words}], "max_tokens": 4}
    async with lab.connect() as peer:
        stream = peer.open("chat", params)
        await peer.started(stream)
        if stream.started or stream.error.get("code") == "resource_not_available":
            raise Skipped(f"{words} words are not too many for it")
        await lab.fails(peer, stream, "context_overflow")
        lab.note(f"{stream.error['data']}")


@case("§3 chat", "a forced answer is JSON, or the refusal names the field", needs=["chat"])
async def json_answer(lab: Lab) -> None:
    async with lab.connect() as peer:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        form = {
            "type": "json_schema",
            "json_schema": {"schema": schema | {"additionalProperties": False}},
        }
        stream = peer.open("chat", lab.chat(64, temperature=0, response_format=form))
        await peer.ended(stream)
        if stream.ended in ("rejected", "error"):
            code, param = stream.error.get("code"), str(stream.error.get("param"))
            if code == "generation_failed":
                raise Skipped("the answer left its form, and the server said so")
            allowed = code == "invalid_request" and param.startswith("response_format")
            expect(allowed, "invalid_request, param response_format", stream.error)
            raise Skipped("the engine has no grammars")
        if (stream.terminal or {}).get("finish_reason") == "length":
            raise Skipped("the answer was cut by max_tokens")
        try:
            json.loads(stream.text)
        except ValueError as error:
            raise Broken("a JSON text", repr(stream.text)) from error


@case("§3 chat", "logprobs come with the content, an entry per token", needs=["chat"])
async def logprobs(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("chat", lab.chat(4, logprobs=2))
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        entries = [entry for item in stream.items for entry in item.data.get("logprobs") or []]
        expect(entries or not stream.text, "logprobs, as asked for", stream.items[:2])
        top = [len(entry.get("top", [])) for entry in entries]
        expect(all(size <= 2 for size in top), "at most two likeliest", top)
        expect(all((e["logprob"] or 0) <= 1e-6 for e in entries), "logprobs ≤ 0", entries[:3])
        tokens = "".join(entry["token"] for entry in entries)
        expect(tokens or not stream.text, "the tokens' texts", entries[:3])
