"""Streams of any method: flow control, many at once, and servers that break their promises."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from msgspec import Raw

from plait.client import ConnectionLost, connect
from plait.client.connection import MAX_OUTGOING_FRAMES
from plait.client.stream import MAX_UNACKED_ITEMS, Stream
from plait.errors import InvalidRequest
from plait.wire.codec import BinaryKind, encode_binary
from plait.wire.messages import (
    Accepted,
    Ack,
    ClientMessage,
    Done,
    ErrorBody,
    GoAway,
    ItemMessage,
    Open,
    Pong,
    Rejected,
    Started,
)
from tests.client.peer import Peer, Script, cancelled, done, serving


async def test_items_are_acknowledged_when_taken_a_quarter_window_at_a_time() -> None:
    acks: list[int] = []

    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, *"abcdefgh")
        for _ in range(4):
            message = await peer.receive()
            assert isinstance(message, Ack)
            acks.append(message.seq)
        await peer.send(done(id, 8))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        items = await client.open("chat", {}, window=8).collect()
    assert acks == [2, 4, 6, 8]
    assert [item.seq for item in items] == [*range(1, 9)]


async def test_who_takes_items_slowly_acknowledges_them_all_the_same() -> None:
    sent: list[ClientMessage] = []
    now = 100.0
    stream = Stream(1, "chat", 64, sent.append, clock=lambda: now)
    stream.receive_started(Started(1, "m"))
    for seq in (1, 2, 3):
        stream.receive_item(ItemMessage(1, seq, Raw(b"{}")))
    for _ in range(3):
        now += 0.8
        await anext(stream)
    assert sent == [Ack(1, 2)]


async def test_what_is_not_taken_is_not_acknowledged() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, "a")
        await peer.answer_ping()
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.open("chat", {}, window=1)
        assert await client.ping() >= 0
        assert stream.last_seq == 1
        await stream.cancel()


async def test_a_ping_fails_with_the_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.receive()
        peer.socket.transport.abort()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ConnectionLost):
            await client.ping()
        with pytest.raises(ConnectionLost):
            await client.ping()


async def test_streams_do_not_wait_for_each_other() -> None:
    async def script(peer: Peer) -> None:
        first, second = await peer.start(), await peer.start()
        await peer.say(first, "a")
        await peer.say(second, "x")
        await peer.send(done(second, 1))
        await peer.say(first, "b", after=1)
        await peer.send(done(first, 2))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        first, second = client.open("chat", {}), client.open("chat", {})
        assert [item.data for item in await second.collect()] == [{"content": "x"}]
        assert [item.data["content"] for item in await first.collect()] == ["a", "b"]
        assert (first.id, second.id) == (1, 2)


async def test_the_terminal_and_the_times_of_everything_are_kept() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, "a", "b")
        await peer.send(done(id, 2))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        stream = client.open("chat", {})
        terminal = await stream.wait_ended()
        items = await stream.collect()
    assert isinstance(terminal, Done)
    assert stream.accepted_at is not None
    assert stream.started_at is not None
    assert stream.ended_at is not None
    times = [stream.opened_at, stream.accepted_at, stream.started_at]
    times += [*(item.at for item in items), stream.ended_at]
    assert all(earlier <= later for earlier, later in pairwise(times))


async def test_binary_items_share_the_seq_with_json_items() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.socket.send(encode_binary(BinaryKind.AUDIO_OUT, 1, id, 1, 0, b"\1\2"))
        await peer.say(id, "mark", after=1)
        await peer.send(done(id, 2))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        audio, mark = await client.open("synthesize", {"text": "Hi"}).collect()
    assert audio.frame is not None
    assert (audio.seq, bytes(audio.frame.payload)) == (1, b"\1\2")
    assert (mark.seq, mark.data) == (2, {"content": "mark"})


async def test_what_the_client_does_not_know_is_ignored() -> None:
    async def script(peer: Peer) -> None:
        await peer.socket.send('{"type":"novelty","id":1}')
        await peer.send(Pong(3), GoAway("shutting_down", 10))
        id = await peer.start()
        await peer.socket.send(f'{{"type":"item","id":{id},"seq":1,"data":{{}},"new":[1]}}')
        await peer.send(Started(99, "m"), done(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        assert len(await client.open("chat", {}).collect()) == 1
        assert client.goaway == GoAway("shutting_down", 10)


async def gap(peer: Peer) -> None:
    await peer.say(await peer.start(), "late", after=1)


async def item_before_started(peer: Peer) -> None:
    id = (await peer.receive_open()).id
    await peer.send(Accepted(id, "queued", 0))
    await peer.say(id, "early")


async def wrong_last_seq(peer: Peer) -> None:
    await peer.send(done(await peer.start(), 5))


async def beyond_the_window(peer: Peer) -> None:
    await peer.say(await peer.start(), *["x"] * 300)


async def rejected_after_accepted(peer: Peer) -> None:
    id = await peer.start()
    await peer.send(Rejected(id, ErrorBody.of(InvalidRequest("too late"))))


async def not_json(peer: Peer) -> None:
    await peer.start()
    await peer.socket.send("nonsense")


@pytest.mark.parametrize(
    "script",
    [
        gap,
        item_before_started,
        wrong_last_seq,
        beyond_the_window,
        rejected_after_accepted,
        not_json,
    ],
)
async def test_a_server_that_breaks_the_protocol_is_left(script: Script) -> None:
    codes: list[int | None] = []

    async def breaking(peer: Peer) -> None:
        await script(peer)
        while isinstance(await peer.receive(), (Open, Ack)):
            pass

    async def watched(peer: Peer) -> None:
        try:
            await breaking(peer)
        finally:
            codes.append(peer.socket.close_code)

    async with serving(watched) as url, connect(url) as client:
        with pytest.raises(ConnectionLost):
            await client.open("chat", {}).wait_ended()
    assert codes == [4400]


async def test_without_flow_control_a_consumer_that_falls_behind_is_cancelled() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.say(id, *["x"] * (MAX_UNACKED_ITEMS + 1))
        await peer.receive_cancel()
        await peer.send(cancelled(id, MAX_UNACKED_ITEMS + 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        terminal = await client.open("chat", {}, window=0).wait_ended()
    assert terminal == cancelled(1, MAX_UNACKED_ITEMS + 1)


async def test_a_connection_that_takes_no_frames_is_given_up() -> None:
    async with serving(Peer.gone) as url, connect(url) as client:
        streams = [client.open("chat", {}) for _ in range(MAX_OUTGOING_FRAMES)]
        client.open("chat", {})  # the writer had no chance to run: one frame too many
        with pytest.raises(ConnectionLost, match="frames wait"):
            client.open("chat", {})
        with pytest.raises(ConnectionLost):
            await streams[0].wait_started()


async def test_leaving_a_raw_streams_block_cancels_it() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start()
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        async with client.open("chat", {}) as stream:
            await stream.wait_started()
        assert stream.terminal == cancelled(1, 0)


@pytest.mark.parametrize("window", [-1, 257])
async def test_an_impossible_window_is_refused_before_it_is_sent(window: int) -> None:
    async with serving(Peer.gone) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match="window"):
            client.open("chat", {}, window=window)


async def test_leaving_the_connection_ends_every_stream_and_leaves_no_task() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.gone()

    async with serving(script) as url:
        async with connect(url) as client:
            stream = client.open("chat", {})
            await stream.wait_started()
            assert len(client_tasks()) == 2
        with pytest.raises(ConnectionLost):
            await stream.wait_ended()
        assert client_tasks() == []


def client_tasks() -> list[str]:
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith("Client.")]
