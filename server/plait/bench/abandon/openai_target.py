"""An OpenAI-compatible server as a target: `/v1/chat/completions`, streamed, greedy.

Every request has a TCP connection of its own. A chunk with text is one token unless the server
itself counts (`usage`, `timings`). What the work cost is another's business: an `Accountant` asks
the server's log, its metrics or its processes.

The same work for every target: temperature 0, `max_tokens`, no cached prefixes, and the model's
natural end is accepted (plait.v1 has no way to ignore it, so nobody is asked to).
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol

import msgspec

from plait.bench.abandon.http_exchange import Address, HttpExchange, connected, get
from plait.bench.abandon.served import Sent
from plait.bench.abandon.sse import EventLines
from plait.bench.abandon.target import Account, How, Request
from plait.bench.serving import BenchError

PATH = "/v1/chat/completions"


class Accountant(Protocol):
    """Knows what one server did. The target tells it every request of the run."""

    async def begin(self) -> None: ...

    def sent(self, answer: StreamedAnswer) -> None:
        """A request is on its way; `answer.begin()` once it is heard that it has begun."""

    async def account(self, sent: Sequence[Sent]) -> Account: ...


class OpenAITarget:
    """`extra`: fields of the body that only this server knows. `signs`: it says when it begins with
    a request, by a chunk of its own or because its accountant hears of it."""

    def __init__(
        self,
        name: str,
        address: Address,
        model: str,
        accountant: Accountant,
        extra: Mapping[str, Any] | None = None,
        *,
        signs: bool = False,
    ) -> None:
        self.name = name
        self.signs = signs
        self.sent: list[Sent] = []
        self._address = address
        self._model = model
        self._accountant = accountant
        self._extra = dict(extra or {})

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[StreamedAnswer]:
        """Raises BenchError when the server cannot be reached."""
        async with connected(self._address) as exchange:
            sent = Sent(request.index, monotonic())
            self.sent.append(sent)
            await exchange.send("POST", PATH, msgspec.json.encode(self.body(request)))
            answer = StreamedAnswer(exchange, sent)
            self._accountant.sent(answer)
            try:
                yield answer
            finally:
                answer.left()

    def body(self, request: Request) -> dict[str, Any]:
        return {
            "model": self._model,
            "messages": request.messages,
            "max_tokens": request.max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._extra,
        }

    async def begin(self) -> None:
        self.sent.clear()
        await self._accountant.begin()

    async def account(self) -> Account:
        return await self._accountant.account(tuple(self.sent))


class StreamedAnswer:
    """The `Exchange` of one request."""

    def __init__(self, exchange: HttpExchange, sent: Sent) -> None:
        self.sent = sent
        self._exchange = exchange
        self._lines = EventLines()
        self._tokens: deque[int] = deque()  # arrived and not handed out; at most one piece's
        self._tally = Tally()
        self._over = False

    async def next_tokens(self) -> int | None:
        """Raises BenchError."""
        while not self._tokens:
            if self._over:
                return None
            piece = await self._exchange.next_piece()
            if piece is None:
                self._end()
            else:
                self._take(piece)
        return self._tokens.popleft()

    async def hang_up(self, how: How) -> float:
        """What had arrived by then counts as received, read or not."""
        with contextlib.suppress(BenchError):
            for piece in self._exchange.arrived():
                self._take(piece)
        left_at = self._exchange.leave(reset=how == "reset")
        if not self._over and self.sent.hung_up is None:
            self.sent.hung_up = left_at
        self._over = True
        self._tokens.clear()
        return left_at

    def begin(self) -> None:
        """The server has begun with this request: whoever reads gets a 0."""
        self._tokens.append(0)
        self._exchange.wake()

    def left(self) -> None:
        """The block was left: whoever has not read to the end has hung up."""
        if not self._over and self.sent.hung_up is None:
            self.sent.hung_up = self._exchange.leave(reset=False)
            self._over = True

    def _take(self, piece: bytes) -> None:
        if not piece:
            return  # woken
        if not self._exchange.content_type.startswith("text/event-stream"):
            raise BenchError(
                f"{self._exchange.address} answers in {self._exchange.content_type or 'no type'}, "
                "not in server-sent events; it must support `stream: true`"
            )
        try:
            events = self._lines.feed(piece)
        except ValueError as error:
            raise BenchError(f"{self._exchange.address} streams no events: {error}") from error
        for event in events:
            if event.strip() == b"[DONE]":
                self._end()
                break
            tokens, progress = self._tally.take(event)
            if tokens:
                self.sent.first = self.sent.first or monotonic()
                self.sent.received += tokens
            if tokens or progress:
                self._tokens.append(tokens)
        self.sent.prompt_tokens = self._tally.prompt_tokens
        self.sent.completion_tokens = self._tally.completion_tokens

    def _end(self) -> None:
        if not self._tally.finished:
            raise BenchError(
                f"{self._exchange.address} closed the connection in the middle of an answer; "
                "its log may say why"
            )
        self._over = True
        self.sent.ended = monotonic()


class Tally:
    """Counts the tokens of an answer's chunks."""

    def __init__(self) -> None:
        self.finished = False
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self._counted = 0
        self._stopped = False

    def take(self, event: bytes) -> tuple[int, bool]:
        """-> (tokens that this chunk brings, whether it tells of the prompt's progress).

        Raises BenchError for an error and for no JSON.
        """
        try:
            chunk = msgspec.json.decode(event, type=Chunk)
        except msgspec.DecodeError as error:
            shown = event[:200].decode("utf-8", "replace")
            raise BenchError(f"the server sent what is no chunk of an answer: {shown}") from error
        if chunk.error is not None:
            raise BenchError(f"the server ended an answer with an error: {chunk.error}")
        texts = [choice.delta.text for choice in chunk.choices]
        for choice in chunk.choices:
            if choice.finish_reason is not None:
                self.finished = True
                self._stopped = choice.finish_reason == "stop"
        before, self._counted = self._counted, self._counted + any(texts)
        self._counted = max(self._counted, self._told(chunk))
        return self._counted - before, chunk.prompt_progress is not None

    def _told(self, chunk: Chunk) -> int:
        """By the server's own count. The token that ends an answer has no text and no reader."""
        told = chunk.timings.predicted_n if chunk.timings is not None else 0
        if chunk.usage is not None:
            self.prompt_tokens = chunk.usage.prompt_tokens
            self.completion_tokens = chunk.usage.completion_tokens
            told = max(told, chunk.usage.completion_tokens)
        return told - self._stopped


class Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    @property
    def text(self) -> str:
        return self.content or self.reasoning_content or self.reasoning or ""


class Choice(msgspec.Struct):
    delta: Delta = msgspec.field(default_factory=Delta)
    finish_reason: str | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Timings(msgspec.Struct):
    predicted_n: int = 0


class Chunk(msgspec.Struct):
    choices: list[Choice] = msgspec.field(default_factory=list)
    usage: Usage | None = None
    timings: Timings | None = None
    prompt_progress: Any = None  # llama-server's, if asked for
    error: Any = None


class Model(msgspec.Struct):
    id: str


class Models(msgspec.Struct):
    data: list[Model]


async def model_of(address: Address) -> str:
    """The first of `/v1/models`. Raises BenchError."""
    page = await get(address, "/v1/models")
    try:
        models = msgspec.json.decode(page, type=Models).data
    except msgspec.DecodeError:
        models = []
    if not models:
        raise BenchError(
            f"{address}/v1/models lists no model; load one, or if it has one, name it: "
            f"{address}#model"
        )
    return models[0].id
