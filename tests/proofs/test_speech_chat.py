"""A chat is spoken while it is written, and stopping the one stops the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from plait.client import ChatStream, Client, StreamCancelled, connect
from plait.wire.messages import Cancelled, Done
from tests.live.server import LiveServer
from tests.proofs.rig import params
from tests.proofs.sizes import TEST_SECONDS

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

ANSWER = "Here it is. The rest of the answer is still being written, a word at a time. "
ENDLESS_CHAT = "tokens=100000 step_ms=80"


def written(chat: ChatStream) -> AsyncIterator[str]:
    """An answer in words, one with every step of the chat; the chat ends with its reader."""

    async def pieces() -> AsyncIterator[str]:
        words = ANSWER.split()
        async with chat:
            number = 0
            async for delta in chat:
                if delta.content:
                    yield words[number % len(words)] + " "
                    number += 1

    return pieces()


def ask(client: Client, script: str) -> ChatStream:
    return client.chat(params(script)["messages"])


async def test_an_answer_is_heard_before_it_is_written_to_its_end(
    speech_server: LiveServer,
) -> None:
    words = len(ANSWER.split())
    async with connect(speech_server.ws_url) as client:
        chat = ask(client, f"tokens={words} step_ms=500")
        async with client.synthesize(written(chat), marks=True, speed=2) as speech:
            first = await anext(speech)
            still_written = chat.terminal is None
            marks = [first.mark, *[chunk.mark async for chunk in speech]]

    assert still_written
    assert first.mark is not None
    assert first.mark.text.startswith("Here it is.")
    assert "".join(mark.text for mark in marks if mark) == ANSWER
    assert isinstance(chat.terminal, Done)


async def test_stopping_the_voice_stops_the_chat_it_reads(speech_server: LiveServer) -> None:
    async with connect(speech_server.ws_url) as client:
        chat = ask(client, ENDLESS_CHAT)
        speech = client.synthesize(written(chat))
        await anext(speech)
        proof = await speech.cancel()
        ended = await chat.stream.wait_ended()
        await asyncio.to_thread(speech_server.wait_idle)

    assert proof is not None
    assert isinstance(ended, Cancelled)
    assert ended.by == "client"


async def test_stopping_the_chat_stops_the_voice_that_reads_it(speech_server: LiveServer) -> None:
    async with connect(speech_server.ws_url) as client:
        chat = ask(client, ENDLESS_CHAT)
        speech = client.synthesize(written(chat))
        await anext(speech)
        await chat.cancel()
        with pytest.raises(StreamCancelled):
            await speech.collect()
        await asyncio.to_thread(speech_server.wait_idle)

    assert isinstance(speech.terminal, Cancelled)
