"""Speech through the client: chunks and marks, text that goes up as it is written, endings."""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from plait.client import AudioChunk, ConnectionLost, StreamCancelled, connect
from plait.client.upload import Upload
from plait.errors import InvalidRequest, VoiceNotFound
from plait.wire.codec import decode_params
from plait.wire.messages import (
    Ack,
    Cancel,
    Cancelled,
    ClientMessage,
    Done,
    End,
    ErrorBody,
    Input,
    InputAck,
    Rejected,
    SynthesizeParams,
)
from tests.client.peer import TIMING, Peer, cancelled, done, serving

TONE = b"\x01\x00\xff\x7f"


async def spoken_by(peer: Peer) -> None:
    """Two sentences, the second one silent, in two frames."""
    id = await peer.start_speech()
    await peer.mark(id, 1, "Hi. ", 0.0, 0.1)
    await peer.speak(id, TONE, TONE, after=1)
    await peer.mark(id, 4, "…", 0.1, 0.1)
    await peer.send(done(id, 4))
    await peer.gone()


def facts(chunk: AudioChunk) -> tuple[bytes, int, str | None]:
    text = None if chunk.mark is None else chunk.mark.text
    return bytes(chunk.audio), chunk.start_sample, text


async def test_chunks_carry_samples_place_and_the_mark_that_begins_there() -> None:
    async with serving(spoken_by) as url, connect(url) as client:
        chunks = [chunk async for chunk in client.synthesize("Hi. …", marks=True)]
    assert [facts(chunk) for chunk in chunks] == [
        (TONE, 0, "Hi. "),
        (TONE, 2, None),
        (b"", 4, "…"),
    ]
    assert chunks[0].samples.tolist() == [1, 32767]
    assert {chunk.sample_rate for chunk in chunks} == {24000}


async def test_params_travel_as_asked_and_only_those() -> None:
    opened: list[SynthesizeParams] = []

    async def script(peer: Peer) -> None:
        message = await peer.receive_open()
        params = decode_params(message.method, message.params)
        assert isinstance(params, SynthesizeParams)
        opened.append(params)
        error = ErrorBody.of(VoiceNotFound("no such voice", data={"voices": ["a"]}))
        await peer.send(Rejected(message.id, error))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(VoiceNotFound) as caught:
            await client.synthesize("Hi", voice="v", speed=2, language="es").collect()
    assert opened == [SynthesizeParams("Hi", voice="v", speed=2, language="es")]
    assert caught.value.data == {"voices": ["a"]}


async def test_a_wav_file_has_the_right_lengths(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    for target in (buffer, tmp_path / "a.wav", str(tmp_path / "b.wav")):
        async with serving(spoken_by) as url, connect(url) as client:
            await client.synthesize("Hi. …").to_wav(target)
    files = [
        buffer.getvalue(),
        (tmp_path / "a.wav").read_bytes(),
        (tmp_path / "b.wav").read_bytes(),
    ]
    assert len(set(files)) == 1
    with wave.open(io.BytesIO(files[0])) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 1, 2)
        assert file.readframes(file.getnframes()) == TONE * 2


async def test_half_a_speech_is_never_written(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.speak(await peer.start_speech(), TONE)
        peer.socket.transport.abort()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ConnectionLost):
            await client.synthesize("Hi").to_wav(tmp_path / "a.wav")
    assert not (tmp_path / "a.wav").exists()


async def test_cancel_tells_what_was_heard_and_returns_its_text() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech()
        await peer.speak(id, TONE)
        assert await peer.receive() == Cancel(id, 250.0)
        usage = {"characters": 2, "audio_ms": 1}
        await peer.send(Cancelled(id, 1, "client", True, 1.0, {}, usage, TIMING, "Hi"))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        speech = client.synthesize("Hi there")
        await anext(speech)
        proof = await speech.cancel(heard_ms=250)
    assert proof is not None
    assert proof.heard == "Hi"


async def test_leaving_the_block_cancels_on_the_wire() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech()
        await peer.speak(id, TONE)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        async with client.synthesize("Hi") as speech:
            async for _ in speech:
                break
        assert isinstance(speech.terminal, Cancelled)


# --- text that is still being written ----------------------------------------------------------


class Source:
    """Pieces of text that come as they are, then an end, an error, or a wait without end."""

    def __init__(self, *pieces: str, then: Exception | None = None, hang: bool = False) -> None:
        self.pieces = pieces
        self.then = then
        self.hang = hang
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            for piece in self.pieces:
                yield piece
            if self.hang:
                await asyncio.Event().wait()
            if self.then is not None:
                raise self.then
        finally:
            self.closed = True


async def receive_text(peer: Peer, size_bytes: int) -> str:
    """Input of that many bytes in all."""
    text = ""
    while len(text.encode()) < size_bytes:
        message = await peer.receive()
        assert isinstance(message, Input), message
        text += message.text or ""
    return text


async def test_pieces_go_up_as_they_come_and_end_follows() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        assert [await peer.receive() for _ in range(3)] == [
            Input(id, "Grüße, "),
            Input(id, "alle."),
            End(id),
        ]
        await peer.send(done(id, 0))
        await peer.gone()

    source = Source("Grüße, ", "", "alle.")
    async with serving(script) as url, connect(url) as client:
        assert await client.synthesize(source).collect() == b""
    assert source.closed


async def test_no_more_goes_up_than_the_credit_allows() -> None:
    sent: list[ClientMessage] = []

    async def send(message: ClientMessage) -> None:
        sent.append(message)

    upload = Upload(1, send)
    task = asyncio.create_task(upload.run(Source("漢字" * 3), lambda: None))
    seen = []
    for limit_bytes in (0, 10, 16, 13, 25):
        upload.grant(limit_bytes)
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append("".join(m.text or "" for m in sent if isinstance(m, Input)))
    await task
    assert seen == ["", "漢字漢", "漢字漢字漢", "漢字漢字漢", "漢字" * 3]
    assert sent[-1] == End(1)


@pytest.mark.parametrize("ending", ["done", "cancelled", "lost"])
async def test_the_source_is_closed_when_the_stream_ends(ending: str) -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await receive_text(peer, 1)
        ends: dict[str, Any] = {"done": done(id, 0), "cancelled": cancelled(id, 0, "deadline")}
        if ending == "lost":
            peer.socket.transport.abort()
        else:
            await peer.send(ends[ending])
            await peer.gone()

    source = Source("a", hang=True)
    async with serving(script) as url, connect(url) as client:
        speech = client.synthesize(source)
        if ending == "done":
            await speech.collect()
        else:
            with pytest.raises((StreamCancelled, ConnectionLost)):
                await speech.collect()
    assert source.closed


async def test_leaving_the_block_closes_a_source_that_waits() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await receive_text(peer, 1)
        await peer.speak(id, TONE)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 1))
        await peer.gone()

    source = Source("a", hang=True)
    async with serving(script) as url, connect(url) as client:
        async with client.synthesize(source) as speech:
            await anext(speech)
        await asyncio.sleep(0)
        assert source.closed


async def test_an_error_of_the_source_cancels_and_comes_out_where_it_is_consumed() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await receive_text(peer, 1)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ZeroDivisionError):
            await client.synthesize(Source("a", then=ZeroDivisionError())).collect()


async def test_text_no_json_can_carry_is_the_sources_error() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await peer.receive_cancel()
        await peer.send(cancelled(id, 0))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(InvalidRequest, match="surrogate"):
            await client.synthesize(Source("\ud800")).collect()


async def test_a_text_too_long_for_a_frame_goes_up_as_input() -> None:
    text = "漢字かな。 " * 100_000

    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64 * 1024)
        size, got = len(text.encode()), 0
        while got < size:
            message = await peer.receive()
            assert isinstance(message, Input)
            got += len((message.text or "").encode())
            await peer.send(InputAck(id, got, 64 * 1024))
        assert await peer.receive() == End(id)
        await peer.send(Done(id, 0, "stop", {}, TIMING))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        assert await client.synthesize(text).collect() == b""


async def test_a_source_that_never_waits_does_not_crowd_out_the_others() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64 * 1024)
        await receive_text(peer, 20_000)
        message = await peer.receive()
        assert isinstance(message, End)
        await peer.speak(id, *[TONE] * 64)
        assert isinstance(await peer.receive(), Ack)
        await peer.send(done(id, 64))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        assert await client.synthesize(Source(*"a" * 20_000)).collect() == TONE * 64


async def test_confirmed_input_that_was_never_sent_breaks_the_connection() -> None:
    async def script(peer: Peer) -> None:
        id = await peer.start_speech(64)
        await peer.send(InputAck(id, 99, 64))
        await peer.gone()

    async with serving(script) as url, connect(url) as client:
        with pytest.raises(ConnectionLost, match=r"plait\.v1"):
            await client.synthesize(Source(hang=True)).collect()
