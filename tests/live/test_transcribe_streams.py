"""Transcription over a real socket, without a model: input, isolation, stops, bad requests."""

from __future__ import annotations

import asyncio
import random
import signal
from typing import Any

import pytest

from plait.engines.scripted.hearing import WORDS, recite
from tests.live.peer import Peer, Transcript, peer
from tests.live.server import LiveServer, live_server

WINDOW = 320_000  # of 16 kHz mono PCM16
END = {"type": "end", "id": 1}


async def transcript_of(server: LiveServer, text: str, piece: int = 32_000) -> Transcript:
    async with peer(server.ws_url) as client:
        await client.transcribe(1, params={"events": True, "words": True})
        await client.send_audio(1, recite(text), piece)
        await client.say(END)
        return (await client.hear_transcripts(1))[1]


# --- what is heard -------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [7, 1601, 32_000])
async def test_audio_cut_anywhere_is_heard_whole_and_revised_until_it_is_final(
    listening_server: LiveServer, piece: int
) -> None:
    heard = await transcript_of(listening_server, "one two . three four five . six", piece)
    assert heard.finals == ["one two", "three four five", "six"]
    assert heard.events == ["speech_started", "speech_stopped"] * 3
    assert heard.end["type"] == "done"
    assert heard.end["usage"] == {"audio_ms": 2800}
    shown = [(s["index"], s["revision"]) for s in heard.segments]
    assert shown == sorted(set(shown))
    starts = [s["start"] for s in heard.segments]
    assert starts == sorted(starts)


async def test_text_comes_while_the_audio_has_not_ended(listening_server: LiveServer) -> None:
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1)
        await client.send_audio(1, recite("one two ."))
        while not (item := await client.hear_until("item"))["data"]["segment"]["is_final"]:
            pass
        assert item["data"]["segment"]["text"] == "one two"
        await client.send_audio(1, recite("three"))
        await client.say(END)
        assert (await client.hear_transcripts(1))[1].finals == ["three"]


@pytest.mark.parametrize("audio", [b"", b"\0", bytes(64_000)])
async def test_silence_or_nothing_is_done_without_an_item(
    listening_server: LiveServer, audio: bytes
) -> None:
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1, params={"events": True})
        await client.send_audio(1, audio)
        await client.say(END)
        done = await client.hear_until("done", 1)
    assert (done["seq"], done["usage"]) == (0, {"audio_ms": len(audio) // 32})


async def talk(client: Peer, texts: dict[int, str]) -> dict[int, str]:
    """Open them all, send their audio in turns, and what is heard of each."""
    for id in texts:
        await client.transcribe(id)
    audio = {id: recite(text) for id, text in texts.items()}
    for begin in range(0, max(map(len, audio.values())), 6400):
        for id in texts:
            await client.send_audio(id, audio[id][begin : begin + 6400])
    for id in texts:
        await client.say({"type": "end", "id": id})
    return {id: heard.text for id, heard in (await client.hear_transcripts(*texts)).items()}


@pytest.mark.parametrize("sockets", [1, 4])
async def test_eight_at_once_wait_for_slots_all_finish_and_are_never_mixed(
    listening_server: LiveServer, sockets: int
) -> None:
    speakers = random.Random(sockets)
    texts = {id: " ".join(speakers.choices(WORDS, k=30)) for id in range(1, 9)}

    async def talk_alone(ids: list[int]) -> dict[int, str]:
        async with peer(listening_server.ws_url) as client:
            return await talk(client, {id: texts[id] for id in ids})

    shares = [list(texts)[i::sockets] for i in range(sockets)]
    heard = await asyncio.gather(*map(talk_alone, shares))
    assert {id: text for share in heard for id, text in share.items()} == texts


# --- flow control --------------------------------------------------------------------------------


async def test_a_sender_who_keeps_to_his_credit_is_held_back_and_loses_nothing(
    listening_server: LiveServer,
) -> None:
    text = " ".join([*WORDS] * 15)  # a minute of speech
    audio, sent, acked = recite(text), 0, 0
    heard = Transcript()
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1, window=0, params={"prompt": "step_ms=1"})
        while not heard.end:
            while sent < len(audio) and sent + 32_000 <= acked + WINDOW:
                await client.send_audio(1, audio[sent : sent + 32_000])
                sent += 32_000
                if sent >= len(audio):
                    await client.say(END)
            message = await client.hear()
            if message["type"] == "input_ack":
                assert acked < message["bytes"] <= sent
                acked = message["bytes"]
            heard.take(message)
    assert heard.text == text
    assert heard.end["usage"] == {"audio_ms": 60_000}


async def test_audio_beyond_the_credit_fails_its_stream_alone(listening_server: LiveServer) -> None:
    async with peer(listening_server.ws_url) as client:
        for id in (1, 2):
            await client.transcribe(id)
        await client.transcribe(3, params={"prompt": "step_ms=600000"})
        await client.send_audio(3, bytes(WINDOW))
        await client.send_audio(3, b"\0")
        error = (await client.hear_until("error", 3))["error"]
        assert (error["code"], error["retryable"]) == ("input_overflow", False)
        assert error["data"] == {"received_bytes": 1, "credit_bytes": 0}
        for id in (1, 2):
            await client.send_audio(id, recite("one two"))
            await client.say({"type": "end", "id": id})
        heard = await client.hear_transcripts(1, 2)
    assert [heard[id].text for id in (1, 2)] == ["one two", "one two"]


async def test_a_slow_reader_skips_revisions_and_gets_every_final(
    listening_server: LiveServer,
) -> None:
    text = "one two three four five six seven eight . nine ten . eleven"
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1, window=1)
        await client.send_audio(1, recite(text))
        await client.say(END)
        await client.hear_until("item", 1)
        async with peer(listening_server.ws_url) as other:  # meanwhile all the rest is computed
            await other.transcribe(1)
            await other.send_audio(1, recite(text))
            await other.say(END)
            everything = (await other.hear_transcripts(1))[1]
        await client.say({"type": "ack", "id": 1, "seq": 1})
        heard = (await client.hear_transcripts(1))[1]
    assert heard.text == everything.text == text.replace(" .", "")
    assert heard.end["type"] == "done"


async def test_window_0_needs_no_acks(listening_server: LiveServer) -> None:
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1, window=0, params={"prompt": "step_ms=1"})
        await client.send_audio(1, recite(" ".join(WORDS * 2)))
        await client.say(END)
        done = await client.hear_until("done", 1)
    assert done["usage"] == {"audio_ms": 8000}


# --- stops ---------------------------------------------------------------------------------------


async def test_a_cancel_at_any_moment_is_one_terminal_that_gave_everything_back(
    listening_server: LiveServer,
) -> None:
    moments = random.Random(7)
    audio = recite("one two . three four . five six")
    async with peer(listening_server.ws_url) as client:
        for id in range(1, 61):
            await client.transcribe(id, params={"prompt": "step_ms=3"})
            await client.send_audio(id, audio[: moments.randrange(len(audio))], 4801)
            if id % 3 == 0:
                await client.say({"type": "end", "id": id})
            if id % 2 == 0:
                await asyncio.sleep(moments.random() * 0.05)
            await client.say({"type": "cancel", "id": id})
        ends = await client.hear_terminals(*range(1, 61))
    cancelled = [end for end in ends.values() if end["type"] == "cancelled"]
    assert len(cancelled) + sum(end["type"] == "done" for end in ends.values()) == 60
    assert len(cancelled) > 30
    assert all(set(end["wasted"]) == {"audio_ms"} for end in cancelled if end["released"])


async def test_a_cancel_that_the_engine_ignores_says_that_nothing_was_confirmed(
    listening_server: LiveServer,
) -> None:
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1, params={"prompt": "cancel_ms=1500"})
        await client.send_audio(1, recite("one two"))
        await client.hear_until("item", 1)
        await client.say({"type": "cancel", "id": 1})
        ended = await client.hear_until("cancelled", 1)
    assert (ended["released"], ended["stop_ms"], ended["wasted"]) == (False, None, None)
    assert ended["usage"]["audio_ms"] > 0


@pytest.mark.parametrize("how", ["fail_at", "raise_at", "crash_at"])
async def test_ears_that_break_are_a_typed_error_and_chats_go_on(how: str) -> None:
    with live_server(transcribe="scripted") as server:
        async with peer(server.ws_url) as client:
            await client.open(1, "tokens=100 step_ms=5", window=0)
            await client.transcribe(2, params={"prompt": f"{how}=2"})
            await client.send_audio(2, recite("one two three"))
            error = (await client.hear_until("error", 2))["error"]
            assert (await client.hear_until("done", 1))["usage"]["completion_tokens"] == 100
        await asyncio.to_thread(server.wait_idle)
        await asyncio.to_thread(server.wait_until, lambda: is_ready(server), 40, "ready again")
        assert (await transcript_of(server, "one two")).text == "one two"
    assert error["code"] == ("generation_failed" if how == "fail_at" else "engine_crashed")


def is_ready(server: LiveServer) -> bool:
    return server.get("/readyz")[0] == 200


async def test_shutdown_lets_what_ends_end_and_cancels_an_open_microphone() -> None:
    with live_server(transcribe="scripted", transcribe_slots=2, drain_seconds=60) as server:
        async with peer(server.ws_url) as client:
            for id in (1, 2):
                await client.transcribe(id)
                await client.hear_until("started", id)
            await client.transcribe(3)
            await client.hear_until("accepted", 3)
            server.process.send_signal(signal.SIGTERM)
            await client.hear_until("goaway")
            await client.send_audio(1, recite("one two three"))
            await client.say(END)
            heard = await client.hear_transcripts(1, 3)
            stopping = asyncio.create_task(asyncio.to_thread(server.stop))  # the grace is over
            heard |= await client.hear_transcripts(2)
            assert await client.hear_close() == 1001
        assert await stopping == 0
    assert (heard[1].text, heard[1].end["type"]) == ("one two three", "done")
    assert [heard[id].end["by"] for id in (2, 3)] == ["shutdown", "shutdown"]


async def test_pings_are_answered_while_the_engine_is_deep_in_a_step(
    listening_server: LiveServer,
) -> None:
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1, params={"prompt": "step_ms=600000"})
        await client.send_audio(1, recite("one two"))
        await client.hear_until("started", 1)
        for n in range(20):
            pong = await client.ws.ping()
            await client.say({"type": "ping", "n": n})
            assert (await client.hear_until("pong"))["n"] == n
            assert await pong < 5
        await client.say({"type": "cancel", "id": 1})
        assert (await client.hear_until("cancelled", 1))["by"] == "client"
    await asyncio.to_thread(listening_server.wait_idle)  # of a step of ten minutes


# --- bad requests --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "param"),
    [
        *[({"sample_rate": rate}, "sample_rate") for rate in (0, -1, "abc", 10**9, None, 7999.5)],
        ({"channels": 3}, "channels"),
        ({"encoding": "opus"}, "encoding"),
        ({"language": "tlh"}, "language"),
        ({"language": "x" * 17}, "language"),
        ({"silence_ms": 100}, "silence_ms"),
        ({"max_segment_seconds": 60}, "max_segment_seconds"),
        ({"speech_threshold": 1}, "speech_threshold"),
        ({"prompt": "x" * 1025}, "prompt"),
        ({"words": 1}, "words"),
    ],
)
async def test_a_bad_request_to_listen_is_refused_by_its_field(
    listening_server: LiveServer, params: dict[str, Any], param: str
) -> None:
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1, params=params)
        error = (await client.hear_until("rejected", 1))["error"]
    assert (error["code"], error["param"]) == ("invalid_request", param)


async def test_a_wav_files_header_is_that_streams_typed_error(
    listening_server: LiveServer,
) -> None:
    async with peer(listening_server.ws_url) as client:
        await client.transcribe(1)
        await client.send_audio(1, b"RIFF\x24\0\0\0WAVEfmt " + recite("one"))
        assert (await client.hear_until("error", 1))["error"]["code"] == "invalid_audio"
        await client.transcribe(2, params={"language": "EN-us"})
        await client.send_audio(2, recite("two"))
        await client.say({"type": "end", "id": 2})
        assert (await client.hear_transcripts(2))[2].text == "two"
