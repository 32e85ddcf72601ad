"""The account of a server on this machine that tells nothing itself: by its processes' CPU time.

After a run it is asked a few things alone: a prompt and an answer undisturbed, which give the CPU
of a token of each, and some that are left, in decode and in prefill. What its processes compute
from such a hang-up until they are still, in tokens, is what they do for nobody. Exact to a token
or two where a token takes some tens of milliseconds. Does NOT know what kind of server it is.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import psutil

from plait.bench import prompts
from plait.bench.abandon.child import tree_cpu_seconds
from plait.bench.abandon.http_exchange import Address
from plait.bench.abandon.openai_target import OpenAITarget, StreamedAnswer
from plait.bench.abandon.served import Sent
from plait.bench.abandon.target import Account, HangUp, Request
from plait.bench.serving import BenchError

PROBES = 3  # of each kind
WORDS, TOKENS, LEAVE_AFTER = 300, 32, 8
STILL_SECONDS, STILL_SHARE = 0.5, 0.1  # of a core: a waiting server may poll
UNREST_SECONDS = 600.0
FIRST_NUMBER = 100_000  # of prompts nobody else asks


@dataclass(frozen=True, slots=True)
class Whole:
    """A request that was read to its end, alone."""

    cpu_seconds: float
    prompt_tokens: int
    decoded: int


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of one token."""

    prompt: float
    decoded: float


@dataclass(frozen=True, slots=True)
class Probes:
    """Tokens computed after each probe's hang-up."""

    decode: list[float]
    prefill: list[float]
    costs: Costs


def costs(prompt: Whole, answer: Whole) -> Costs:
    """Of two requests, one with hardly an answer and one with a short prompt.

    Raises BenchError when the CPU time does not grow with the tokens.
    """
    per_prompt = prompt.cpu_seconds / max(1, prompt.prompt_tokens)
    rest = answer.cpu_seconds - per_prompt * answer.prompt_tokens
    if per_prompt <= 0 or rest <= 0 or not answer.decoded:
        raise BenchError(
            "the CPU time of the server's process says nothing about its tokens; does it compute "
            "elsewhere, as on a GPU? Use a server with /metrics"
        )
    return Costs(per_prompt, rest / answer.decoded)


def account_of(probes: Probes, sent: Sequence[Sent], cpu_seconds: float) -> Account:
    """Every hang-up is taken at the probes' mean."""
    left = [request for request in sent if request.hung_up is not None]
    decoding = sum(request.received > 0 for request in left)
    decode, prefill = fmean(probes.decode), fmean(probes.prefill)
    dead = decoding * decode * probes.costs.decoded
    dead += (len(left) - decoding) * prefill * probes.costs.prompt
    source = (
        f"CPU time of its process; by {len(probes.decode)} probes alone, after a hang-up in decode "
        f"{median(probes.decode):.1f} tokens (at most {max(probes.decode):.1f}), in prefill "
        f"{median(probes.prefill):.0f} prompt tokens (at most {max(probes.prefill):.0f})"
    )
    return Account(
        source,
        mean_after=decode if left else None,
        dead_seconds=dead,
        busy_seconds=cpu_seconds,
        cpu_seconds=cpu_seconds,
    )


def local_pid(address: Address) -> int | None:
    """The process that listens there; None when it is not on this machine or not to be seen."""
    try:
        host = socket.gethostbyname(address.host)
        listeners = psutil.net_connections(kind="tcp")
    except (OSError, psutil.Error):
        return None
    if not host.startswith("127."):
        return None
    for connection in listeners:
        listens = connection.status == psutil.CONN_LISTEN and connection.laddr
        if listens and listens[1] == address.port:
            return connection.pid
    return None


class CpuAccountant:
    """Of one process with its children."""

    def __init__(self, pid: int, clock: Callable[[], float]) -> None:
        self._pid = pid
        self._clock = clock
        self._before = 0.0
        self._probes: Probes | None = None
        self.target: OpenAITarget | None = None  # who is probed, over the same wire

    async def begin(self) -> None:
        self._before = await self._still()

    def sent(self, answer: StreamedAnswer) -> None:
        """Nobody tells when it begins, unless the answer itself does."""

    async def account(self, sent: Sequence[Sent]) -> Account:
        run = [replace(request) for request in sent]
        cpu_seconds = await self._still() - self._before
        if self._probes is None:
            self._probes = await self._probe()
        return account_of(self._probes, run, cpu_seconds)

    async def _probe(self) -> Probes:
        numbers = iter(range(FIRST_NUMBER, FIRST_NUMBER + 100))
        prompt, prompt_wall = await self._whole(next(numbers), long=True)
        answer, _ = await self._whole(next(numbers), long=False)
        each = costs(prompt, answer)
        decode, prefill = [], []
        for number in range(PROBES):
            leave = HangUp("decode", "close", LEAVE_AFTER)
            decode.append(await self._left(next(numbers), leave) / each.decoded)
            share = (number + 1) / (PROBES + 1)
            leave = HangUp("prefill", "close", after_seconds=share * prompt_wall)
            prefill.append(await self._left(next(numbers), leave) / each.prompt)
        return Probes(decode, prefill, each)

    async def _whole(self, number: int, *, long: bool) -> tuple[Whole, float]:
        """And the seconds it took."""
        before, begun = await self._cpu(), self._clock()
        sent = await self._ask(number, None, long=long)
        seconds = self._clock() - begun
        return Whole(await self._still() - before, sent.prompt_tokens or 0, sent.received), seconds

    async def _left(self, number: int, leave: HangUp) -> float:
        """CPU seconds from the hang-up until nothing is computed any more."""
        await self._ask(number, leave, long=leave.phase == "prefill")
        before = await self._cpu()
        return await self._still() - before

    async def _ask(self, number: int, leave: HangUp | None, *, long: bool) -> Sent:
        assert self.target is not None
        messages = prompts.long_prompt(number, WORDS) if long else prompts.story(number)
        request = Request(number, 0.0, messages, 1 if long else TOKENS, leave)
        async with self.target.open(request) as exchange:
            try:
                async with asyncio.timeout(leave.after_seconds or None if leave else None):
                    while await exchange.next_tokens() is not None:
                        if leave and leave.after_tokens and exchange.sent.received >= LEAVE_AFTER:
                            break
            except TimeoutError:
                pass
            if leave is not None:
                await exchange.hang_up(leave.how)
        return exchange.sent

    async def _still(self) -> float:
        """CPU seconds once the process computes no more. Raises BenchError."""
        begun, last = self._clock(), await self._cpu()
        while self._clock() - begun < UNREST_SECONDS:
            moment = self._clock()
            await asyncio.sleep(STILL_SECONDS)
            now = await self._cpu()
            if now - last < STILL_SHARE * (self._clock() - moment):
                return now
            last = now
        raise BenchError(f"process {self._pid} still computes after {UNREST_SECONDS:g} s")

    async def _cpu(self) -> float:
        return await asyncio.to_thread(tree_cpu_seconds, self._pid)
