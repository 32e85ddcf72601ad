"""A listener who leaves stops the voice, however he leaves, and nobody else hears of it."""

from __future__ import annotations

import asyncio

import pytest

from plait.client import connect
from plait.engines.scripted.speech import tone
from tests.live.peer import peer
from tests.live.server import LiveServer

LONG = "step_ms=5 word " * 2000


async def vanish(server: LiveServer, text: str | None, frames: int) -> None:
    async with peer(server.ws_url) as client:
        await client.speak(1, text)
        if text is None:
            await client.say({"type": "input", "id": 1, "text": "step_ms=5 One two three. Fo"})
        await client.hear_audio(1, frames)
        client.reset()


@pytest.mark.parametrize("text", [LONG, None])
async def test_a_reset_while_speaking_frees_the_slot_and_freezes_the_counter(
    speech_server: LiveServer, text: str | None
) -> None:
    await vanish(speech_server, text, frames=3)
    await asyncio.to_thread(speech_server.wait_idle)
    name = ("plait_audio_seconds_total", frozenset({("model", "scripted-speech")}))
    spoken = speech_server.metrics()[name]
    assert speech_server.metrics()[name] == spoken


async def test_twenty_hang_ups_leave_both_books_at_zero(speech_server: LiveServer) -> None:
    for _ in range(5):
        await asyncio.gather(*(vanish(speech_server, LONG, frames=1) for _ in range(4)))
    await asyncio.to_thread(speech_server.wait_idle)
    assert "unknown job" not in speech_server.output


async def test_fifty_resets_leave_the_same_processes_and_a_bystanders_audio(
    speech_server: LiveServer,
) -> None:
    before = {worker.pid for worker in speech_server.workers}
    words = [f"word{i}" for i in range(400)]
    async with connect(speech_server.ws_url) as client:
        whole = asyncio.create_task(client.synthesize("step_ms=2 " + " ".join(words)).collect())
        for _ in range(17):
            await asyncio.gather(*(vanish(speech_server, LONG, frames=1) for _ in range(3)))
        audio = await whole
    assert audio == b"".join(tone(word, 2400) for word in ["step_ms=2", *words])
    assert {worker.pid for worker in speech_server.workers} == before


async def test_a_queued_speech_whose_listener_leaves_frees_its_place(
    speech_server: LiveServer,
) -> None:
    async with peer(speech_server.ws_url) as busy, peer(speech_server.ws_url) as client:
        for id in range(1, 5):
            await busy.speak(id, LONG)
        await client.speak(1, LONG)
        await client.hear_until("accepted")
        client.reset()
        await asyncio.to_thread(
            speech_server.wait_until,
            lambda: speech_server.metric("plait_streams_queued", method="synthesize") == 0,
            10.0,
            "the queue place given back",
        )
    await asyncio.to_thread(speech_server.wait_idle)
