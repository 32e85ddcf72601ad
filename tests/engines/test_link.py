from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from plait.engines import ipc
from plait.engines.base import Command, Event, Item, Ping, Released, Start
from plait.engines.link import WorkerLink


class Wire:
    """A link and the worker's end of its socket, held by the test."""

    def __init__(self, worker: socket.socket) -> None:
        self.worker = worker
        self.now = 0.0
        self.delivered: list[list[Event]] = []
        self.give_up_at_once = False
        self.link = WorkerLink(self._deliver, clock=lambda: self.now, max_backlog_bytes=1000)

    def _deliver(self, events: list[Event]) -> None:
        self.delivered.append(events)
        if self.give_up_at_once:
            self.link.give_up("enough")

    async def worker_sends(self, *chunks: bytes) -> None:
        """Then ends, and waits until the link has seen it all."""
        for chunk in chunks:
            self.worker.sendall(chunk)
        self.worker.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(20):
            await self.link.closed.wait()

    async def worker_receives(self) -> list[Command]:
        data = await asyncio.to_thread(self.worker.recv, 1000)
        return [ipc.decode_command(payload) for payload in ipc.FrameReader().feed(data)]


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(20)
    held = Wire(theirs)
    await asyncio.get_running_loop().create_unix_connection(lambda: held.link, sock=ours)
    yield held
    held.link.give_up("the test is over")
    await held.link.closed.wait()
    theirs.close()


def item(job: int) -> Item:
    return Item(job, b"{}")


async def test_batches_are_delivered_one_per_frame_and_in_order(wire: Wire) -> None:
    batches: list[list[Event]] = [[item(1), item(2)], [Released(1, 0.0, 0, {})]]
    stream = b"".join(map(ipc.encode_events, batches))

    await wire.worker_sends(stream[:7], stream[7:])

    assert wire.delivered == batches
    assert wire.link.fault is None


async def test_an_unreadable_frame_ends_the_link_before_anything_else_is_delivered(
    wire: Wire,
) -> None:
    good = ipc.encode_events([item(1)])

    await wire.worker_sends(good + ipc.encode_frame(b"\xc1") + good)

    assert wire.delivered == [[item(1)]]
    assert wire.link.fault == "it sent an unreadable frame"


async def test_giving_up_while_a_read_is_delivered_drops_the_rest_of_it(wire: Wire) -> None:
    wire.give_up_at_once = True

    await wire.worker_sends(ipc.encode_events([item(1)]) * 3)

    assert len(wire.delivered) == 1


async def test_commands_reach_the_worker_as_frames(wire: Wire) -> None:
    wire.link.send(Start(5))

    assert await wire.worker_receives() == [Start(5)]


async def test_a_worker_that_stops_reading_is_given_up_at_the_backlog_limit(wire: Wire) -> None:
    for _ in range(1_000_000):
        wire.link.send(Start(1))

    assert wire.link.fault == "it stopped reading its commands"


async def test_sending_on_a_closed_link_does_nothing(wire: Wire) -> None:
    await wire.worker_sends()

    wire.link.send(Start(1))

    assert wire.link.fault is None


async def test_silent_beats_count_until_the_next_sign_of_life(wire: Wire) -> None:
    for _ in range(3):
        wire.link.beat()
    assert wire.link.silent_beats == 3

    wire.now = 7.0
    await wire.worker_sends(ipc.encode_events([item(1)]))

    assert (wire.link.silent_beats, wire.link.last_progress) == (0, 7.0)


async def test_each_beat_asks_for_a_sign_of_life(wire: Wire) -> None:
    wire.link.beat()
    wire.link.beat()

    assert await wire.worker_receives() == [Ping(1), Ping(2)]
