"""A voice nobody listens to stops, whatever else is spoken, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from plait.client import Client, connect
from plait.wire.messages import Cancelled
from tests.live.peer import peer
from tests.live.server import LiveServer
from tests.proofs.rig import engine_gauges
from tests.proofs.sizes import FULL, HANG_UPS, SLOTS, SPEECH_CANCELS, TEST_SECONDS
from tests.proofs.speech_rig import first_audio_seconds, paragraph, speak, speaker

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

Record = Callable[[str, object], None]
LATEST_SECONDS = 0.8
RSS_GROWTH = 0.1
# Of a machine that does nothing else. Every other run shows that it works at all.
STOP_MS = 250.0 if FULL else 10_000.0
LATE_SHARE = 0.1 if FULL else 1.0  # confirmed after the terminal; the books must be at zero anyway
SAME_SECONDS = 1.0 if FULL else 4.0
BYSTANDERS = (
    ("Nobody changes a word of this.", {"voice": "af_heart", "speed": 1.5}),
    ("And this is heard as it was written.", {"voice": "bm_george", "speed": 2}),
    ("The third one speaks to its end.", {"voice": "af_heart:0.5,af_bella:0.5", "speed": 2}),
)


async def cancel_one(client: Client, rng: random.Random) -> Cancelled | None:
    """A synthesis cancelled at a random moment: before its start, in its text, in a window."""
    async with client.open("synthesize", {"text": paragraph(rng.randint(100, 900))}) as stream:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(rng.uniform(0, LATEST_SECONDS)):
                await stream.collect()
        return await stream.cancel()


async def cancel_many(server: LiveServer, count: int, seed: int) -> list[Cancelled | None]:
    async def lane(number: int) -> list[Cancelled | None]:
        rng = random.Random(1000 * seed + number)
        async with connect(server.ws_url) as client:
            return [await cancel_one(client, rng) for _ in range(count // SLOTS)]

    lanes = await asyncio.gather(*map(lane, range(SLOTS)))
    return [one for lane in lanes for one in lane]


async def test_a_long_text_stops_with_its_listener_and_the_next_one_is_not_behind_it(
    speech_server: LiveServer, record_property: Record
) -> None:
    async with connect(speech_server.ws_url) as client:
        usual = await first_audio_seconds(client, "Hello there, and welcome.")
        proofs = []
        for _ in range(3):
            speech = client.synthesize(paragraph(5000))
            await anext(speech)
            proofs.append(await speech.cancel())
        after = await first_audio_seconds(client, "Hello there, and welcome.")

    stops = [proof.stop_ms for proof in proofs if proof is not None and proof.released]
    record_property("stop_ms", stops)
    record_property(
        "first audio usually, after cancels, ms", [round(1000 * usual), round(1000 * after)]
    )
    assert len(stops) >= (1 - LATE_SHARE) * len(proofs)
    assert after < 2 * usual + SAME_SECONDS  # all of a cancelled text would take minutes


async def test_random_cancels_leave_no_slot_no_thread_and_no_memory_behind(
    speech_server: LiveServer, record_property: Record
) -> None:
    worker = speaker(speech_server)
    await cancel_many(speech_server, SPEECH_CANCELS // 5, seed=1)  # caches fill with the first use
    await asyncio.to_thread(speech_server.wait_idle, 10.0)
    before = worker.memory_info().rss
    handles = worker.num_threads(), worker.num_fds()

    ends = await cancel_many(speech_server, SPEECH_CANCELS, seed=2)

    took = await asyncio.to_thread(speech_server.wait_idle, 10.0)
    grown = worker.memory_info().rss / before - 1
    stops = [end.stop_ms for end in ends if end is not None and end.stop_ms is not None]
    record_property("cancels", len(ends))
    record_property("stop_ms p50, p95, max", spread(stops))
    record_property("released late", len(ends) - len(stops))
    record_property("idle after ms", round(1000 * took))
    record_property("worker RSS grown by %", round(100 * grown, 1))
    assert engine_gauges(speech_server) == (0, 0)
    assert (worker.num_threads(), worker.num_fds()) == handles
    assert grown < RSS_GROWTH
    assert len(stops) >= (1 - LATE_SHARE) * len(ends)
    assert spread(stops)[1] < STOP_MS


def spread(values: list[float]) -> list[float]:
    """Median, 95th percentile and maximum; of none 0."""
    return [round(float(value), 1) for value in np.percentile(values or [0.0], (50, 95, 100))]


async def disturb(
    server: LiveServer, others: Callable[[], Awaitable[object]]
) -> tuple[list[bytes], list[bytes], int]:
    """-> the bystanders' audio alone, the same while `others` come and go, and how many did."""
    async with connect(server.ws_url) as client:

        async def bystander(text: str, options: dict[str, object]) -> bytes:
            return (await speak(client, text, **options)).samples.tobytes()

        alone = [await bystander(text, options) for text, options in BYSTANDERS]
        speaking = asyncio.gather(*(bystander(text, how) for text, how in BYSTANDERS))
        disturbances = 0
        while not speaking.done():
            await others()
            disturbances += 1
        return alone, await speaking, disturbances


async def test_cancels_at_random_moments_change_no_byte_of_what_others_hear(
    speech_server: LiveServer, record_property: Record
) -> None:
    rng = random.Random(3)
    async with connect(speech_server.ws_url) as client:
        alone, beside, cancels = await disturb(speech_server, lambda: cancel_one(client, rng))

    record_property("cancels meanwhile", cancels)
    assert cancels >= 3
    assert beside == alone


async def hang_up(server: LiveServer, rng: random.Random) -> None:
    async with peer(server.ws_url) as client:
        await client.speak(1, paragraph(900))
        if rng.random() < 0.5:
            await client.hear_audio(1, 1)
        client.reset()


async def test_hang_ups_change_no_byte_of_what_others_hear_and_leave_nothing_behind(
    speech_server: LiveServer, record_property: Record
) -> None:
    worker, rng = speaker(speech_server), random.Random(4)
    await hang_up(speech_server, rng)
    handles = worker.num_threads(), worker.num_fds()

    alone, beside, meanwhile = await disturb(speech_server, lambda: hang_up(speech_server, rng))
    for _ in range(HANG_UPS - meanwhile):
        await hang_up(speech_server, rng)

    took = await asyncio.to_thread(speech_server.wait_idle, 10.0)
    record_property("hang-ups meanwhile", meanwhile)
    record_property("idle after ms", round(1000 * took))
    assert beside == alone
    assert (worker.num_threads(), worker.num_fds()) == handles
    assert speaker(speech_server).pid == worker.pid
    assert worker.is_running()
