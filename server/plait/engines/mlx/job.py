"""What the mlx adapter keeps per chat job, and how a job's failure is told to its peer.

The job's row holds token ids, its answer the text; both share the list of tokens produced. Knows
no batch and no scheduling: `chat` moves jobs from state to state.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import msgspec

from plait.engines.base import LoadSpec, Prepare, Usage
from plait.engines.chat.constraint import cannot_force
from plait.engines.chat.prompt import ChatTokenizer, fit_answer
from plait.engines.chat.text import AnswerText
from plait.engines.mlx.batch import Row
from plait.engines.mlx.forced import Forced, GrammarTokens
from plait.engines.mlx.sampling import RowSampling
from plait.errors import GenerationFailed, OutOfMemory, PlaitError, UnsupportedMethod
from plait.wire.messages import ChatParams


class JobState(enum.Enum):
    """prepared -> waiting (for room in the batch) <-> computing <-> paused; then leaving."""

    PREPARED = enum.auto()
    WAITING = enum.auto()
    COMPUTING = enum.auto()
    PAUSED = enum.auto()
    LEAVING = enum.auto()


@dataclass(slots=True, eq=False)
class Job:
    """`reserve_bytes`: see `reservations`; `cached_tokens`: of its prompt, computed by others."""

    id: int
    scope: str
    row: Row
    answer: AnswerText
    top_logprobs: int | None  # None: not asked for
    state: JobState = JobState.PREPARED
    reserve_bytes: int = 0
    cached_tokens: int = 0
    wasted: int = 0
    wasted_prompt: list[int] = field(default_factory=list)  # chunks by their tokens

    @property
    def usage(self) -> Usage:
        return {
            "prompt_tokens": len(self.row.prompt),
            "cached_tokens": self.cached_tokens,
            "completion_tokens": len(self.answer.tokens),
        }


def make_job(
    command: Prepare,
    tokenizer: ChatTokenizer,
    spec: LoadSpec,
    grammar_tokens: GrammarTokens | None = None,
) -> Job:
    """Template, tokenize, bound the answer and its form.

    Raises `UnsupportedMethod`, `TemplateError`, `ContextOverflow`; `InvalidRequest` for a form that
    cannot be forced.
    """
    if command.method != "chat":
        raise UnsupportedMethod(f"Model '{spec.model}' does chat, not '{command.method}'.")
    params = msgspec.convert(command.params, ChatParams)
    context_tokens = spec.context_tokens
    prompt = tokenizer.encode_chat(params, context_tokens=context_tokens)
    max_tokens = fit_answer(
        len(prompt), params.max_tokens, max_tokens=spec.max_tokens, context_tokens=context_tokens
    )
    grammar = tokenizer.grammar(params)
    if grammar is not None and grammar_tokens is None:
        raise cannot_force(grammar.param)
    answer = tokenizer.answer(params, max_tokens, grammar)
    forced = None
    if grammar is not None and grammar_tokens is not None:
        forced = Forced(grammar_tokens, grammar.text, len(prompt))
    row = Row(prompt, answer.tokens, max_tokens, RowSampling(params, forced))
    top = None if params.logprobs is False else int(params.logprobs)
    return Job(command.job, command.scope, row, answer, 0 if params.logprobs is True else top)


def failure_of(error: Exception) -> PlaitError:
    """mlx reports exhausted memory as a RuntimeError; its words are all there is to tell by."""
    if isinstance(error, PlaitError):
        return error
    words = str(error).lower()
    if isinstance(error, MemoryError) or "allocat" in words or "memory" in words:
        return OutOfMemory(
            "The engine ran out of memory for this chat; shorten it or try again later.",
            retry_after_ms=1000,
        )
    return GenerationFailed(
        "The model could not compute this answer; change the request or its sampling parameters."
    )


def no_distribution(answer: AnswerText) -> GenerationFailed:
    return GenerationFailed(
        f"The model gave no valid probabilities after {len(answer.tokens)} tokens; "
        "change the messages or the sampling parameters."
    )
