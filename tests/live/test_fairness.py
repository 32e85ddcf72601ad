"""A connection that keeps every slot busy is no other's problem."""

from __future__ import annotations

import asyncio
import contextlib

from plait.client import Client, Stream, StreamCancelled, connect
from tests.live.server import live_server

ENDLESS = "tokens=10000000 step_ms=20"
SLOTS = 2


def ask(client: Client, script: str) -> Stream:
    return client.open("chat", {"messages": [{"role": "user", "content": script}]})


class Reading:
    """A stream that is read until it is cancelled; `more` waits for its next item."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._came = asyncio.Event()

    async def run(self) -> None:
        with contextlib.suppress(StreamCancelled):
            async for _ in self.stream:
                self._came.set()

    async def more(self) -> None:
        self._came.clear()
        await self._came.wait()


async def test_a_short_chat_gets_a_slot_of_an_endless_flood_whose_streams_all_go_on() -> None:
    with live_server(slots=SLOTS, max_tokens=1 << 18, context_tokens=1 << 20) as server:
        async with (
            connect(server.ws_url) as hog,
            connect(server.ws_url) as visitor,
            asyncio.TaskGroup() as tasks,
        ):
            flood = [Reading(ask(hog, ENDLESS)) for _ in range(SLOTS)]
            lanes = [tasks.create_task(reading.run()) for reading in flood]
            for reading in flood:
                await reading.more()

            answer = await ask(visitor, "tokens=3").collect()

            for reading in flood:
                await reading.more()
                reading.stream.cancel_nowait()
            await asyncio.wait(lanes)
        server.wait_idle()
    assert len(answer) == 3
