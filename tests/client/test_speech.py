"""Speech through the client: chunks and marks, files, what was heard."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import pytest

from plait.client import AudioChunk, ConnectionLost, connect
from plait.errors import VoiceNotFound
from plait.wire.codec import decode_params
from plait.wire.messages import (
    Cancel,
    Cancelled,
    ErrorBody,
    Rejected,
    SynthesizeParams,
)
from tests.client.peer import TIMING, TONE, Peer, cancelled, done, serving


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
