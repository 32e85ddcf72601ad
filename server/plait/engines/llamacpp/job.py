"""One chat job of the llama.cpp adapter: what it asked, what it has produced, how it ends.

llama.cpp delivers a token only when the text so far ends in a whole character; the tokens before
it are hidden and only counted. `add` finds their ids again from the bytes, because a resumed job
continues from ids. Knows no threads, seats or events.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from plait.engines.base import EngineInfo, Prepare, Usage
from plait.engines.chat.constraint import cannot_force
from plait.engines.chat.prompt import ChatTokenizer, fit_answer
from plait.engines.chat.text import AnswerText, Delta
from plait.engines.llamacpp.ahead import Ahead
from plait.engines.llamacpp.request import Request
from plait.engines.llamacpp.seats import Seat
from plait.engines.llamacpp.wire import RANDOM_SEED, Chunk, Progress, TokenEntry
from plait.errors import PlaitError
from plait.wire.messages import ChatParams

MAX_HIDDEN = 8  # a character has at most three hidden tokens; more is a model's gibberish


@dataclass(slots=True, eq=False)
class Job:
    """`request` and `seat` are set while the engine works for it, and only then."""

    id: int
    scope: str
    params: ChatParams
    prompt: list[int]
    answer: AnswerText
    max_tokens: int
    grammar: str | None = None
    ahead: Ahead = field(default_factory=Ahead)
    seed: int = field(init=False)
    request: Request | None = None
    seat: Seat | None = None
    started: bool = False
    paused: bool = False
    cancelled: bool = False
    error: PlaitError | None = None
    wasted: int = 0
    wasted_prompt: list[int] = field(default_factory=list)  # chunks by their tokens
    cached_tokens: int | None = None
    processed_tokens: int = 0
    reseeded: bool = False
    passed: int = 0  # in the line for a turn, by prompts that came later
    unnamed_tokens: int = 0  # produced, but their ids could not be found out
    _base_tokens: int = 0  # produced before the request under way
    _request_tokens: int = 0  # its prompt

    def __post_init__(self) -> None:
        drawn = random.getrandbits(32) if self.params.seed is None else self.params.seed
        self.seed = drawn % RANDOM_SEED

    @property
    def produced(self) -> int:
        return len(self.answer.tokens) + self.unnamed_tokens

    @property
    def over(self) -> bool:
        return self.cancelled or self.error is not None or self.answer.finish_reason is not None

    @property
    def decoding(self) -> bool:
        return self.request is not None and self.processed_tokens >= self._request_tokens

    @property
    def unread_tokens(self) -> int:
        """What the engine has still to read before it can go on."""
        return max(0, len(self.prompt) + len(self.answer.tokens) - self.processed_tokens)

    @property
    def held_tokens(self) -> int:
        """Cells its content takes in the engine's cache."""
        return self.processed_tokens + self.produced - self._base_tokens

    @property
    def computed_tokens(self) -> list[int]:
        """What its cells hold for certain, from the first one on; they may hold a bit more.

        The engine tells how far the prompt is read; a token sampled last is not computed yet.
        """
        if not self.decoding:
            return (self.prompt + self.answer.tokens)[: self.processed_tokens]
        if self.unnamed_tokens:
            return self.prompt
        sampled = self.produced > self._base_tokens
        return self.prompt + (self.answer.tokens[:-1] if sampled else self.answer.tokens)

    @property
    def usage(self) -> Usage:
        usage = {
            "prompt_tokens": len(self.prompt),
            "cached_tokens": self.cached_tokens or 0,
            "completion_tokens": self.produced,
        }
        return {**usage, "reseeded": 1} if self.reseeded else usage

    def begin_request(self) -> tuple[list[int], int]:
        """-> (token ids to continue from, seed). A sampler starts anew with every request."""
        assert self.grammar is None or not self.produced, "a grammar begins with the answer"
        self._base_tokens = self.produced
        self.processed_tokens = 0
        if self.answer.tokens and self.params.temperature > 0:
            self.reseeded = True
        tokens = self.prompt + self.answer.tokens
        self._request_tokens = len(tokens)
        return tokens, (self.seed + self.produced) % RANDOM_SEED

    def note_progress(self, progress: Progress, *, dead: bool = False) -> None:
        """`dead`: it was computed after the cancel."""
        if dead:
            before = max(self.processed_tokens, progress.cache)
            self.wasted_prompt.append(max(0, progress.processed - before))
        self.processed_tokens = progress.processed
        if self.cached_tokens is None:  # later requests reuse the job's own work
            self.cached_tokens = progress.cache

    def waste_step(self, chunk_tokens: int) -> None:
        """One was computed for it after the cancel, of which the engine does not tell."""
        if self.decoding:
            self.wasted += 1
        else:
            self.wasted_prompt.append(min(chunk_tokens, self.unread_tokens))

    def hidden_before(self, chunk: Chunk) -> int:
        """Tokens sampled since the last chunk and not delivered, this chunk's own not counted."""
        own = 1 if chunk.token else 0
        return max(0, self._base_tokens + chunk.predicted - self.produced - own)

    def add(self, chunk: Chunk, tokens: TokenNames) -> list[Delta]:
        """Take a chunk: a token with the hidden ones before it, or the engine's own end.

        -> items, at most one a token.
        """
        hidden = self.hidden_before(chunk)
        entry = chunk.token
        if entry is not None:
            self.processed_tokens = self._request_tokens
        named = tokens.find_hidden(entry, hidden) if entry and hidden else []
        self.unnamed_tokens += hidden - len(named)
        answer = self.answer
        deltas = [answer.add(token) for token in named if answer.finish_reason is None]
        if answer.finish_reason is not None:
            pass
        elif entry is not None:
            deltas.append(answer.add(entry.id, self._logprob(entry, tokens)))
        elif chunk.finish_reason is not None:
            deltas.append(answer.end("length" if chunk.finish_reason == "length" else "stop"))
        return [delta for delta in deltas if delta is not None]

    def _logprob(self, entry: TokenEntry, tokens: TokenNames) -> dict[str, Any] | None:
        asked = self.params.logprobs
        if asked is False:
            return None
        return tokens.describe(entry, 0 if asked is True else asked)


def make_job(
    command: Prepare, tokenizer: ChatTokenizer, info: EngineInfo, *, grammars: bool
) -> Job:
    """Template, tokenize, bound the answer and its form.

    Raises `TemplateError`, `ContextOverflow`; `InvalidRequest` for a form that cannot be forced.
    """
    params = msgspec.convert(command.params, ChatParams)
    prompt = tokenizer.encode_chat(params, context_tokens=info.context_tokens)
    max_tokens = fit_answer(
        len(prompt),
        params.max_tokens,
        max_tokens=info.max_tokens,
        context_tokens=info.context_tokens,
    )
    grammar = tokenizer.grammar(params)
    if grammar is not None and not grammars:
        raise cannot_force(grammar.param)
    answer = tokenizer.answer(params, max_tokens, grammar)
    text = None if grammar is None else grammar.text
    return Job(command.job, command.scope, params, prompt, answer, max_tokens, text)


class TokenNames:
    """From token ids to texts and from bytes back to ids."""

    def __init__(self, pieces: list[bytes], token_text: Callable[[int], str]) -> None:
        self._pieces = pieces
        self._token_text = token_text
        self._ids = {piece: token for token, piece in reversed(list(enumerate(pieces))) if piece}

    def describe(self, entry: TokenEntry, top: int) -> dict[str, Any]:
        """The `logprobs` entry of an item: the token and the `top` likeliest in its place."""
        return {
            "token": self._token_text(entry.id),
            "logprob": entry.logprob,
            "top": [
                {"token": self._token_text(other.id), "logprob": other.logprob}
                for other in entry.top_logprobs[:top]
            ],
        }

    def find_hidden(self, entry: TokenEntry, count: int) -> list[int]:
        """Ids of the `count` tokens whose bytes precede the entry's own; [] if they stay unknown.

        Longest pieces first, as byte-pair encoding itself prefers.
        """
        own = self._pieces[entry.id] if entry.id < len(self._pieces) else b""
        shown = bytes(entry.bytes)
        if count > MAX_HIDDEN or not own or not shown.endswith(own):
            return []
        return self._split(shown[: len(shown) - len(own)], count) or []

    def _split(self, text: bytes, count: int) -> list[int] | None:
        if count == 0:
            return None if text else []
        for length in range(len(text) - count + 1, 0, -1):
            token = self._ids.get(text[:length])
            if token is None:
                continue
            rest = self._split(text[length:], count - 1)
            if rest is not None:
                return [token, *rest]
        return None
