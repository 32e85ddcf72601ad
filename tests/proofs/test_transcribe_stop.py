"""A transcription nobody reads stops with its process, whatever else is decoded, and leaves
nothing behind. Measured by the processes themselves, from outside.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic

import numpy as np
import psutil
import pytest

from plait.client import Client, connect
from plait.errors import EngineCrashed, PlaitError
from plait.wire.messages import Cancelled
from tests.live.peer import peer
from tests.live.server import LiveServer, live_server
from tests.proofs.rig import engine_gauges
from tests.proofs.sizes import (
    FULL,
    HANG_UPS,
    LISTENERS,
    TEST_SECONDS,
    TRANSCRIBE_CANCELS,
    TRANSCRIBE_STOPS,
)
from tests.proofs.transcribe_rig import (
    SAMPLE_RATE,
    DeathWatch,
    Whisper,
    babble,
    likeness,
    listen,
    open_stream,
    said,
)

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

Record = Callable[[str, object], None]
# The promises, on a machine that does nothing else. Every other run shows that it works at all.
# A stream that is stopped would go on for ever, so that its process ends at all is the proof.
STOP_MS = 50.0 if FULL else 10_000.0
LATE_SHARE = 0.05 if FULL else 1.0
LOST_SECONDS = 1.0 if FULL else 20.0
LATEST_SECONDS = 1.0
RSS_GROWTH = 0.1
ALIKE = 0.7


def spread(values: list[float]) -> list[float]:
    """Median, 95th percentile and maximum; of none 0."""
    return [round(float(value), 1) for value in np.percentile(values or [0.0], (50, 95, 100))]


async def cancel_watched(
    client: Client, whisper: Whisper, rng: random.Random
) -> tuple[float, float | None]:
    """-> ms from the cancel to the end of the stream's process; the server's own `stop_ms`."""
    before = whisper.streams()
    async with open_stream(client, said(0)[0], ends=False) as stream:
        await stream.wait_started()
        process = await whisper.new_stream(before)
        await asyncio.sleep(rng.uniform(0, LATEST_SECONDS))  # the moment is what is tried
        async with DeathWatch(process) as watch:
            sent = monotonic()
            proof = await stream.cancel()
    assert watch.dead_at is not None
    assert isinstance(proof, Cancelled)
    return 1000 * (watch.dead_at - sent), proof.stop_ms


async def test_a_cancel_ends_the_streams_process_at_any_moment_of_a_decode(
    transcribe_server: LiveServer, record_property: Record
) -> None:
    whisper, rng = Whisper(transcribe_server), random.Random(5)
    url = transcribe_server.ws_url
    beside = LISTENERS - 1
    async with connect(url) as client, connect(url) as others, babble(others, whisper, beside):
        stops = [await cancel_watched(client, whisper, rng) for _ in range(TRANSCRIBE_STOPS)]

    dead = [ms for ms, _ in stops]
    told = [stop_ms for _, stop_ms in stops if stop_ms is not None]
    record_property("beside streams", beside)
    record_property("process dead after ms p50, p95, max", spread(dead))
    record_property("stop_ms p50, p95, max", spread(told))
    assert len(told) >= (1 - LATE_SHARE) * len(stops)
    assert spread(dead)[1] < STOP_MS


async def test_a_hang_up_ends_the_streams_process_as_fast(
    transcribe_server: LiveServer, record_property: Record
) -> None:
    whisper, rng = Whisper(transcribe_server), random.Random(6)
    url, dead = transcribe_server.ws_url, []
    async with connect(url) as others, babble(others, whisper, LISTENERS - 1):
        for _ in range(TRANSCRIBE_STOPS):
            before = whisper.streams()
            async with peer(url) as client:
                await client.transcribe(1)
                await client.hear_until("started", 1)
                await client.send_audio(1, said(0)[0])
                process = await whisper.new_stream(before)
                await asyncio.sleep(rng.uniform(0, LATEST_SECONDS))  # the moment is what is tried
                async with DeathWatch(process) as watch:
                    sent = monotonic()
                    client.reset()
            assert watch.dead_at is not None
            dead.append(1000 * (watch.dead_at - sent))

    record_property("process dead after ms p50, p95, max", spread(dead))
    assert spread(dead)[1] < STOP_MS


async def test_cancels_leave_no_process_no_descriptor_and_no_memory_behind(
    transcribe_server: LiveServer, record_property: Record
) -> None:
    whisper = Whisper(transcribe_server)

    async def cancel_many(count: int, seed: int) -> None:
        async def lane(number: int) -> None:
            rng = random.Random(100 * seed + number)
            async with connect(transcribe_server.ws_url) as client:
                for _ in range(-(-count // LISTENERS)):
                    async with open_stream(client, said(0)[0]) as stream:
                        await asyncio.sleep(rng.uniform(0, LATEST_SECONDS) ** 2)
                        await stream.cancel()

        await asyncio.gather(*map(lane, range(LISTENERS)))
        await asyncio.to_thread(transcribe_server.wait_idle, 10.0)

    await cancel_many(TRANSCRIBE_CANCELS // 5, seed=1)
    handles = whisper.handles()
    before = [process.memory_info().rss for process in (whisper.worker, whisper.zygote)]
    await cancel_many(TRANSCRIBE_CANCELS, seed=2)
    after = [process.memory_info().rss for process in (whisper.worker, whisper.zygote)]

    grown = [now / then - 1 for now, then in zip(after, before, strict=True)]
    record_property("cancels", TRANSCRIBE_CANCELS)
    record_property("worker, zygote RSS grown by %", [round(100 * one, 1) for one in grown])
    assert engine_gauges(transcribe_server) == (0, 0)
    await whisper.wait_for_handles(handles)
    assert handles[-1] == 0
    assert max(grown) < RSS_GROWTH


async def cancel_one(url: str, rng: random.Random) -> None:
    async with connect(url) as client, open_stream(client, said(4)[0]) as stream:
        await asyncio.sleep(rng.uniform(0, LATEST_SECONDS) ** 2)
        await stream.cancel()


async def hang_up_one(url: str, rng: random.Random) -> None:
    async with peer(url) as client:
        await client.transcribe(1)
        if rng.random() < 0.8:
            await client.send_audio(1, said(4)[0])
            await client.hear_until("started", 1)
            await asyncio.sleep(rng.uniform(0, LATEST_SECONDS) ** 2)
        client.reset()


@pytest.mark.parametrize("leave", [cancel_one, hang_up_one])
async def test_who_leaves_changes_nothing_for_another_stream_nor_for_the_server(
    transcribe_server: LiveServer,
    leave: Callable[[str, random.Random], Awaitable[None]],
    record_property: Record,
) -> None:
    whisper, rng = Whisper(transcribe_server), random.Random(7)
    url, (audio, text) = transcribe_server.ws_url, said(4, 3)
    handles = whisper.handles()
    async with connect(url) as client:
        whole = asyncio.create_task(listen(client, audio).collect())
        for _ in range(-(-HANG_UPS // 3)):
            await asyncio.gather(*(leave(url, rng) for _ in range(3)))
        heard = await whole

    took = await asyncio.to_thread(transcribe_server.wait_idle, 10.0)
    record_property("left meanwhile", HANG_UPS)
    record_property("likeness to what was said", round(likeness(heard.text, text), 3))
    record_property("idle after ms", round(1000 * took))
    assert likeness(heard.text, text) > ALIKE, heard.text
    assert [segment.index for segment in heard.segments] == list(range(len(heard.segments)))
    assert engine_gauges(transcribe_server) == (0, 0)
    assert "unknown job" not in transcribe_server.output
    assert Whisper(transcribe_server).zygote == whisper.zygote
    await whisper.wait_for_handles(handles)


async def test_a_stream_without_input_yields_its_slot_and_hears_on_when_more_comes(
    transcribe_server: LiveServer,
) -> None:
    whisper, (first, one), (second, two) = Whisper(transcribe_server), said(4), said(3)
    more = asyncio.Event()

    async def audio() -> AsyncIterator[bytes]:
        yield first
        await more.wait()
        yield second

    async with connect(transcribe_server.ws_url) as client:
        stream = client.transcribe.live(audio(), sample_rate=SAMPLE_RATE)
        heard = asyncio.create_task(stream.collect())
        await whisper.wait_until(lambda: whisper.stopped() == 1, "a process at rest")
        no_slot = lambda: engine_gauges(transcribe_server)[0] == 0  # noqa: E731
        await whisper.wait_until(no_slot, "its slot given back")
        more.set()
        text = (await heard).text

    assert likeness(text, f"{one} {two}") > ALIKE, text


# --- more streams than slots, and deaths --------------------------------------------------------


async def hear(client: Client, *sentences: int) -> tuple[float, str]:
    """-> how like its own words it was heard, and what was heard."""
    audio, text = said(*sentences)
    heard = await listen(client, audio).collect()
    return likeness(heard.text, text), heard.text


async def test_streams_beyond_the_slots_wait_and_all_hear_their_own(
    transcribe_server: LiveServer, record_property: Record
) -> None:
    clips = [(1,), (2,), (3,), (4,), (1, 4), (4, 1), (4, 2)]
    async with connect(transcribe_server.ws_url) as client:
        results = await asyncio.gather(*(hear(client, *numbers) for numbers in clips))

    foreign = [
        max(likeness(text, said(*other)[1]) for other in clips if other != own)
        for own, (_, text) in zip(clips, results, strict=True)
    ]
    record_property("streams, slots", [len(clips), LISTENERS])
    record_property("likeness, least", round(min(alike for alike, _ in results), 3))
    for (alike, text), other in zip(results, foreign, strict=True):
        assert alike > max(ALIKE, other), text


async def test_a_killed_stream_or_zygote_is_told_and_the_next_stream_hears_all(
    record_property: Record,
) -> None:
    with live_server(transcribe="whisper", transcribe_slots=2) as server:
        async with connect(server.ws_url) as client:
            whisper = await asyncio.to_thread(Whisper, server)
            stream_lost = await lose(client, whisper, lambda: whisper.streams()[0])
            zygote_lost = await lose(client, whisper, lambda: whisper.zygote)
            alike, text = await hear(client, 3)

    record_property("told after ms: stream, zygote", [round(stream_lost), round(zygote_lost)])
    assert max(stream_lost, zygote_lost) < 1000 * LOST_SECONDS
    assert alike > ALIKE, text


async def lose(client: Client, whisper: Whisper, victim: Callable[[], psutil.Process]) -> float:
    """-> ms from the kill to the error."""
    before = whisper.streams()
    async with open_stream(client, said(0)[0], ends=False) as stream:
        await stream.wait_started()
        await whisper.new_stream(before)
        killed = monotonic()
        victim().kill()
        with pytest.raises(EngineCrashed) as lost:
            await stream.collect()
    assert isinstance(lost.value, PlaitError)
    return 1000 * (monotonic() - killed)
