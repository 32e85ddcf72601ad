"""Embeddings through the client: answers in order, texts without a vector, texts going up."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from plait.client import ConnectionLost, Embedding, StreamCancelled, connect
from plait.client.texts_upload import TEXT_OVERHEAD_BYTES, TextsUpload
from plait.client.upload import MAX_PIECE_BYTES
from plait.errors import InputOverflow, InputTooLong, Internal, InvalidRequest
from plait.wire.codec import decode_params
from plait.wire.messages import (
    Cancelled,
    ClientMessage,
    Done,
    EmbedParams,
    End,
    ErrorBody,
    Input,
    InputAck,
    Rejected,
)
from tests.client.peer import TIMING, Peer, cancelled, serving

TOO_LONG = {
    "code": "input_too_long",
    "class": "client",
    "message": "…",
    "retryable": False,
    "data": {"index": 2, "tokens": 2001, "limit": 256},
}


def done(id: int, seq: int) -> Done:
    return Done(id, seq, "stop", {"texts": 4, "tokens": 9}, TIMING)


async def four_texts(peer: Peer) -> None:
    """Two rows, a text without one, and one that was cut."""
    id = await peer.start_embedding()
    await peer.send_rows(id, 1, 0, 0.5, 0.25)
    await peer.send_item(id, 2, {"index": 2, "error": TOO_LONG})
    await peer.send_rows(id, 3, 3, 2.0, flags=4)
    await peer.send(done(id, 3))
    await peer.gone()


def facts(answer: Embedding) -> tuple[int, list[float] | None, bool]:
    vector = None if answer.vector is None else list(answer.vector)
    return answer.index, vector, answer.truncated


async def test_every_text_has_its_answer_in_order() -> None:
    async with serving(four_texts) as url, connect(url) as client:
        answers = [answer async for answer in client.embed(["a", "b", "c", "d"])]
    assert [facts(answer) for answer in answers] == [
        (0, [0.5, -0.5], False),
        (1, [0.25, -0.25], False),
        (2, None, False),
        (3, [2.0, -2.0], True),
    ]
    error = answers[2].error
    assert isinstance(error, InputTooLong)
    assert error.data == {"index": 2, "tokens": 2001, "limit": 256}


async def test_vectors_are_float32_that_nobody_can_write_to() -> None:
    async with serving(four_texts) as url, connect(url) as client:
        answer = await anext(client.embed(["a", "b", "c", "d"]))
    assert answer.vector is not None
    assert (answer.vector.format, answer.vector.readonly) == ("f", True)
    assert array("f", answer.vector).tolist() == [0.5, -0.5]


async def test_json_items_are_the_same_answers() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_embedding(encoding="json")
        await peer.send_item(id, 1, {"index": 0, "embedding": [0.5, -0.5]})
        await peer.send_item(id, 2, {"index": 1, "embedding": [1, 0], "truncated": True})
        await peer.send_item(id, 3, {"index": 2, "error": TOO_LONG})
        await peer.send(done(id, 3))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        answers = await client.embed(["a", "b", "c"], encoding="json").collect()
    assert [facts(answer) for answer in answers] == [
        (0, [0.5, -0.5], False),
        (1, [1.0, 0.0], True),
        (2, None, False),
    ]


async def test_vectors_alone_raise_the_error_of_a_text_that_has_none_and_stop() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_embedding()
        await peer.send_item(id, 1, {"index": 0, "error": TOO_LONG})
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(InputTooLong):
            await client.embed(["a", "b"]).vectors()


async def test_progress_is_what_was_taken_of_how_many_there_are() -> None:
    async with serving(four_texts) as url, connect(url) as client:
        stream = client.embed(["a", "b", "c", "d"])
        assert (stream.answered, stream.total) == (0, 4)
        async for answer in stream:
            assert stream.answered == answer.index + 1
        assert (stream.answered, stream.total) == (4, 4)


async def test_params_travel_as_asked_and_only_those() -> None:
    opened: list[Any] = []

    async def script(peer: Peer) -> None:
        message = await peer.receive_open()
        opened.append(decode_params(message.method, message.params))
        await peer.send(Rejected(message.id, ErrorBody.of(InvalidRequest("no"))))
        await peer.gone()

    for asked in ({}, {"model": "x", "encoding": "json", "normalize": False, "truncate": True}):
        async with serving(script) as url, connect(url) as client:
            with pytest.raises(InvalidRequest):
                await client.embed(["a"], **asked).collect()  # type: ignore[arg-type]
    assert opened == [EmbedParams(["a"]), EmbedParams(["a"], "x", "json", False, True)]


async def test_one_string_is_not_a_list_of_letters() -> None:
    async with serving(lambda peer: peer.gone()) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match="list"):
            client.embed("abc")


@pytest.mark.parametrize("bad", [None, 5, b"a", ["a"]])
async def test_what_is_no_text_in_a_list_is_named_before_anything_is_sent(bad: Any) -> None:
    async with serving(lambda peer: peer.gone()) as url, connect(url) as client:
        with pytest.raises(InvalidRequest) as caught:
            client.embed(["a", bad])
    assert caught.value.param == "texts[1]"


async def test_rows_that_are_no_rows_are_an_error_not_nonsense() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_embedding()
        await peer.speak(id, b"\0" * 6)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(Internal, match="rows"):
            await client.embed(["a"]).collect()


@pytest.mark.parametrize("first", [0, 2])
async def test_a_text_without_an_answer_is_an_error_not_a_shift(first: int) -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_embedding()
        await peer.send_rows(id, 1, first, 1.0)
        await peer.send(done(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(Internal, match="answered"):
            await client.embed(["a", "b"]).collect()


async def test_leaving_the_block_cancels_and_drops_the_rows_at_hand() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_embedding()
        await peer.send_rows(id, 1, 0, 1.0, 2.0, 3.0)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        async with client.embed(["a"] * 9) as stream:
            async for _ in stream:
                break
        assert isinstance(stream.terminal, Cancelled)
        with pytest.raises(StreamCancelled):
            await anext(stream)


async def test_half_a_batch_never_looks_like_a_whole_one() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_embedding()
        await peer.send_rows(id, 1, 0, 1.0)
        peer.socket.transport.abort()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ConnectionLost):
            await client.embed(["a", "b"]).collect()


# --- texts that go up --------------------------------------------------------------------------


class Uploading:
    """An upload whose messages the test sees, and whose credit it gives."""

    def __init__(self, max_frame_bytes: int = 1 << 20) -> None:
        self.sent: list[ClientMessage | bytes] = []
        self.upload = TextsUpload(1, self.send, max_frame_bytes)

    async def send(self, message: ClientMessage | bytes) -> None:
        self.sent.append(message)

    @property
    def batches(self) -> list[list[str]]:
        return [m.texts or [] for m in self.sent if isinstance(m, Input)]

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    async def run(self, source: AsyncIterator[Any]) -> None:
        await self.upload.run(source, lambda: None)


async def given(*pieces: Any) -> AsyncIterator[Any]:
    for piece in pieces:
        yield piece


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_texts_that_are_there_go_up_together_and_keep_their_borders() -> None:
    up = Uploading()
    up.upload.grant(1 << 20)
    texts = ["", "one", "漢字", ""] * 100
    await up.run(given(*texts))
    assert up.texts == texts
    assert len(up.batches) <= 4
    assert up.sent[-1] == End(1)
    assert (up.upload.texts, up.upload.complete) == (400, True)


async def test_a_text_that_comes_alone_does_not_wait_for_company() -> None:
    up = Uploading()
    up.upload.grant(1 << 20)
    more = asyncio.Event()

    async def source() -> AsyncIterator[str | Sequence[str]]:
        yield "one"
        await more.wait()
        yield ["two", "three"]

    running = asyncio.create_task(up.run(source()))
    await settle()
    assert up.batches == [["one"]]
    assert not up.upload.complete
    more.set()
    await running
    assert up.batches == [["one"], ["two", "three"]]


async def test_no_more_goes_up_than_the_credit_and_no_more_is_asked_for_than_a_piece() -> None:
    up = Uploading()
    asked = 0

    async def source() -> AsyncIterator[str]:
        nonlocal asked
        for _ in range(100_000):
            asked += 1
            yield "x" * 84

    running = asyncio.create_task(up.run(source()))
    await settle()
    assert up.sent == []
    up.upload.grant(1000)
    await settle()
    assert len(up.texts) == 1000 // (84 + TEXT_OVERHEAD_BYTES)
    assert asked <= len(up.texts) + MAX_PIECE_BYTES // 100 + 2
    running.cancel()
    await asyncio.wait({running})


async def test_a_text_longer_than_a_piece_goes_up_whole_when_there_is_credit_for_it() -> None:
    up = Uploading()
    text = "x" * 5 * MAX_PIECE_BYTES
    up.upload.grant(len(text))
    running = asyncio.create_task(up.run(given("a", text, "b")))
    await settle()
    assert up.texts == ["a"]
    up.upload.grant(2 * len(text))
    await running
    assert up.texts == ["a", text, "b"]


@pytest.mark.parametrize("bad", [None, 5, b"ab", ["a", None]])
async def test_what_is_no_text_is_named_by_its_index(bad: Any) -> None:
    up = Uploading()
    up.upload.grant(1 << 20)
    await up.run(given("one", bad))
    assert isinstance(up.upload.error, InvalidRequest)
    assert up.upload.error.param in ("texts[1]", "texts[2]")
    assert End(1) not in up.sent


async def test_a_text_no_frame_can_hold_is_named_by_its_index() -> None:
    up = Uploading(max_frame_bytes=8192)
    up.upload.grant(1 << 20)
    await up.run(given("one", '"' * 4000))
    assert isinstance(up.upload.error, InvalidRequest)
    assert up.upload.error.param == "texts[1]"


async def test_a_text_the_credit_can_never_hold_is_an_error_not_a_wait() -> None:
    up = Uploading()
    up.upload.grant(1000, 1000)
    await up.run(given("x" * 1000))
    assert isinstance(up.upload.error, InputOverflow)


async def test_an_error_of_the_source_comes_out_where_it_is_consumed_as_it_was() -> None:
    arrived = asyncio.Event()

    async def source() -> AsyncIterator[str]:
        yield "one"
        await arrived.wait()
        raise ZeroDivisionError

    async def script(peer: Peer) -> None:
        id = await peer.start_embedding(1 << 20)
        assert await peer.receive() == Input(id, texts=["one"])
        arrived.set()
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ZeroDivisionError):
            await client.embed(source()).collect()


async def test_more_texts_than_a_frame_holds_go_up_as_input_and_the_total_is_known() -> None:
    texts = [f"text number {number} " * 10 for number in range(10_000)]

    async def script(peer: Peer) -> None:
        id = await peer.start_embedding(1 << 20)
        received: list[str] = []
        size_bytes = 0
        while not isinstance(message := await peer.receive(), End):
            assert isinstance(message, Input)
            received += message.texts or []
            size_bytes += sum(len(text) + TEXT_OVERHEAD_BYTES for text in message.texts or [])
            await peer.send(InputAck(id, size_bytes, 1 << 20))
        assert received == texts
        await peer.send_rows(id, 1, 0, *[0.5] * 10_000)
        await peer.send(done(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.embed(texts)
        assert stream.total == 10_000
        assert len(await stream.collect()) == 10_000


async def test_the_total_of_a_source_is_known_at_its_end() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_embedding(1 << 20)
        while not isinstance(await peer.receive(), End):
            pass
        await peer.send_rows(id, 1, 0, 1.0, 2.0, 3.0)
        await peer.send(done(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.embed(text for text in ("a", "b", "c"))
        assert stream.total is None
        await stream.collect()
        assert stream.total == 3
