"""Text that goes up as it is written: pieces, credit, its source, and how that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from plait.client import ConnectionLost, StreamCancelled, connect
from plait.client.upload import Upload
from plait.errors import InvalidRequest
from plait.wire.messages import Ack, ClientMessage, Done, End, Input, InputAck
from tests.client.peer import TIMING, TONE, Peer, cancelled, done, serving


class Source:
    """Pieces of text that come as they are, then an end, an error, or a wait without end."""

    def __init__(self, *pieces: str, then: Exception | None = None, hang: bool = False) -> None:
        self.pieces = pieces
        self.then = then
        self.hang = hang
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            for piece in self.pieces:
                yield piece
            if self.hang:
                await asyncio.Event().wait()
            if self.then is not None:
                raise self.then
        finally:
            self.closed = True


async def receive_text(peer: Peer, size_bytes: int) -> str:
    """Input of that many bytes in all."""
    text = ""
    while len(text.encode()) < size_bytes:
        message = await peer.receive()
        assert isinstance(message, Input), message
        text += message.text or ""
    return text


async def test_pieces_go_up_as_they_come_and_end_follows() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        assert [await peer.receive() for _ in range(3)] == [
            Input(id, "Grüße, "),
            Input(id, "alle."),
            End(id),
        ]
        await peer.send(done(id, 0))
        await peer.gone()

    source = Source("Grüße, ", "", "alle.")
    async with serving(script) as url, connect(url) as client:
        assert await client.synthesize(source).collect() == b""
    assert source.closed


async def test_no_more_goes_up_than_the_credit_allows() -> None:
    sent: list[ClientMessage | bytes] = []

    async def send(message: ClientMessage | bytes) -> None:
        sent.append(message)

    upload = Upload(1, send, 1 << 18)
    task = asyncio.create_task(upload.run(Source("漢字" * 3), lambda: None))
    seen = []
    for limit_bytes in (0, 10, 16, 13, 25):
        upload.grant(limit_bytes)
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append("".join(m.text or "" for m in sent if isinstance(m, Input)))
    await task
    assert seen == ["", "漢字漢", "漢字漢字漢", "漢字漢字漢", "漢字" * 3]
    assert sent[-1] == End(1)


@pytest.mark.parametrize("ending", ["done", "cancelled", "lost"])
async def test_the_source_is_closed_when_the_stream_ends(ending: str) -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await receive_text(peer, 1)
        ends: dict[str, Any] = {"done": done(id, 0), "cancelled": cancelled(id, 0, "deadline")}
        if ending == "lost":
            peer.socket.transport.abort()
        else:
            await peer.send(ends[ending])
            await peer.gone()

    source = Source("a", hang=True)
    async with serving(script) as url, connect(url) as client:
        speech = client.synthesize(source)
        if ending == "done":
            await speech.collect()
        else:
            with pytest.raises((StreamCancelled, ConnectionLost)):
                await speech.collect()
    assert source.closed


async def test_leaving_the_block_closes_a_source_that_waits() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await receive_text(peer, 1)
        await peer.speak(id, TONE)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    source = Source("a", hang=True)
    async with serving(script) as url, connect(url) as client:
        async with client.synthesize(source) as speech:
            await anext(speech)
        await asyncio.sleep(0)
        assert source.closed


async def test_an_error_of_the_source_cancels_and_comes_out_where_it_is_consumed() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await receive_text(peer, 1)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ZeroDivisionError):
            await client.synthesize(Source("a", then=ZeroDivisionError())).collect()


async def test_text_no_json_can_carry_is_the_sources_error() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match="surrogate"):
            await client.synthesize(Source("\ud800")).collect()


async def test_a_text_too_long_for_a_frame_goes_up_as_input() -> None:
    text = "漢字かな。 " * 100_000

    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64 * 1024)
        size, got = len(text.encode()), 0
        while got < size:
            message = await peer.receive()
            assert isinstance(message, Input)
            got += len((message.text or "").encode())
            await peer.send(InputAck(id, got, 64 * 1024))
        assert await peer.receive() == End(id)
        await peer.send(Done(id, 0, "stop", {}, TIMING))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        assert await client.synthesize(text).collect() == b""


async def test_a_source_that_never_waits_does_not_crowd_out_the_others() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64 * 1024)
        await receive_text(peer, 20_000)
        message = await peer.receive()
        assert isinstance(message, End)
        await peer.speak(id, *[TONE] * 64)
        assert isinstance(await peer.receive(), Ack)
        await peer.send(done(id, 64))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        assert await client.synthesize(Source(*"a" * 20_000)).collect() == TONE * 64


async def test_confirmed_input_that_was_never_sent_breaks_the_connection() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await peer.send(InputAck(id, 99, 64))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ConnectionLost, match=r"plait\.v1"):
            await client.synthesize(Source(hang=True)).collect()
