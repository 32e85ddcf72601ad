"""The Python client and the gateway together: recordings of several kinds, and a source held back.

The scripted engine hears which words are in the audio, so none can be lost or mixed up.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator

import pytest

from plait.client import Segment, SpeechEvent, connect
from plait.client.wav import wav
from plait.engines.scripted.hearing import recite
from tests.live.server import LiveServer, live_server

SAID = "one two . three four five . six"
HEARD = "one two three four five six"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(transcribe="scripted") as running:
        yield running


def as_floats(audio: bytes, sample_rate: int, channels: int) -> bytes:
    """A WAV file of 32-bit floats."""
    width = 4 * channels
    facts = struct.pack("<HHIIHH", 3, channels, sample_rate, sample_rate * width, width, 32)
    chunks = b"fmt " + struct.pack("<I", len(facts)) + facts
    chunks += b"data" + struct.pack("<I", len(audio)) + audio
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


@pytest.mark.parametrize(
    "file",
    [
        wav(recite(SAID), 16_000),
        wav(recite(SAID, 44_100, channels=2), 44_100, 2),
        as_floats(recite(SAID, 48_000, "pcm_f32le", 2), 48_000, 2),
    ],
    ids=["16 kHz", "44.1 kHz stereo", "48 kHz stereo, floats"],
)
async def test_a_recording_of_any_kind_is_heard_word_by_word(
    server: LiveServer, file: bytes
) -> None:
    async with connect(server.ws_url) as client:
        heard = await client.transcribe.file(file, words=True)
    assert heard.text == HEARD
    words = [word for segment in heard.segments for word in segment.words or ()]
    assert [word.text for word in words] == HEARD.split()
    assert [word.start for word in words] == sorted(word.start for word in words)


async def test_audio_many_times_longer_than_the_credit_arrives_whole(server: LiveServer) -> None:
    text = " . ".join(["seven eight"] * 60)  # more than a minute of audio, at once

    async def source() -> AsyncIterator[bytes]:
        yield await asyncio.to_thread(recite, text)

    async with connect(server.ws_url) as client:
        heard = await client.transcribe.live(source(), sample_rate=16_000).collect()
    assert len(heard.segments) == 60
    assert {segment.text for segment in heard.segments} == {"seven eight"}


async def test_text_comes_while_the_source_goes_on(server: LiveServer) -> None:
    shown = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        yield await asyncio.to_thread(recite, "nine ten")
        await shown.wait()  # nothing is final without the pause, so this must be an interim
        yield await asyncio.to_thread(recite, " . one")

    items: list[Segment | SpeechEvent] = []
    async with (
        connect(server.ws_url) as client,
        client.transcribe.live(source(), sample_rate=16_000, events=True) as stream,
    ):
        async for item in stream:
            items.append(item)
            if isinstance(item, Segment):
                shown.set()
    segments = [item for item in items if isinstance(item, Segment)]
    assert not segments[0].is_final
    assert [item.text for item in segments if item.is_final] == ["nine ten", "one"]
    events = [item.event for item in items if isinstance(item, SpeechEvent)]
    assert events == ["speech_started", "speech_stopped"] * 2


async def test_leaving_gives_everything_back_and_the_next_stream_is_heard(
    server: LiveServer,
) -> None:
    async def source() -> AsyncIterator[bytes]:
        while True:
            yield await asyncio.to_thread(recite, SAID)

    async with connect(server.ws_url) as client:
        async with client.transcribe.live(source(), sample_rate=16_000) as stream:
            await anext(stream)
        assert (await client.transcribe.file(wav(recite("two"), 16_000))).text == "two"
    await asyncio.to_thread(server.wait_idle)
