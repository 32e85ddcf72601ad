"""Speech over a real socket, without a model: input, isolation, stops, bad requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from plait.client import SpeechStream, StreamCancelled, connect
from plait.engines.scripted.speech import tone
from plait.errors import BY_CODE, PlaitError
from tests.live.peer import peer
from tests.live.server import LiveServer, live_server


def audio_of(text: str, samples: int = 2400) -> bytes:
    return b"".join(tone(word, samples) for word in text.split())


async def letters(text: str) -> AsyncIterator[str]:
    for letter in text:
        yield letter


async def test_text_that_is_still_being_written_is_spoken_whole(speech_server: LiveServer) -> None:
    text = "One two three. Four five? Six seven eight nine ten! And the rest"
    async with connect(speech_server.ws_url) as client:
        speech = client.synthesize(letters(text), marks=True)
        chunks = [chunk async for chunk in speech]
    assert b"".join(bytes(chunk.audio) for chunk in chunks) == audio_of(text)
    assert "".join(chunk.mark.text for chunk in chunks if chunk.mark) == text


async def test_the_first_words_are_heard_while_the_text_is_not_at_its_end(
    speech_server: LiveServer,
) -> None:
    async with peer(speech_server.ws_url) as client:
        await client.speak(1)
        await client.say({"type": "input", "id": 1, "text": "Hello there. And"})
        assert await client.hear_audio(1, 2) == audio_of("Hello there.")
        await client.say({"type": "input", "id": 1, "text": " more"}, {"type": "end", "id": 1})
        assert await client.hear_audio(1, 2) == audio_of("And more")
        assert (await client.hear_until("done", 1))["usage"]["characters"] == 21


async def test_four_that_wait_for_text_keep_nobody_waiting_and_are_spoken_when_it_comes(
    speech_server: LiveServer,
) -> None:
    def no_slot_used() -> bool:
        names = ("plait_slots_used", "plait_engine_slots_used")
        return not any(speech_server.metric(name, model="scripted-speech") for name in names)

    beginnings = {1: "", 2: "One", 3: "One. ", 4: "One. And"}
    async with peer(speech_server.ws_url) as client:
        for id, text in beginnings.items():
            await client.speak(id)
            await client.say({"type": "input", "id": id, "text": text})
            await client.hear_until("started", id)
        await client.speak(5, "Me too.")
        assert await client.hear_audio(5, 2) == audio_of("Me too.")
        await asyncio.to_thread(speech_server.wait_until, no_slot_used, 20, "no slot used")
        for id in beginnings:
            more = {"type": "input", "id": id, "text": " more."}
            await client.say(more, {"type": "end", "id": id})
        ends = await client.hear_terminals(*beginnings)
    spoken = {id: end["usage"]["characters"] for id, end in ends.items()}
    assert spoken == {id: len(text + " more.") for id, text in beginnings.items()}


@pytest.mark.parametrize("sockets", [1, 4])
async def test_four_texts_at_once_are_each_their_own(
    speech_server: LiveServer, sockets: int
) -> None:
    texts = [" ".join(f"{name}{i}" for i in range(60)) for name in ("a", "b", "c", "d")]

    async def speak(texts: list[str]) -> list[bytes]:
        async with connect(speech_server.ws_url) as client:
            return await asyncio.gather(*(client.synthesize(text).collect() for text in texts))

    groups = [texts] if sockets == 1 else [[text] for text in texts]
    spoken = await asyncio.gather(*map(speak, groups))
    assert [audio for group in spoken for audio in group] == [audio_of(text) for text in texts]


async def take(speech: SpeechStream, chunks: int) -> int:
    """Milliseconds of audio in so many chunks."""
    return sum([len((await anext(speech)).audio) for _ in range(chunks)]) // 48


@pytest.mark.parametrize("frames", [1, 3, 7])
async def test_what_was_heard_and_what_was_sent_agree_to_the_word(
    speech_server: LiveServer, frames: int
) -> None:
    text = "step_ms=20 two three. Four five six. " * 20
    async with connect(speech_server.ws_url) as client:
        speech = client.synthesize(text)
        received_ms = await take(speech, frames)
        proof = await speech.cancel(heard_ms=received_ms)
        assert proof is not None
        assert proof.heard is not None
        assert proof.heard.split() == text.split()[:frames]
        assert text.startswith(proof.heard)
        assert proof.seq == speech.stream.last_seq


@pytest.mark.parametrize(
    "voice", ["nope", "", "../../x", "AF_HEART", "af_heart,,bf_emma", "af_heart:-1", "af_nova"]
)
async def test_an_unusable_voice_is_refused_before_any_work_with_those_there_are(
    speech_server: LiveServer, voice: str
) -> None:
    async with peer(speech_server.ws_url) as client:
        await client.speak(1, "Hi.", params={"voice": voice})
        error = (await client.hear_until("rejected", 1))["error"]
    assert (error["code"], error["param"]) == ("voice_not_found", "voice")
    assert error["data"] == {"voices": ["af_heart", "bf_emma"]}


@pytest.mark.parametrize(
    ("params", "code", "param"),
    [
        ({"voice": 7}, "invalid_request", "voice"),
        ({"voice": "x" * 10_000}, "invalid_request", "voice"),
        ({"speed": 0}, "invalid_request", "speed"),
        ({"speed": 9}, "invalid_request", "speed"),
        ({"language": "ja"}, "invalid_request", "language"),
        ({"language": "tlh"}, "invalid_request", "language"),
        ({"model": "../x"}, "model_not_found", "model"),
        ({"format": "mp3"}, "invalid_request", "format"),
    ],
)
async def test_a_bad_request_to_speak_is_refused_by_its_field(
    speech_server: LiveServer, params: dict[str, Any], code: str, param: str
) -> None:
    async with peer(speech_server.ws_url) as client:
        await client.speak(1, "Hi.", params=params)
        error = (await client.hear_until("rejected", 1))["error"]
    assert (error["code"], error["param"]) == (code, param)


@pytest.mark.parametrize("text", ["", " \n", "!!!", "😀", "\u200b", "—"])
async def test_a_text_with_nothing_to_speak_is_a_typed_error_and_input_of_it_an_end(
    speech_server: LiveServer, text: str
) -> None:
    async with peer(speech_server.ws_url) as client:
        await client.speak(1, text)
        assert (await client.hear_until("error", 1))["error"]["code"] == "empty_text"
        await client.speak(2)
        await client.say({"type": "end", "id": 2})
        assert (await client.hear_until("done", 2))["usage"]["audio_ms"] == 0


async def test_input_beyond_the_credit_fails_its_stream_alone(speech_server: LiveServer) -> None:
    async with peer(speech_server.ws_url) as client:
        for id in (1, 2):
            await client.speak(id)
        for _ in range(17):
            await client.say({"type": "input", "id": 1, "text": "x" * 4096})
        error = (await client.hear_until("error", 1))["error"]
        await client.say({"type": "input", "id": 2, "text": "Hello."}, {"type": "end", "id": 2})
        assert (await client.hear_until("done", 2))["usage"]["audio_ms"] == 100
    assert (error["code"], BY_CODE[error["code"]].retryable) == ("input_overflow", False)


async def test_a_flood_of_tiny_inputs_is_spoken_and_disturbs_no_one(
    speech_server: LiveServer,
) -> None:
    text = "word_ms=1 " + "a b. " * 4000
    async with connect(speech_server.ws_url) as client:
        flood = asyncio.create_task(client.synthesize(letters(text), window=256).collect())
        audio = await client.synthesize("bystander one two").collect()
        assert await flood == audio_of(text, 24)
    assert audio == audio_of("bystander one two")


async def test_a_listener_who_takes_nothing_costs_no_more_than_his_window(
    speech_server: LiveServer,
) -> None:
    def spoken() -> float:
        return speech_server.metric("plait_audio_seconds_total", model="scripted-speech")

    before = spoken()
    async with peer(speech_server.ws_url) as client:
        await client.speak(1, "step_ms=20 " + "word " * 5000, window=8)
        await client.hear_audio(1, 8)
        await client.speak(2, "step_ms=20 " + "more " * 199, window=0)
        await client.hear_until("done", 2)
        # 8 words of the one and 200 of the other, and what was under way when the window was full:
        # as many again as the other had, if nothing held it back.
        assert 20.79 < spoken() - before < 24
        await client.say({"type": "cancel", "id": 1})
        assert (await client.hear_until("cancelled", 1))["by"] == "client"


@pytest.mark.parametrize("how", ["fail_at", "raise_at", "crash_at"])
async def test_a_voice_that_breaks_is_a_typed_error_and_chats_go_on(how: str) -> None:
    with live_server(speech="scripted") as server:
        async with connect(server.ws_url) as client:
            chat = client.chat([{"role": "user", "content": "tokens=200 step_ms=5"}])
            with pytest.raises(PlaitError) as caught:
                await client.synthesize(f"One two {how}=3 four five").collect()
            assert (await chat.text()).endswith("w199 ")
        await asyncio.to_thread(server.wait_idle)
    expected = "generation_failed" if how == "fail_at" else "engine_crashed"
    assert caught.value.code == expected


async def test_shutdown_ends_a_speech_that_waits_for_its_text() -> None:
    with live_server(speech="scripted", drain_seconds=0.3) as server:
        async with connect(server.ws_url) as client:
            speech = client.synthesize(letters("Hello there. And"))
            await anext(speech)
            waiting = client.open("synthesize", {})
            await waiting.wait_started()
            assert await asyncio.to_thread(server.stop) == 0
            with pytest.raises(StreamCancelled) as caught:
                await waiting.collect()
    assert caught.value.cancelled is not None
    assert caught.value.cancelled.by == "shutdown"
