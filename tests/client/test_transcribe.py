"""Transcription through the client: audio up, segments down, and how that ends."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from plait.client import (
    ConnectionLost,
    Segment,
    SpeechEvent,
    StreamCancelled,
    Transcription,
    Word,
    connect,
)
from plait.errors import InvalidAudio, InvalidRequest, PlaitError
from plait.wire.codec import decode_params
from plait.wire.frames import HEADER_BYTES
from plait.wire.messages import (
    Cancelled,
    End,
    ErrorBody,
    InputAck,
    Rejected,
    StreamFailed,
    TranscribeParams,
)
from tests.client.peer import TIMING, WELCOME, Peer, cancelled, done, serving


class Recorder:
    """Pieces of audio that come as they are, then an end, an error, or a wait without end."""

    def __init__(self, *pieces: Any, then: Exception | None = None, hang: bool = False) -> None:
        self.pieces = pieces
        self.then = then
        self.hang = hang
        self.asked = 0
        self.closed = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for piece in self.pieces:
                self.asked += 1
                yield piece
            if self.hang:
                await asyncio.Event().wait()
            if self.then is not None:
                raise self.then
        finally:
            self.closed.set()


def segment(text: str, revision: int, **fields: Any) -> Segment:
    common: dict[str, Any] = {"index": 0, "start": 0.5, "end": 1.5, "lag_ms": 180.0}
    return Segment(revision=revision, text=text, **(common | {"is_final": False} | fields))


async def heard_by(peer: Peer) -> None:
    """Four bytes of audio in which one thing is said."""
    id = await peer.start_transcription()
    await peer.receive_audio(4)
    assert await peer.receive() == End(id)
    words = [{"text": "Hello", "start": 0.5, "end": 1.0}]
    await peer.send_item(id, 1, {"event": "speech_started", "at": 0.5})
    await peer.hear(id, 2, "Hello wor", stable="Hello", words=words, language="en")
    await peer.hear(id, 3, "Hello world.", is_final=True)
    await peer.send_item(id, 4, {"event": "speech_stopped", "at": 1.5})
    await peer.send(done(id, 4))
    await peer.gone()


async def said_nothing(peer: Peer, size_bytes: int) -> bytes:
    """Take so much audio and the end, answer done; the audio."""
    id = await peer.start_transcription()
    payloads = await peer.receive_audio(size_bytes)
    assert await peer.receive() == End(id)
    await peer.send(done(id, 0))
    await peer.gone()
    return b"".join(payloads)


async def test_segments_and_events_come_in_order_with_all_that_they_hold() -> None:
    async with serving(heard_by) as url, connect(url) as client:
        stream = client.transcribe.live(Recorder(b"1234"), sample_rate=16000, events=True)
        items = [item async for item in stream]
    assert items == [
        SpeechEvent("speech_started", 0.5),
        segment("Hello wor", 2, stable="Hello", words=(Word("Hello", 0.5, 1.0),), language="en"),
        segment("Hello world.", 3, is_final=True),
        SpeechEvent("speech_stopped", 1.5),
    ]


async def test_the_whole_is_the_finals_that_are_not_empty() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_transcription()
        await peer.hear(id, 1, "So,", is_final=True)
        await peer.hear(id, 2, "eh", index=1)
        await peer.hear(id, 3, "", index=1, is_final=True)
        await peer.hear(id, 4, "it is.", index=2, is_final=True)
        await peer.send(done(id, 4))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        heard = await client.transcribe.live(Recorder(hang=True), sample_rate=16000).collect()
    assert heard == Transcription(
        "So, it is.",
        (segment("So,", 1, is_final=True), segment("it is.", 4, index=2, is_final=True)),
    )


async def test_params_travel_as_asked_and_only_those() -> None:
    opened: list[TranscribeParams] = []

    async def script(peer: Peer) -> None:
        message = await peer.receive_open()
        params = decode_params(message.method, message.params)
        assert isinstance(params, TranscribeParams)
        opened.append(params)
        await peer.send(Rejected(message.id, ErrorBody.of(InvalidRequest("no", param="x"))))
        await peer.gone()

    asked: dict[str, Any] = {
        "sample_rate": 48000,
        "channels": 2,
        "encoding": "pcm_f32le",
        "language": "de",
        "interim": False,
        "words": True,
        "prompt": "Plait",
        "silence_ms": 300,
        "max_segment_seconds": 8,
        "speech_threshold": 0.4,
    }
    async with serving(script) as url, connect(url) as client:
        with pytest.raises(InvalidRequest):
            await client.transcribe.live(Recorder(b"12"), **asked).collect()
    assert opened == [TranscribeParams(**asked)]


# --- audio on its way up -----------------------------------------------------------------------


async def test_pieces_of_any_size_go_up_in_order_in_frames_the_server_reads() -> None:
    pieces: list[bytes | bytearray | memoryview] = [
        b"1",
        b"",
        bytes(range(256)) * 2000,
        bytearray(b"234"),
        memoryview(b"5678"),
    ]
    whole = b"".join(pieces)
    payloads: list[bytes] = []

    async def script(peer: Peer) -> None:
        id = await peer.start_transcription()
        payloads.extend(await peer.receive_audio(len(whole)))
        assert await peer.receive() == End(id)
        await peer.send(done(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        await client.transcribe.live(Recorder(*pieces), sample_rate=16000).collect()
    assert b"".join(payloads) == whole
    assert max(map(len, payloads)) + HEADER_BYTES <= WELCOME.limits.max_binary_bytes


async def test_a_source_faster_than_the_server_waits_for_its_credit() -> None:
    source = Recorder(*[b"x" * 100] * 10)
    asked: list[int] = []

    async def script(peer: Peer) -> None:
        id = await peer.start_transcription(window_bytes=250)
        await peer.receive_audio(250)
        asked.append(source.asked)
        await peer.send(InputAck(id, 250, 250))
        await peer.receive_audio(250)
        asked.append(source.asked)
        await peer.send(InputAck(id, 500, 1000))
        await peer.receive_audio(500)
        await peer.send(done(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        await client.transcribe.live(source, sample_rate=16000).collect()
    assert asked[0] == 3
    assert asked[1] in (5, 6)  # it may be asked again before the frame is read


@pytest.mark.parametrize("size_bytes", [1, 3, 1601])
async def test_buffers_of_samples_go_up_as_their_bytes(size_bytes: int) -> None:
    samples = array("h", range(-50, 50))
    data = samples.tobytes()
    cut = [data[at : at + size_bytes] for at in range(0, len(data), size_bytes)]
    got: list[bytes] = []

    async def script(peer: Peer) -> None:
        got.append(await said_nothing(peer, 2 * len(data)))

    source = Recorder(samples, *cut)
    async with serving(script) as url, connect(url) as client:
        await client.transcribe.live(source, sample_rate=16000).collect()
    assert got == [2 * data]


async def test_samples_that_are_not_as_announced_are_refused_before_they_are_sent() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_transcription()
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    source = Recorder(array("d", [0.0]))
    async with serving(script) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match=r"'d', not pcm_s16le"):
            await client.transcribe.live(source, sample_rate=16000).collect()
    assert source.closed.is_set()


def blocking(pieces: list[bytes]) -> Callable[[], Any]:
    left = iter(pieces)
    return lambda: next(left, None)


def waiting(pieces: list[bytes]) -> Callable[[], Any]:
    left = iter(pieces)

    async def take() -> bytes:
        return next(left, b"")

    return take


@pytest.mark.parametrize("kind", [blocking, waiting])
async def test_a_callable_is_called_until_it_gives_nothing(
    kind: Callable[[list[bytes]], Callable[[], Any]],
) -> None:
    got: list[bytes] = []

    async def script(peer: Peer) -> None:
        got.append(await said_nothing(peer, 4))

    async with serving(script) as url, connect(url) as client:
        source = kind([b"12", b"34"])
        await client.transcribe.live(source, sample_rate=16000).collect()
    assert got == [b"1234"]


async def test_what_is_no_source_is_said_at_once() -> None:
    async with serving(Peer.gone) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match=r"transcribe\.file"):
            client.transcribe.live(b"1234", sample_rate=16000)  # type: ignore[call-overload]


# --- endings -----------------------------------------------------------------------------------


async def test_leaving_the_block_cancels_on_the_wire_and_closes_the_source() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_transcription()
        await peer.receive_audio(4)
        await peer.hear(id, 1, "Hel")
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    source = Recorder(b"1234", hang=True)
    async with serving(script) as url, connect(url) as client:
        async with client.transcribe.live(source, sample_rate=16000) as stream:
            async for _ in stream:
                break
        assert isinstance(stream.terminal, Cancelled)
        await source.closed.wait()
        assert not client.live_ids


async def test_a_lost_connection_raises_after_what_had_come() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_transcription()
        await peer.receive_audio(4)
        await peer.hear(id, 1, "Hello.", is_final=True)
        await peer.answer_ping()
        peer.socket.transport.abort()

    source = Recorder(b"1234", hang=True)
    async with serving(script) as url, connect(url) as client:
        stream = client.transcribe.live(source, sample_rate=16000)
        assert isinstance(first := await anext(stream), Segment)
        await client.ping()
        with pytest.raises(ConnectionLost):
            await anext(stream)
        await source.closed.wait()
    assert first.text == "Hello."
    assert stream.terminal is None


async def test_an_error_of_the_source_cancels_and_comes_out_where_it_is_consumed() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_transcription()
        await peer.receive_audio(2)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    source = Recorder(b"12", then=ZeroDivisionError())
    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ZeroDivisionError):
            await client.transcribe.live(source, sample_rate=16000).collect()


@pytest.mark.parametrize("ending", ["error", "deadline"])
async def test_the_servers_own_endings_raise_and_close_the_source(ending: str) -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_transcription()
        await peer.receive_audio(4)
        error = ErrorBody.of(InvalidAudio("that is a WAV header"))
        if ending == "error":
            await peer.send(StreamFailed(id, 0, error, {"audio_ms": 0}, TIMING))
        else:
            await peer.send(cancelled(id, 0, "deadline"))
        await peer.gone()

    source = Recorder(b"RIFF", hang=True)
    expected: type[PlaitError] = InvalidAudio if ending == "error" else StreamCancelled
    async with serving(script) as url, connect(url) as client:
        with pytest.raises(expected):
            await client.transcribe.live(source, sample_rate=16000).collect()
        await source.closed.wait()


async def test_a_hundred_streams_that_are_left_leave_nothing_behind() -> None:
    async def script(peer: Peer) -> None:
        for _ in range(100):
            id = await peer.start_transcription()
            await peer.receive_audio(2)
            await peer.hear(id, 1, "Hel")
            await peer.receive_cancel()
            await peer.send(cancelled(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        for _ in range(100):
            source = Recorder(b"12", hang=True)
            async with client.transcribe.live(source, sample_rate=16000) as stream:
                await anext(stream)
            await source.closed.wait()
        assert not client.live_ids
