"""Bounds over the wire with the real tokenizer: context, max_tokens, usage on every ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plait.client import connect
from plait.engines.chat.prompt import ChatTokenizer
from plait.errors import ContextOverflow
from plait.models import ModelStore
from plait.wire.messages import ChatMessage, ChatParams
from tests.live.peer import peer
from tests.live.server import LiveServer
from tests.proofs.rig import ENDLESS, params, talk
from tests.proofs.sizes import CONTEXT_TOKENS, MAX_TOKENS, TEST_SECONDS

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]


@pytest.fixture(scope="module")
def prompt_tokens() -> Callable[[str], int]:
    """How long a prompt is, by the tokenizer alone."""
    model = ModelStore().ensure("smollm2-135m-instruct", "llamacpp")
    tokenizer = ChatTokenizer.load(str(model.tokenizer))

    def count(text: str) -> int:
        chat = ChatParams([ChatMessage("user", text)])
        return len(tokenizer.encode_chat(chat, context_tokens=10**6))

    return count


def text_of(tokens: int, count: Callable[[str], int]) -> str:
    words = tokens - count("hello")
    text = "hello" + " hello" * words
    assert count(text) == tokens
    return text


@pytest.mark.parametrize("over", [0, 1, 500])
async def test_a_prompt_that_leaves_no_room_is_refused_with_the_tokenizers_numbers(
    server: LiveServer, prompt_tokens: Callable[[str], int], over: int
) -> None:
    text = text_of(CONTEXT_TOKENS + over, prompt_tokens)
    async with connect(server.ws_url) as client:
        with pytest.raises(ContextOverflow) as refused:
            await talk(client, text)

    assert refused.value.data is not None
    assert refused.value.data["prompt_tokens"] == CONTEXT_TOKENS + over
    assert refused.value.data["limit"] == CONTEXT_TOKENS


async def test_a_prompt_that_leaves_room_for_one_token_is_taken(
    server: LiveServer, prompt_tokens: Callable[[str], int]
) -> None:
    text = text_of(CONTEXT_TOKENS - 1, prompt_tokens)
    async with connect(server.ws_url) as client, client.open("chat", params(text)) as stream:
        started = await stream.wait_started()

    assert started.max_tokens == 1


@pytest.mark.parametrize("asked", ["1000000000", "2147483648", "9223372036854775808", "1e308"])
async def test_a_huge_max_tokens_is_a_bound_or_a_typed_error(
    server: LiveServer, asked: str
) -> None:
    await taken_or_refused(server, asked, cap=MAX_TOKENS)


@pytest.mark.parametrize("asked", ["null", "0", "-1", "-2", '"5"', "1.5"])
async def test_no_max_tokens_means_the_servers_cap_and_a_bad_one_is_refused(
    server: LiveServer, asked: str
) -> None:
    await taken_or_refused(server, asked, cap=MAX_TOKENS)


async def taken_or_refused(server: LiveServer, max_tokens: str, cap: int) -> None:
    messages = '[{"role":"user","content":"Hi"}]'
    body = f'"params":{{"messages":{messages},"max_tokens":{max_tokens}}}'
    async with peer(server.ws_url) as client:
        await client.say(f'{{"type":"open","id":1,"method":"chat",{body}}}')
        answer: dict[str, Any] = {"type": "accepted"}
        while answer["type"] == "accepted":
            answer = await client.hear()
    if answer["type"] == "started":
        assert answer["max_tokens"] == cap
    else:
        assert answer["error"]["code"] == "invalid_request"
        assert answer["error"]["param"] == "max_tokens"


async def test_two_chats_of_the_capped_length_end_whole_beside_each_other(
    llamacpp: LiveServer,
) -> None:
    async def endless() -> tuple[str | None, int]:
        async with connect(llamacpp.ws_url) as client:
            _, end = await talk(client, ENDLESS, temperature=0)
        return end.finish_reason, end.usage["completion_tokens"]

    ends = await asyncio.gather(endless(), endless())

    assert list(ends) == [("length", MAX_TOKENS)] * 2


async def test_a_cancelled_chat_says_what_it_cost(
    server: LiveServer, prompt_tokens: Callable[[str], int]
) -> None:
    async with connect(server.ws_url) as client:
        stream = client.open("chat", params(ENDLESS, temperature=0))
        for _ in range(3):
            await anext(stream)
        taken = stream.last_seq
        cancelled = await stream.cancel()

    assert cancelled is not None
    assert cancelled.usage["prompt_tokens"] == prompt_tokens(ENDLESS)
    # One step may be on its way to us and one under way in the engine.
    assert taken <= cancelled.usage["completion_tokens"] <= cancelled.seq + 2
