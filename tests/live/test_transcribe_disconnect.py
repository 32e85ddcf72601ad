"""A speaker who leaves stops the listening, however he leaves, and nobody else hears of it."""

from __future__ import annotations

import asyncio

import pytest

from plait.engines.scripted.hearing import WORDS, recite
from tests.live.peer import peer
from tests.live.server import LiveServer

SLOWLY = {"prompt": "step_ms=100"}  # half as fast again as speech: at it for minutes
LONG = recite(" ".join(WORDS * 2))


async def vanish(server: LiveServer, audio: bytes = LONG) -> None:
    """With a transcription at its first words, at work on the rest or waiting for more."""
    async with peer(server.ws_url) as client:
        await client.transcribe(1, params=SLOWLY)
        await client.send_audio(1, audio)
        await client.hear_until("item", 1)
        client.reset()


@pytest.mark.parametrize("words", [2, 40])
async def test_a_reset_while_listening_frees_the_slot_and_freezes_the_counter(
    listening_server: LiveServer, words: int
) -> None:
    await vanish(listening_server, LONG[: words * 6400])
    await asyncio.to_thread(listening_server.wait_idle, 10.0)
    name = ("plait_audio_seconds_total", frozenset({("model", "scripted-transcribe")}))
    heard = listening_server.metrics()[name]
    assert listening_server.metrics()[name] == heard


async def test_twenty_hang_ups_leave_both_books_at_zero(listening_server: LiveServer) -> None:
    for _ in range(5):
        await asyncio.gather(*(vanish(listening_server) for _ in range(4)))
    await asyncio.to_thread(listening_server.wait_idle, 10.0)
    assert "unknown job" not in listening_server.output


async def test_fifty_resets_leave_the_same_processes_and_a_bystanders_words(
    listening_server: LiveServer,
) -> None:
    before = {worker.pid for worker in listening_server.workers}
    text = " ".join(WORDS * 5)
    audio = recite(text)
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1)
        for i in range(17):
            await client.send_audio(1, audio[i * 32_000 : (i + 1) * 32_000])
            await asyncio.gather(*(vanish(listening_server) for _ in range(3)))
        await client.send_audio(1, audio[17 * 32_000 :])
        await client.say({"type": "end", "id": 1})
        heard = (await client.hear_transcripts(1))[1]
    assert heard.text == text
    assert {worker.pid for worker in listening_server.workers} == before


async def test_a_queued_transcription_whose_speaker_leaves_frees_its_place(
    listening_server: LiveServer,
) -> None:
    async with (
        peer(listening_server.ws_url) as busy,
        peer(listening_server.ws_url) as client,
    ):
        for id in range(1, 5):
            await busy.transcribe(id, params={"prompt": "step_ms=600000"})
            await busy.send_audio(id, LONG[:64_000])
            await busy.hear_until("started", id)
        await client.transcribe(1)
        await client.send_audio(1, LONG[:64_000])
        await client.hear_until("accepted")
        client.reset()
        await asyncio.to_thread(
            listening_server.wait_until,
            lambda: listening_server.metric("plait_streams_queued", method="transcribe") == 0,
            10.0,
            "the queue place given back",
        )
    await asyncio.to_thread(listening_server.wait_idle)


@pytest.mark.slow
@pytest.mark.waits
async def test_a_half_open_microphone_is_freed_by_ping_time_out(
    listening_server: LiveServer,
) -> None:
    async with peer(listening_server.ws_url, ping_interval=None) as client:
        await client.transcribe(1, params={"prompt": "step_ms=600000"})
        await client.send_audio(1, LONG[:64_000])
        await client.hear_until("started", 1)
        client.ws.transport.pause_reading()  # nobody answers pings, the kernel takes bytes
        took = await asyncio.to_thread(listening_server.wait_idle, 60.0)
    assert took <= 40
