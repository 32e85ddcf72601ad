"""The gateway bench's client: frames cut by hand, items counted, acks in time."""

from __future__ import annotations

import asyncio

import pytest
from websockets.frames import Frame, Opcode

from plait.bench.gateway.bare import item_text
from plait.bench.gateway.reading import Flow, Socket, Tally, client_frame
from plait.bench.serving import BenchError


class Wire(asyncio.Transport):
    """What the client writes, as text."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False


async def upgraded(item_bytes: int = 8) -> tuple[Socket, Wire]:
    wire, socket = Wire(), Socket(Tally(item_bytes))
    socket.connection_made(wire)
    socket.data_received(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    return socket, wire


def server_frame(text: str) -> bytes:
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=False)


async def test_items_are_counted_however_the_frames_are_cut() -> None:
    socket, _ = await upgraded()
    sent = b"".join(server_frame(item_text(1, seq, "w".ljust(8))) for seq in range(1, 4))

    for at in range(len(sent)):
        socket.data_received(sent[at : at + 1])

    assert (socket.tally.frames, socket.tally.items) == (3, 3)


async def test_texts_that_came_joined_count_one_by_one() -> None:
    socket, _ = await upgraded()
    socket.data_received(server_frame(item_text(1, 1, "w1".ljust(8) * 40)))
    assert (socket.tally.frames, socket.tally.items) == (1, 40)


async def test_acks_leave_by_quarters_of_the_window() -> None:
    socket, wire = await upgraded()
    socket.flows[5] = Flow(5, window=8)

    socket.data_received(server_frame(item_text(5, 1, "w".ljust(8))))
    assert wire.written == b""
    socket.data_received(server_frame(item_text(5, 2, "w".ljust(8))))

    assert b'{"type":"ack","id":5,"seq":2}' in wire.written
    assert socket.flows[5].most_outstanding == 2


async def test_a_late_ack_counts_as_outstanding_until_it_leaves() -> None:
    socket, wire = await upgraded()
    flow = socket.flows[5] = Flow(5, window=4, delay_seconds=0.001)

    for seq in (1, 2, 3):
        socket.data_received(server_frame(item_text(5, seq, "w".ljust(8))))
    outstanding = flow.most_outstanding
    while flow.confirmed < 3:  # noqa: ASYNC110 - nothing tells when a late ack has left
        await asyncio.sleep(0.001)

    assert outstanding == 3
    assert wire.written.count(b'"ack"') == 3


async def test_an_item_says_how_old_it_is() -> None:
    socket, _ = await upgraded(item_bytes=20)
    flow = socket.flows[1] = Flow(1, window=0, stamps_ns=[])
    socket.data_received(server_frame(item_text(1, 1, "7".ljust(20) + "9".ljust(20))))
    assert flow.stamps_ns is not None
    assert flow.stamps_ns[0] - flow.stamps_ns[1] == 2


async def test_a_stream_that_fails_is_the_measurements_failure() -> None:
    socket, _ = await upgraded()
    socket.open("tokens=1", window=1, max_tokens=1)
    socket.data_received(server_frame('{"type":"rejected","id":1,"error":{"code":"queue_full"}}'))
    with pytest.raises(BenchError, match="queue_full"):
        await socket.tally.until(lambda: False, "a start")


@pytest.mark.parametrize("size", [0, 125, 126, 60_000])
async def test_its_frames_are_read_by_the_library(size: int) -> None:
    payload = b"x" * size
    parsed = _parse(client_frame(payload))
    assert parsed.data == payload


def _parse(data: bytes) -> Frame:
    from websockets.streams import StreamReader

    reader = StreamReader()
    reader.feed_data(data)
    parsing = Frame.parse(reader.read_exact, mask=True)
    with pytest.raises(StopIteration) as end:
        next(parsing)
    frame: Frame = end.value.value
    return frame
