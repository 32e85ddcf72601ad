"""Whatever comes in as a text to speak or as a way to speak it: audio or a typed end, soon.

Over the raw wire, with the real front end and model; every message may be as broken as it likes.
"""

# ruff: noqa: RUF001 -- what is odd is what is tested
from __future__ import annotations

import asyncio
import json
from time import monotonic
from typing import Any

import pytest

from plait.client import connect
from tests.live.peer import Peer, peer
from tests.live.server import LiveServer
from tests.proofs.rig import watched_cpu
from tests.proofs.sizes import FULL, TEST_SECONDS
from tests.proofs.speech_rig import speak, speaker

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

# Half a second where nothing else runs.
SOON_SECONDS = 2.0 if FULL else 10.0
WATCHED_SECONDS = 0.5
IDLE_CPU_SECONDS = 0.2
SILENT = ["", " ", "\n", "!!!", "😀", "\u200b", "—", "\x00\x01\x1f", "...", "👩‍👩‍👧‍👦 🎉", "\ufeff"]
ODD = [
    "button kitten written",
    "\x00\x07Hello\x1b[31m there\x7f",
    "ʔ ɸ ʘ ǁ said həlˈO",
    "مرحبا means hello",
    "👩‍👩‍👧‍👦 we are four 漢字",
    "<break time='10s'/> [pause](/ˈx/) {hello}",
    "1" * 24,
    "é" + "\u0301" * 200,
]
# Of a megabyte; what a clause can be cut at, or not, comes first.
UNITS = ["word ", "word", "😀", "A.", "!", "1", "a.b/", "\n"][: None if FULL else 4]
BAD_PARAMS = [
    ('"speed":0', "invalid_request", "speed"),
    ('"speed":9', "invalid_request", "speed"),
    ('"speed":NaN', "invalid_request", "speed"),
    ('"speed":1e999', "invalid_request", "speed"),
    ('"speed":"fast"', "invalid_request", "speed"),
    ('"voice":"nope"', "voice_not_found", "voice"),
    ('"voice":""', "voice_not_found", "voice"),
    ('"voice":"../../x"', "voice_not_found", "voice"),
    ('"voice":"AF_HEART"', "voice_not_found", "voice"),
    ('"voice":"af_heart:0,bf_emma:0"', "voice_not_found", "voice"),
    ('"voice":7', "invalid_request", "voice"),
    (f'"voice":"{"x" * 10_000}"', "invalid_request", "voice"),
    ('"text":"\\ud800"', "invalid_request", "text"),
    ('"text":"half \\udfff a pair"', "invalid_request", "text"),
    ('"text":7', "invalid_request", "text"),
]


async def end_of(client: Peer, id: int) -> tuple[dict[str, Any], float]:
    """The stream's terminal, whatever it is, and seconds until it came."""
    begin = monotonic()
    ends = await client.hear_terminals(id)
    return ends[id], monotonic() - begin


async def assert_at_rest(server: LiveServer) -> None:
    """Nobody computes any more."""
    await asyncio.to_thread(server.wait_idle)
    with watched_cpu(speaker(server)) as cpu:
        await asyncio.sleep(WATCHED_SECONDS)  # what is watched is that nothing happens
    assert cpu.used_since(0) < IDLE_CPU_SECONDS


async def test_a_text_with_nothing_to_speak_is_a_typed_error_and_costs_nothing(
    speech_server: LiveServer,
) -> None:
    async with peer(speech_server.ws_url) as client:
        for id, text in enumerate(SILENT, 1):
            await client.speak(id, text)
            end, seconds = await end_of(client, id)
            assert (end["type"], end["error"]["code"]) == ("error", "empty_text"), repr(text)
            assert seconds < SOON_SECONDS, repr(text)
    await assert_at_rest(speech_server)


@pytest.mark.parametrize("fed", [False, True])
async def test_input_with_nothing_to_speak_is_an_end_without_audio(
    speech_server: LiveServer, fed: bool
) -> None:
    async with peer(speech_server.ws_url) as client:
        for id, text in enumerate(SILENT, 1):
            await client.speak(id)
            if fed:
                await client.say({"type": "input", "id": id, "text": text})
            await client.say({"type": "end", "id": id})
            end, seconds = await end_of(client, id)
            assert (end["type"], end["usage"]["audio_ms"]) == ("done", 0), repr(text)
            assert seconds < SOON_SECONDS, repr(text)
    await assert_at_rest(speech_server)


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
async def test_odd_symbols_are_dropped_and_the_rest_is_spoken(
    speech_server: LiveServer, text: str
) -> None:
    async with connect(speech_server.ws_url) as client:
        spoken = await speak(client, text, speed=2)

    assert spoken.text == text
    assert 0.2 < spoken.seconds < 20
    assert abs(spoken.samples).max() < 32767


async def test_a_bad_param_is_refused_by_its_field(speech_server: LiveServer) -> None:
    async with peer(speech_server.ws_url) as client:
        for id, (param, code, field) in enumerate(BAD_PARAMS, 1):
            given = param if param.startswith('"text"') else f'"text":"Hi.",{param}'
            head = f'"type":"open","id":{id},"method":"synthesize"'
            begin = monotonic()
            await client.say(f'{{{head},"params":{{{given}}}}}')
            end = await client.hear_until("rejected", id)
            assert monotonic() - begin < SOON_SECONDS, param
            assert (end["error"]["code"], end["error"]["param"]) == (code, field), param
        await client.speak(100, "Hi.")  # nothing is stuck
        assert (await client.hear_terminals(100))[100]["type"] == "done"


@pytest.mark.parametrize("unit", UNITS)
async def test_a_megabyte_of_text_is_taken_and_a_cancel_stops_it(
    speech_server: LiveServer, unit: str
) -> None:
    size = 1_000_000 // len(json.dumps(unit)[1:-1])
    async with peer(speech_server.ws_url, max_size=None) as client:
        await client.speak(1, unit * size)
        await client.hear_until("accepted", 1)
        await client.speak(2, "Hi.")  # not behind it
        second, _ = await end_of(client, 2)
        await client.say({"type": "cancel", "id": 1})
        first, seconds = await end_of(client, 1)
    assert second["type"] == "done"
    assert first["type"] in ("cancelled", "error")
    assert seconds < SOON_SECONDS
    await assert_at_rest(speech_server)


async def test_half_a_surrogate_pair_in_input_fails_its_stream_alone(
    speech_server: LiveServer,
) -> None:
    async with connect(speech_server.ws_url) as other, peer(speech_server.ws_url) as client:
        beside = asyncio.create_task(speak(other, "Somebody else speaks."))
        await client.speak(1)
        await client.hear_until("accepted", 1)
        await client.say('{"type":"input","id":1,"text":"half \\ud83d"}')
        end, _ = await end_of(client, 1)
        assert (await beside).seconds > 0.5
    assert (end["type"], end["error"]["code"]) == ("error", "invalid_request")
