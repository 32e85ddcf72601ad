"""Embeddings over a real socket, without a model: order, texts without a vector, stops, bounds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest

from plait.client import Embedding, StreamCancelled, connect
from plait.engines.scripted.embedding import MAX_TOKENS, vector
from plait.errors import PlaitError
from plait.sessions.upload import TEXTS_WINDOW_BYTES
from plait.wire.messages import Done
from tests.live.peer import peer
from tests.live.server import LiveServer, live_server

MODEL = "scripted-embed"
LONG = "word " * 2000
ENDLESS = "step_ms=20 burst=8"
MIB = 1 << 20
VERY_MANY = 100_000 if os.environ.get("PLAIT_TEST_PROOF") == "full" else 20_000


def vectors_of(answers: list[Embedding]) -> list[list[float] | None]:
    assert [answer.index for answer in answers] == list(range(len(answers)))
    return [None if answer.vector is None else list(answer.vector) for answer in answers]


def expected(texts: list[str]) -> list[list[float]]:
    return [vector(text).tolist() for text in texts]


def rss_bytes(processes: list[psutil.Process]) -> list[int]:
    return [process.memory_info().rss for process in processes]


async def numbered(first: str, count: int) -> AsyncIterator[str]:
    yield first
    for number in range(1, count):
        yield f"text {number}"


async def without_end(first: str) -> AsyncIterator[list[str]]:
    yield [first]
    while True:
        yield [f"text {number}" for number in range(100)]


async def test_a_thousand_texts_with_duplicates_come_back_in_their_order(
    embed_server: LiveServer,
) -> None:
    texts = ["burst=32", *(f"text {number % 300}" for number in range(999))]
    async with connect(embed_server.ws_url) as client:
        together = await client.embed(texts).collect()
        alone = [await client.embed([text]).vectors() for text in texts[:20]]
    assert vectors_of(together) == expected(texts)
    assert [list(vectors[0]) for vectors in alone] == expected(texts[:20])


async def test_nothing_at_all_empty_texts_and_no_texts_are_answered_and_a_batch_after_them(
    embed_server: LiveServer,
) -> None:
    async with peer(embed_server.ws_url) as client:
        batches: list[list[Any]] = [[""], [" "], [], [None], ["a", "b"]]
        for id, texts in enumerate(batches, 1):
            await client.embed(id, texts)
        ends = await client.hear_terminals(1, 2, 3, 4, 5)
    assert [ends[id]["type"] for id in (1, 2, 3, 5)] == ["done"] * 4
    assert [ends[id]["usage"]["texts"] for id in (1, 2, 3, 5)] == [1, 1, 0, 2]
    assert (ends[4]["type"], ends[4]["error"]["param"]) == ("rejected", "texts[0]")


@pytest.mark.parametrize("encoding", ["f32", "json"])
@pytest.mark.parametrize(
    ("bad", "code"), [(LONG, "input_too_long"), ("a nan here", "generation_failed")]
)
async def test_one_text_without_a_vector_is_an_error_in_its_place(
    embed_server: LiveServer, encoding: Any, bad: str, code: str
) -> None:
    texts = [f"text {number}" for number in range(10)]
    async with connect(embed_server.ws_url) as client:
        stream = client.embed([*texts[:7], bad, *texts[8:]], encoding=encoding)
        answers = await stream.collect()
    wanted: list[list[float] | None] = [*expected(texts)]
    wanted[7] = None
    assert vectors_of(answers) == wanted
    error = answers[7].error
    assert error is not None
    assert error.data is not None
    assert (error.code, error.data["index"]) == (code, 7)
    assert isinstance(stream.terminal, Done)
    assert (stream.terminal.usage["texts"], stream.terminal.usage["failed"]) == (10, 1)


async def test_texts_that_were_cut_are_flagged_listed_and_counted(embed_server: LiveServer) -> None:
    texts = ["burst=3", "a", LONG, LONG, "b"]
    async with connect(embed_server.ws_url) as client:
        encodings: list[Any] = ["f32", "json"]
        for encoding in encodings:
            stream = client.embed(texts, truncate=True, encoding=encoding)
            answers = await stream.collect()
            assert [answer.truncated for answer in answers] == [False, False, True, True, False]
            assert isinstance(stream.terminal, Done)
            assert stream.terminal.truncated == [2, 3]
            assert stream.terminal.usage["truncated"] == 2
            assert stream.terminal.usage["tokens"] == 2 * MAX_TOKENS + 9


async def test_the_same_texts_have_the_same_vectors_however_they_come(
    embed_server: LiveServer,
) -> None:
    texts = [text async for text in numbered("burst=4", 50)]
    async with connect(embed_server.ws_url) as client:
        at_once, as_json, by_input, plain = await asyncio.gather(
            client.embed(texts).collect(),
            client.embed(texts, encoding="json").collect(),
            client.embed(numbered("burst=4", 50)).collect(),
            client.embed(texts, normalize=False).collect(),
        )
    assert vectors_of(at_once) == vectors_of(by_input) == expected(texts)
    assert vectors_of(as_json) == expected(texts)
    assert vectors_of(plain) == [vector(text, normalize=False).tolist() for text in texts]


@pytest.mark.parametrize("sockets", [1, 4])
async def test_six_batches_at_once_are_each_their_own(
    embed_server: LiveServer, sockets: int
) -> None:
    batches = [[f"burst={1 + n}", *(f"{n} {m}" for m in range(150))] for n in range(6)]

    async def embed(batches: list[list[str]]) -> list[list[Embedding]]:
        async with connect(embed_server.ws_url) as client:
            return await asyncio.gather(*(client.embed(batch).collect() for batch in batches))

    groups = [batches] if sockets == 1 else [[batch] for batch in batches]
    found = await asyncio.gather(*map(embed, groups))
    answers = [answers for group in found for answers in group]
    assert [vectors_of(one) for one in answers] == [expected(batch) for batch in batches]


async def test_a_cancel_between_batches_stops_with_whole_batches_behind_it_and_nobody_hurt(
    embed_server: LiveServer,
) -> None:
    async with connect(embed_server.ws_url) as client:
        bystander = asyncio.create_task(client.embed(numbered("step_ms=5", 100)).collect())
        stream = client.embed(without_end(ENDLESS))
        got = [await anext(stream) for _ in range(30)]
        proof = await stream.cancel()
        assert len(await bystander) == 100
    assert proof is not None
    assert proof.by == "client"
    assert [answer.index for answer in got] == list(range(30))
    assert proof.usage["texts"] % 8 == 0
    assert proof.usage["texts"] >= 32
    with pytest.raises(StreamCancelled):
        await anext(stream)


async def test_very_many_texts_go_through_input_with_flat_memory_on_both_sides(
    embed_server: LiveServer,
) -> None:
    processes = [psutil.Process(), psutil.Process(embed_server.process.pid)]
    asked = 0

    async def source() -> AsyncIterator[str]:
        nonlocal asked
        yield "burst=40"
        for asked in range(1, VERY_MANY):
            yield f"text {asked} {'x' * 100}"

    async with connect(embed_server.ws_url) as client:
        await client.embed(numbered("burst=40", 2000)).collect()  # pools come with the first use
        before, ahead, grown = rss_bytes(processes), 0, [0, 0]
        async with client.embed(source()) as stream:
            async for answer in stream:
                ahead = max(ahead, asked - answer.index)
                if answer.index % 2000 == 0:
                    now = rss_bytes(processes)
                    grown = [max(g, n - b) for g, n, b in zip(grown, now, before, strict=True)]
    assert (stream.answered, stream.total) == (VERY_MANY, VERY_MANY)
    assert max(grown) < 16 * MIB, grown
    # The credit, a piece or two here, and what is on its way back.
    assert ahead * 120 < 2 * TEXTS_WINDOW_BYTES


async def test_a_reader_who_takes_nothing_holds_back_engine_and_source(
    embed_server: LiveServer,
) -> None:
    asked = 0

    async def source() -> AsyncIterator[str]:
        nonlocal asked
        yield "burst=10 step_ms=100"
        while True:
            asked += 1
            yield "x" * 1000

    before = embed_server.metric("plait_texts_total", model=MODEL)
    async with connect(embed_server.ws_url) as client:
        stream = client.embed(source(), window=4)
        await stream.stream.wait_started()
        other = await client.embed(numbered("burst=10", 500)).collect()
        await asyncio.to_thread(
            embed_server.wait_until,
            lambda: embed_server.metric("plait_slots_used", model=MODEL) == 0,
            10,
            "the reader's slot is yielded",
        )
        embedded = embed_server.metric("plait_texts_total", model=MODEL) - before - 500
        await stream.cancel()
    assert len(other) == 500
    assert embedded <= 240  # four frames of ten, and what the pause took
    assert (asked - embedded) * 1016 < TEXTS_WINDOW_BYTES + 64 * 1024


async def test_a_stream_that_waits_for_texts_yields_its_slot_and_is_answered_when_they_come(
    embed_server: LiveServer,
) -> None:
    def no_slot_used() -> bool:
        names = ("plait_slots_used", "plait_engine_slots_used")
        return not any(embed_server.metric(name, model=MODEL) for name in names)

    async with peer(embed_server.ws_url) as client:
        for id in range(1, 5):
            await client.embed(id)
            await client.say({"type": "input", "id": id, "texts": ["a"]})
            await client.hear_rows(id)
        await asyncio.to_thread(embed_server.wait_until, no_slot_used, 10, "no slot used")
        for id in range(1, 5):
            await client.say({"type": "input", "id": id, "texts": ["b", ""]})
            await client.say({"type": "end", "id": id})
        ends = await client.hear_terminals(1, 2, 3, 4)
    assert [ends[id]["usage"]["texts"] for id in range(1, 5)] == [3] * 4


async def test_texts_beyond_the_credit_fail_their_stream_alone(embed_server: LiveServer) -> None:
    async with peer(embed_server.ws_url) as client:
        await client.embed(1)
        await client.embed(2)
        await client.say({"type": "input", "id": 1, "texts": ["step_ms=3600000"]})
        for _ in range(3):
            await client.say({"type": "input", "id": 1, "texts": ["x" * (TEXTS_WINDOW_BYTES // 2)]})
        error = (await client.hear_until("error", 1))["error"]
        await client.say({"type": "input", "id": 2, "texts": ["a"]}, {"type": "end", "id": 2})
        assert (await client.hear_until("done", 2))["usage"]["texts"] == 1
    assert error["code"] == "input_overflow"


@pytest.mark.parametrize(
    ("params", "code", "param"),
    [
        ({"texts": "a"}, "invalid_request", "texts"),
        ({"texts": ["a", 5]}, "invalid_request", "texts[1]"),
        ({"encoding": "base64"}, "invalid_request", "encoding"),
        ({"normalize": "yes"}, "invalid_request", "normalize"),
        ({"truncate": 1}, "invalid_request", "truncate"),
        ({"model": "../x"}, "model_not_found", "model"),
    ],
)
async def test_a_bad_request_to_embed_is_refused_by_its_field(
    embed_server: LiveServer, params: dict[str, Any], code: str, param: str
) -> None:
    async with peer(embed_server.ws_url) as client:
        await client.embed(1, ["a"], params=params)
        error = (await client.hear_until("rejected", 1))["error"]
    assert (error["code"], error["param"]) == (code, param)


@pytest.mark.parametrize("how", ["fail_at", "raise_at", "crash_at"])
async def test_an_engine_that_breaks_is_a_typed_error_and_chats_go_on(how: str) -> None:
    with live_server(embed="scripted") as server:
        async with connect(server.ws_url) as client:
            chat = client.chat([{"role": "user", "content": "tokens=100 step_ms=5"}])
            with pytest.raises(PlaitError) as caught:
                await client.embed(numbered(f"step_ms=2 {how}=30", 100)).collect()
            assert (await chat.text()).endswith("w99 ")
        await asyncio.to_thread(server.wait_idle)
    assert caught.value.code == ("generation_failed" if how == "fail_at" else "engine_crashed")


async def test_shutdown_ends_an_embedding_that_waits_for_its_texts() -> None:
    with live_server(embed="scripted", drain_seconds=0.3) as server:
        async with connect(server.ws_url) as client:
            waiting = client.open("embed", {})
            await waiting.wait_started()
            assert await asyncio.to_thread(server.stop) == 0
            with pytest.raises(StreamCancelled) as caught:
                await waiting.collect()
    assert caught.value.cancelled is not None
    assert caught.value.cancelled.by == "shutdown"
