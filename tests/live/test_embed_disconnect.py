"""A client who leaves stops its embedding, however it leaves, and nobody else hears of it."""

from __future__ import annotations

import asyncio

from plait.client import connect
from tests.live.peer import Peer, peer
from tests.live.server import LiveServer

SLOWLY = "step_ms=50 burst=4"
MODEL = "scripted-embed"
TEXTS = [SLOWLY, *(f"text {number}" for number in range(5000))]


async def vanish(server: LiveServer, *, by_input: bool = False) -> None:
    """In the midst of a batch, with most of its texts still to be done."""
    async with peer(server.ws_url) as client:
        await begin(client, 1, by_input=by_input)
        await client.hear_rows(1)
        client.reset()


async def begin(client: Peer, id: int, *, by_input: bool = False) -> None:
    await client.embed(id, None if by_input else TEXTS)
    if by_input:
        await client.say({"type": "input", "id": id, "texts": TEXTS})


async def test_a_reset_mid_batch_frees_the_slot_and_freezes_the_counter(
    embed_server: LiveServer,
) -> None:
    for by_input in (False, True):
        await vanish(embed_server, by_input=by_input)
        await asyncio.to_thread(embed_server.wait_idle, 10.0)
        done = embed_server.metric("plait_texts_total", model=MODEL)
        async with connect(embed_server.ws_url) as client:
            await client.embed(["step_ms=60", "a", "b"]).collect()
        assert embed_server.metric("plait_texts_total", model=MODEL) == done + 3


async def test_a_polite_close_ends_it_as_well(embed_server: LiveServer) -> None:
    async with peer(embed_server.ws_url) as client:
        await begin(client, 1)
        await client.hear_rows(1)
    await asyncio.to_thread(embed_server.wait_idle, 10.0)


async def test_twenty_hang_ups_leave_both_books_at_zero_and_a_bystanders_vectors(
    embed_server: LiveServer,
) -> None:
    before = {worker.pid for worker in embed_server.workers}
    texts = ["step_ms=5", *(f"own {number}" for number in range(300))]
    async with connect(embed_server.ws_url) as client:
        whole = asyncio.create_task(client.embed(texts).collect())
        for _ in range(7):
            await asyncio.gather(*(vanish(embed_server, by_input=n % 2 == 1) for n in range(3)))
        answers = await whole
    assert [answer.index for answer in answers] == list(range(301))
    assert {worker.pid for worker in embed_server.workers} == before
    assert "unknown job" not in embed_server.output


async def test_a_queued_embedding_whose_client_leaves_frees_its_place(
    embed_server: LiveServer,
) -> None:
    async with peer(embed_server.ws_url) as busy, peer(embed_server.ws_url) as client:
        for id in range(1, 5):
            await begin(busy, id)
            await busy.hear_until("started", id)
        await begin(client, 1)
        await client.hear_until("accepted")
        client.reset()
        await asyncio.to_thread(
            embed_server.wait_until,
            lambda: embed_server.metric("plait_streams_queued", method="embed") == 0,
            10.0,
            "the queue place given back",
        )
    await asyncio.to_thread(embed_server.wait_idle, 10.0)
