"""What the mlx adapter keeps per chat job, and how a job's failure is told to its peer.

The job's row holds token ids, its answer the text; both share the list of tokens produced. Knows
no batch and no scheduling: `mlx_chat` moves jobs from state to state.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from plait.engines.base import Usage
from plait.engines.chat_text import AnswerText
from plait.engines.mlx_batch import Row
from plait.errors import GenerationFailed, OutOfMemory, PlaitError


class JobState(enum.Enum):
    """prepared -> waiting (for room in the batch) <-> computing <-> paused; then leaving."""

    PREPARED = enum.auto()
    WAITING = enum.auto()
    COMPUTING = enum.auto()
    PAUSED = enum.auto()
    LEAVING = enum.auto()


@dataclass(slots=True, eq=False)
class Job:
    id: int
    row: Row
    answer: AnswerText
    top_logprobs: int | None  # None: not asked for
    state: JobState = JobState.PREPARED
    wasted: int = 0

    @property
    def usage(self) -> Usage:
        return {
            "prompt_tokens": len(self.row.prompt),
            "cached_tokens": 0,
            "completion_tokens": len(self.answer.tokens),
        }


def failure_of(error: Exception) -> PlaitError:
    """mlx reports exhausted memory as a RuntimeError; its words are all there is to tell by."""
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
