"""What the real model says arrives whole, ends where it should, and shows no markers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from plait.client import connect
from tests.live.server import LiveServer
from tests.proofs.rig import talk
from tests.proofs.sizes import ANSWER_TOKENS, PROMPTS, TEST_SECONDS

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

MARKER = re.compile(r"<\|.*?\|>|</?s>|<eos>|<bos>|<pad>|\[/?INST\]|\bim_(?:start|end)\b")
ROLE = re.compile(r"^\s*(?:assistant|user|system)\s*[:\n]", re.IGNORECASE)
MANY_BYTES = [
    "Repeat exactly: 👩‍👩‍👧‍👦 漢字 שלום é 👍🏽 नमस्ते",
    "Answer only with emojis, no words: 😀 🎉 🚀 🌍 🍎",
    "翻译成中文:早上好,我的朋友。今天天气很好。",
    "Traduis en français : été, forêt, garçon, cœur, où, déjà.",
]


def questions() -> list[str]:
    """Short ones that end by themselves, and long ones that are cut."""
    things = ["fruits", "rivers", "colours", "tools", "games", "birds", "metals", "songs"]
    short = ["What is 2+2?", "Hi!", "Say yes.", "Who are you?", "Name a colour.", "Bye."]
    long = [f"Tell me about {thing}." for thing in things]
    chat = [f"user: what are {thing}?\nassistant:" for thing in things]
    return [*short, *long, *chat, *(f"List ten {thing}." for thing in things)][:: 30 // PROMPTS]


async def test_no_answer_shows_a_control_token_or_a_role(llamacpp: LiveServer) -> None:
    gate = asyncio.Semaphore(4)
    async with connect(llamacpp.ws_url) as client:

        async def ask(question: str) -> str:
            async with gate:
                return (await talk(client, question, max_tokens=ANSWER_TOKENS, seed=1))[0]

        answers = await asyncio.gather(*(ask(question) for question in questions()))

    assert len(answers) == PROMPTS
    assert [answer for answer in answers if MARKER.search(answer) or ROLE.match(answer)] == []


async def test_characters_of_many_bytes_arrive_whole_alone_and_four_at_once(
    server: LiveServer, record_property: Callable[[str, object], None]
) -> None:
    size = {"max_tokens": ANSWER_TOKENS, "temperature": 0}
    async with connect(server.ws_url) as client:
        alone, _ = await talk(client, MANY_BYTES[0], **size)
        together = await asyncio.gather(*(talk(client, text, **size) for text in MANY_BYTES))

    texts = [alone, *(text for text, _ in together)]
    wide = sum(not character.isascii() for text in texts for character in text)
    record_property("characters beyond ASCII", wide)
    assert wide > 0
    assert "\ufffd" not in "".join(texts)
    "".join(texts).encode()  # a lone surrogate would raise


async def test_a_stop_string_cuts_exactly_and_never_shows_its_beginning(
    server: LiveServer,
) -> None:
    size = {"max_tokens": 16, "temperature": 0}
    question = "Say the alphabet: A, B, C, D, E, F, G"
    async with connect(server.ws_url) as client:
        whole, _ = await talk(client, question, **size)
        stop = whole[len(whole) // 2 - 3 : len(whole) // 2 + 3]  # across tokens
        cut, end = await talk(client, question, stop=[stop], **size)

    assert len(stop) == 6
    assert cut == whole[: whole.index(stop)]
    assert end.finish_reason == "stop"


async def test_the_same_seed_gives_the_same_text_and_another_another(server: LiveServer) -> None:
    size = {"max_tokens": 8, "temperature": 1.0}
    async with connect(server.ws_url) as client:
        texts = [
            (await talk(client, "Invent a name for a boat.", seed=seed, **size))[0]
            for seed in (7, 7, 8)
        ]

    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
