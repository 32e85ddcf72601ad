"""llama-server itself, with a real model: left in the middle of an answer, then asked about it."""

from __future__ import annotations

import pytest

from plait.bench import prompts
from plait.bench.abandon.llama_server import llama_server
from plait.bench.abandon.openai_target import OpenAITarget
from plait.bench.abandon.peers import open_target
from plait.bench.abandon.target import Request
from plait.bench.serving import BenchError
from plait.engines.base import LoadSpec

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]
LONG_TOKENS = 200  # more than a machine that stalls has written before it sees that nobody reads


async def ask(target: OpenAITarget, number: int, tokens: int, leave_after: int | None) -> int:
    """-> tokens read."""
    read = 0
    request = Request(number, 0.0, prompts.story(number), tokens)
    async with target.open(request) as exchange:
        while (more := await exchange.next_tokens()) is not None:
            read += more
            if leave_after is not None and read >= leave_after:
                await exchange.hang_up("reset")
                break
    return read


async def test_llama_server_tells_what_it_did_for_a_reader_who_left() -> None:
    async with open_target("llama-server", slots=2, context_tokens=512) as target:
        await target.begin()
        read = [await ask(target, 1, 8, None), await ask(target, 2, LONG_TOKENS, 3)]
        told = await target.account()

    assert read == [8, 3]
    assert told.spans[1].decoded == 8
    assert told.spans[1].prompt_tokens == target.sent[0].prompt_tokens
    assert told.decoded_after is not None
    assert told.decoded_after.keys() == {2}
    assert 0 <= told.decoded_after[2] < LONG_TOKENS - 3
    assert told.busy_seconds
    assert told.cpu_seconds


async def test_weights_that_cannot_be_loaded_are_said_to_be_the_reason() -> None:
    spec = LoadSpec(
        engine="llamacpp",
        model="none",
        slots=1,
        context_tokens=512,
        max_tokens=64,
        weights="/nowhere.gguf",
    )

    with pytest.raises(BenchError, match=r"cannot load /nowhere.gguf: .*pull the model"):
        async with llama_server(spec):
            pass


async def test_llama_server_reads_prompts_in_batches_as_small_as_asked_and_is_named_so() -> None:
    signs = []
    async with open_target("llama-server:3", slots=2, context_tokens=512) as target:
        await target.begin()
        async with target.open(Request(1, 0.0, prompts.story(1), 2)) as exchange:
            while (tokens := await exchange.next_tokens()) is not None:
                signs.append(tokens)

    assert target.name == "llama-server, batches of 3"
    prompt_tokens = target.sent[0].prompt_tokens
    assert prompt_tokens is not None
    assert signs.count(0) >= prompt_tokens // 3 > 3  # told of each batch of the prompt


@pytest.mark.parametrize("name", ["llama-server:1", "llama-server:", "llama-server:many"])
async def test_a_batch_without_a_place_for_each_slot_is_refused_with_its_numbers(name: str) -> None:
    with pytest.raises(BenchError, match=r"at least one for each of its 2 slots"):
        async with open_target(name, slots=2):
            pass
