"""A chat through the client: deltas, endings, stops."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from plait.client import ConnectionLost, Delta, StreamCancelled, ToolCall, connect
from plait.errors import EngineCrashed, InvalidRequest
from plait.wire.codec import decode_params, encode_item
from plait.wire.messages import (
    Accepted,
    Cancelled,
    ChatParams,
    ErrorBody,
    Rejected,
    StreamFailed,
)
from plait.wire.stream import StreamState
from tests.client.peer import TIMING, USAGE, Peer, cancelled, done, serving

HI: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]


async def test_deltas_come_in_order_and_the_last_one_carries_the_end() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, "Hel", "lo")
        await peer.send(done(id, 2))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        deltas = [delta async for delta in client.chat(messages=HI)]
    assert [delta.content for delta in deltas] == ["Hel", "lo", ""]
    assert deltas[-1] == Delta(done=True, finish_reason="stop", usage=USAGE)


async def test_tool_calls_come_as_they_are_written_and_whole() -> None:
    call = {"index": 0, "id": "call1", "type": "function"}
    whole = {"name": "time", "arguments": '{"zone": "UTC"}'}
    entries = [
        {**call, "function": {"name": "time"}},
        {"index": 0, "function": {"arguments": '{"zone": "UTC"}'}},
        {**call, "function": whole, "complete": True},
    ]

    async def script(peer: Peer) -> None:
        id = await peer.start()
        for seq, entry in enumerate(entries, 1):
            await peer.socket.send(
                encode_item(id, seq, json.dumps({"tool_calls": [entry]}).encode())
            )
        await peer.send(done(id, 3))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        deltas = [delta async for delta in client.chat(messages=HI)]
    assert [delta.tool_calls for delta in deltas[:3]] == [[entry] for entry in entries]
    assert [delta.calls for delta in deltas[:2]] == [[], []]
    assert deltas[2].calls == [ToolCall("call1", "time", '{"zone": "UTC"}')]


async def test_params_and_options_travel_as_asked() -> None:
    async def script(peer: Peer) -> None:
        message = await peer.receive_open()
        params = decode_params(message.method, message.params)
        assert isinstance(params, ChatParams)
        assert (params.model, params.max_tokens, params.stop) == ("m", 9, ["x"])
        assert (message.window, message.priority, message.deadline_ms) == (3, "batch", 50)
        await peer.send(Accepted(message.id, "queued", 0), cancelled(message.id, 0, "deadline"))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.chat(
            HI, model="m", window=3, priority="batch", deadline_ms=50, max_tokens=9, stop=["x"]
        )
        with pytest.raises(StreamCancelled) as caught:
            await stream.text()
    assert caught.value.cancelled is not None
    assert caught.value.cancelled.by == "deadline"


async def test_a_chat_shows_its_place_in_the_queue() -> None:
    async def script(peer: Peer) -> None:
        id = (await peer.receive_open()).id
        await peer.send(Accepted(id, "queued", 2))
        await peer.answer_ping()
        await peer.send(cancelled((await peer.receive_cancel()).id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.chat(messages=HI)
        assert (stream.id, stream.state) == (1, StreamState.PENDING)
        await client.ping()
        assert stream.queue == Accepted(1, "queued", 2)
        await stream.cancel()
        assert stream.state is StreamState.CANCELLED
        assert stream.queue is None


async def test_text_is_the_whole_answer() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, "漢", "字")
        await peer.send(done(id, 2))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        assert await client.chat(messages=HI).text() == "漢字"


async def test_cancel_returns_the_proof_and_drops_what_crossed_it() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, "a")
        await peer.receive_cancel()
        await peer.say(id, "b", after=1)
        await peer.send(cancelled(id, 2))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.chat(messages=HI)
        assert (await anext(stream)).content == "a"
        proof = await stream.cancel()
        assert proof is not None
        assert (proof.released, proof.stop_ms, proof.wasted) == (True, 12.5, {"tokens": 1})
        with pytest.raises(StreamCancelled):
            await anext(stream)


async def test_an_answer_that_was_cut_never_looks_whole_even_if_its_end_crossed_the_cancel() -> (
    None
):
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, "a", "b")
        await peer.receive_cancel()
        await peer.send(done(id, 2))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.chat(messages=HI)
        assert (await anext(stream)).content == "a"
        assert await stream.cancel() is None
        with pytest.raises(StreamCancelled) as caught:
            await anext(stream)
        assert caught.value.cancelled is None


async def test_cancel_of_a_finished_chat_is_quiet() -> None:
    async def script(peer: Peer) -> None:
        await peer.send(done(await peer.start(), 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.chat(messages=HI)
        assert await stream.text() == ""
        assert await stream.cancel() is None


async def stopped_by_client(peer: Peer) -> None:
    """Say one thing, then wait for the cancel: anything else the client sends fails the test."""
    id = await peer.start()
    await peer.say(id, "a")
    await peer.receive_cancel()
    await peer.send(cancelled(id, 1))
    await peer.gone()


async def test_leaving_the_block_cancels_and_waits_for_the_proof() -> None:
    async with serving(stopped_by_client) as url, connect(url) as client:
        async with client.chat(messages=HI) as stream:
            async for _ in stream:
                break
        assert isinstance(stream.terminal, Cancelled)
        assert client.live_ids == set()


async def test_an_error_in_the_block_cancels_and_comes_out_as_it_is() -> None:
    async def use(url: str) -> None:
        async with connect(url) as client, client.chat(messages=HI) as stream:
            await anext(stream)
            raise ZeroDivisionError

    async with serving(stopped_by_client) as url:
        with pytest.raises(ZeroDivisionError):
            await use(url)


async def test_cancelling_the_consumers_task_cancels_the_chat() -> None:
    async with serving(stopped_by_client) as url, connect(url) as client:
        stream = client.chat(messages=HI)
        task = asyncio.ensure_future(stream.text())
        await stream.stream.wait_started()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(stream.terminal, Cancelled)


async def test_a_lost_socket_never_looks_like_an_end() -> None:
    async def script(peer: Peer) -> None:
        await peer.say(await peer.start(), "half")
        peer.socket.transport.abort()

    async with serving(script) as url, connect(url) as client:
        stream = client.chat(messages=HI)
        assert (await anext(stream)).content == "half"
        with pytest.raises(ConnectionLost):
            await anext(stream)
        with pytest.raises(ConnectionLost):
            client.chat(messages=HI)
        with pytest.raises(ConnectionLost):
            await stream.cancel()


async def test_an_orderly_close_without_a_terminal_is_lost_too() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.socket.close(1012, "restart")

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ConnectionLost, match="1012") as caught:
            await client.chat(messages=HI).text()
    assert caught.value.close_code == 1012


async def test_a_rejection_is_the_servers_error() -> None:
    refusal = InvalidRequest("temperature: too hot", param="temperature")

    async def script(peer: Peer) -> None:
        id = (await peer.receive_open()).id
        await peer.send(Rejected(id, ErrorBody.of(refusal)))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match="too hot") as caught:
            await client.chat(messages=HI, temperature=99).text()
    assert caught.value.param == "temperature"


async def test_an_error_terminal_is_the_servers_error() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        error = ErrorBody.of(EngineCrashed("the engine stopped"))
        await peer.send(StreamFailed(id, 0, error, USAGE, TIMING))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(EngineCrashed):
            await client.chat(messages=HI).text()


async def test_half_a_surrogate_pair_is_refused_before_it_is_sent() -> None:
    async with serving(Peer.gone) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match="surrogate"):
            client.chat(messages=[{"role": "user", "content": "\ud800"}])
        assert client.live_ids == set()
