"""Foreign servers over a real socket: how answers are counted, how clients leave, what can fail."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Literal

import pytest

from plait.bench.abandon.child import serving_child
from plait.bench.abandon.http_exchange import Address
from plait.bench.abandon.openai_target import OpenAITarget, StreamedAnswer, model_of
from plait.bench.abandon.peers import open_target
from plait.bench.abandon.served import Sent
from plait.bench.abandon.target import Account, Request
from plait.bench.serving import BenchError
from tests.bench.foreign import END, HEAD, Foreign, chunk, serving, whole

REQUEST = Request(7, 0.0, [{"role": "user", "content": "Hi"}], 16)
THREE = HEAD + chunk("a") + chunk("b") + chunk("c")


class Nothing:
    """An account of a server that tells nothing."""

    async def begin(self) -> None: ...

    def sent(self, answer: StreamedAnswer) -> None: ...

    async def account(self, sent: Sequence[Sent]) -> Account:
        return Account("nothing")


@contextlib.asynccontextmanager
async def asked(foreign: Foreign) -> AsyncIterator[StreamedAnswer]:
    async with serving(foreign) as address:
        target = OpenAITarget("tiny", address, "tiny", Nothing(), {"cache_prompt": False})
        async with target.open(REQUEST) as answer:
            yield answer


async def read(answer: StreamedAnswer, pieces: int | None = None) -> list[int]:
    counts: list[int] = []
    while pieces is None or len(counts) < pieces:
        tokens = await answer.next_tokens()
        if tokens is None:
            break
        counts.append(tokens)
    return counts


# --- answers -----------------------------------------------------------------------------------


async def test_an_answer_is_asked_greedily_and_counted_by_its_chunks() -> None:
    foreign = Foreign(THREE + END, ends=True)

    async with asked(foreign) as answer:
        assert await read(answer) == [1, 1, 1]

    (body,) = foreign.bodies
    assert (body["temperature"], body["max_tokens"], body["stream"]) == (0, 16, True)
    assert body["cache_prompt"] is False
    assert (answer.sent.received, answer.sent.hung_up) == (3, None)
    assert answer.sent.ended is not None


async def test_a_server_that_counts_itself_is_believed() -> None:
    told = chunk("abc", timings={"predicted_n": 3}) + chunk(finish_reason="stop")
    usage = chunk(usage={"prompt_tokens": 9, "completion_tokens": 6}) + b"data: [DONE]\n\n"

    async with asked(Foreign(HEAD + told + usage, ends=True)) as answer:
        assert await read(answer) == [3, 2]  # the token that ends it has no text

    assert (answer.sent.prompt_tokens, answer.sent.completion_tokens) == (9, 6)


async def test_progress_of_a_prompt_is_a_sign_and_no_token() -> None:
    progress = chunk(prompt_progress={"processed": 0}) + b": keepalive\n\n"

    async with asked(Foreign(HEAD + progress + chunk("a") + END, ends=True)) as answer:
        assert await read(answer) == [0, 1]


async def test_a_sign_from_elsewhere_wakes_the_reader() -> None:
    async with asked(Foreign(HEAD)) as answer:
        reader = asyncio.create_task(answer.next_tokens())
        await asyncio.sleep(0)
        answer.begin()

        assert await reader == 0


async def test_a_read_that_is_cancelled_loses_nothing() -> None:
    async with asked(Foreign(THREE + END, ends=True)) as answer:
        for _ in range(5):
            reader = asyncio.create_task(answer.next_tokens())
            await asyncio.sleep(0)
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
        await read(answer)

    assert answer.sent.received == 3


# --- leaving -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "seen"), [("close", "end of file"), ("cancel", "end of file"), ("reset", "reset")]
)
async def test_a_server_sees_the_hang_up_that_was_asked_for(
    how: Literal["close", "cancel", "reset"], seen: str
) -> None:
    foreign = Foreign(THREE)
    async with asked(foreign) as answer:
        await read(answer, 3)

        left_at = await answer.hang_up(how)

        assert await foreign.left.get() == seen
        assert answer.sent.hung_up == left_at
        assert await answer.next_tokens() is None


async def test_what_had_arrived_unread_by_the_hang_up_counts_as_received_and_is_no_reset() -> None:
    foreign = Foreign(THREE)
    async with asked(foreign) as answer:
        await read(answer, 1)

        await answer.hang_up("close")

        assert await foreign.left.get() == "end of file"
    assert answer.sent.received == 3


async def test_a_block_left_early_has_hung_up() -> None:
    foreign = Foreign(THREE)
    async with asked(foreign) as answer:
        await read(answer, 2)

    assert await foreign.left.get() == "end of file"
    assert answer.sent.hung_up is not None


# --- what goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (whole(b"no such model\nat all", status=b"404 Not Found"), "HTTP 404: no such model;"),
        (whole(b'{"choices": []}'), "not in server-sent events"),
        (b"SSH-2.0-tiny\r\n\r\n", "does not answer in HTTP"),
        (HEAD + b"data: {\n\n", "no chunk of an answer"),
        (HEAD + b'data: {"error": {"message": "full"}}\n\n', "full"),
        (HEAD + chunk("a"), "in the middle of an answer"),
    ],
)
async def test_anything_but_an_answer_is_told_as_what_it_is(answer: bytes, why: str) -> None:
    async with asked(Foreign(answer, ends=True)) as exchange:
        with pytest.raises(BenchError, match=why):
            await read(exchange)


async def test_a_server_that_is_not_there_is_said_not_to_be_reachable() -> None:
    with socket.socket() as deaf:  # it holds the port, and does not listen
        deaf.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", deaf.getsockname()[1])
        target = OpenAITarget("gone", address, "tiny", Nothing())

        with pytest.raises(BenchError, match="cannot be reached"):
            async with target.open(REQUEST):
                pass


@pytest.mark.parametrize("url", ["https://example.org", "ftp://x", "http://", "http://x:y"])
def test_only_plain_http_is_taken(url: str) -> None:
    with pytest.raises(BenchError, match="http://host:port"):
        Address.of(url)


def test_an_address_may_name_the_api_or_not() -> None:
    short, long = Address.of("http://[::1]:81/x"), Address.of("http://[::1]:81/x/v1/")

    assert short == long == Address("::1", 81, "/x")


async def test_a_server_is_opened_by_its_url_and_asked_for_its_own_model() -> None:
    foreign = Foreign(THREE + END, ends=True)
    async with (
        serving(foreign) as address,
        open_target(f"{address}/v1") as target,
        target.open(REQUEST) as answer,
    ):
        while await answer.next_tokens() is not None:
            pass

    assert target.name == f"tiny at {address}"
    assert foreign.bodies[0]["model"] == "tiny"


def unheard(line: str, moment: float) -> None:
    """Of a child that says nothing of interest."""


async def test_a_child_that_ends_before_it_serves_is_told_with_its_last_words() -> None:
    with pytest.raises(BenchError, match=r"ended before it was ready(?s:.*)No module named"):
        async with serving_child("tiny", "plait.bench.abandon.nothing", {}, unheard, unheard):
            pass


async def test_a_name_that_is_none_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BenchError, match="mlx_lm"):
        async with open_target("ollama"):
            pass


@pytest.mark.parametrize("page", [b"[]", b'{"data": []}', b""])
async def test_a_model_that_is_not_listed_has_to_be_named(page: bytes) -> None:
    async with serving(Foreign(b"", models=page)) as address:
        with pytest.raises(BenchError, match="#model"):
            await model_of(address)

        async with open_target(f"{address}#org/mine") as target:
            assert target.name == f"mine at {address}"
            assert target.body(REQUEST)["model"] == "org/mine"
