"""Readers come, read and leave as the schedule says; the server is a fake in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import monotonic

import pytest

from plait.bench.abandon.running import Terms, run
from plait.bench.abandon.target import Account, HangUp, How, Request
from plait.bench.serving import BenchError

pytestmark = pytest.mark.anyio


@dataclass
class Answer:
    """Says its pieces one by one; `hangs`: and then nothing more, until it is left."""

    pieces: list[int]
    hangs: bool = False
    left_by: How | None = None

    async def next_tokens(self) -> int | None:
        await asyncio.sleep(0)
        if not self.pieces and self.hangs:
            await asyncio.Event().wait()
        return self.pieces.pop(0) if self.pieces else None

    async def hang_up(self, how: How) -> float:
        self.left_by = how
        return monotonic()


@dataclass
class Server:
    """`answers` by request; the others say `tokens` tokens one by one. `told`: its account of who
    hung up."""

    name: str = "fake"
    told: dict[int, int] | None = None
    tokens: int = 5
    answers: dict[int, Answer] = field(default_factory=dict)
    at_once: int = 0
    most_at_once: int = 0
    begun: int = 0

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Answer]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            yield self.answers.setdefault(request.index, Answer([0] + [1] * self.tokens))
        finally:
            self.at_once -= 1

    async def begin(self) -> None:
        self.begun += 1

    async def account(self) -> Account:
        assert self.at_once == 0, "the server is asked once nothing is under way any more"
        return Account("a fake", self.told)


def asking(*leaves: HangUp | None) -> list[Request]:
    return [Request(i, 0.0, [], 100, leave) for i, leave in enumerate(leaves)]


async def test_without_leavers_every_answer_is_read_to_its_end_by_so_many_clients_at_most() -> None:
    server = Server()

    found = await run(server, asking(*[None] * 9), Terms(clients=3))

    assert [(r.index, r.read, r.left_at) for r in found.records] == [(i, 5, None) for i in range(9)]
    assert (server.most_at_once, server.begun, found.account.source) == (3, 1, "a fake")


@pytest.mark.parametrize("how", ["cancel", "close", "reset"])
async def test_a_reader_leaves_on_the_token_and_in_the_way_he_was_to(how: How) -> None:
    server = Server()

    found = await run(server, asking(HangUp("decode", how, after_tokens=3)), Terms(1))

    (record,) = found.records
    assert (record.read, record.read_after, server.answers[0].left_by) == (3, 0, how)
    assert record.left_at is not None
    assert record.reader_until == record.left_at
    assert len(record.gaps) == 2


async def test_an_answer_that_ends_sooner_than_its_reader_would_leave_is_nobodys_hang_up() -> None:
    server = Server()

    found = await run(server, asking(HangUp("decode", "cancel", after_tokens=50)), Terms(1))

    assert (found.records[0].left_at, found.records[0].read) == (None, 5)
    assert server.answers[0].left_by is None


async def test_an_answer_that_had_arrived_whole_when_its_reader_left_is_nobodys_hang_up() -> None:
    leave = HangUp("decode", "reset", after_tokens=5)

    found = await run(Server(told={1: 0}), asking(leave, leave), Terms(1))

    assert [record.left_at is None for record in found.records] == [True, False]


async def test_in_prefill_a_reader_leaves_by_time_from_when_his_prompt_is_begun_with() -> None:
    server = Server(answers={0: Answer([0], hangs=True)})
    leave = HangUp("prefill", "reset", after_seconds=0.01)

    found = await run(server, asking(leave), Terms(1, signs=True))

    (record,) = found.records
    assert (record.read, record.first_at, server.answers[0].left_by) == (0, None, "reset")


async def test_a_target_that_gives_no_sign_is_left_by_time_from_sending() -> None:
    server = Server(answers={0: Answer([], hangs=True)})
    leave = HangUp("prefill", "close", after_seconds=0.01)

    found = await run(server, asking(leave), Terms(1))

    assert found.records[0].left_at is not None


async def test_who_leaves_without_a_word_is_answered_to_the_end_while_his_client_goes_on() -> None:
    server = Server(tokens=50)
    leave = HangUp("decode", "cancel", after_tokens=1)

    found = await run(server, asking(leave, None), Terms(clients=1, no_cancel=True))

    left, stayed = found.records
    assert (left.read, left.read_after, stayed.read) == (1, 49, 50)
    assert server.answers[0].left_by is None
    assert server.most_at_once == 2


async def test_requests_that_are_due_at_a_load_do_not_come_before_their_time() -> None:
    requests = [Request(i, 0.02 * i, [], 100) for i in range(3)]

    found = await run(Server(), requests, Terms(clients=3, load=50.0))

    assert all(record.sent >= record.due for record in found.records)
    assert found.records[2].due - found.records[0].due == pytest.approx(0.04)


async def test_a_server_that_fails_ends_the_run_with_what_it_said() -> None:
    class Failing(Answer):
        async def next_tokens(self) -> int | None:
            raise BenchError("it said no")

    server = Server(answers={1: Failing([])})

    with pytest.raises(ExceptionGroup) as failed:
        await run(server, asking(None, None, None), Terms(2))

    assert failed.group_contains(BenchError, match="it said no")
