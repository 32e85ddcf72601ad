"""What a target of the abandonment bench is: where requests go, and how it tells what they cost.

The schedule (`Request`, `HangUp`) is the same for every target; a target sends requests its own
way and, after the run, says what was computed for readers who had left. Only data and protocols:
does NOT know any server.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Phase = Literal["prefill", "decode"]
How = Literal["cancel", "close", "reset"]
"""`cancel`: plait.v1's message, and a target without one closes its socket; `close`: FIN; `reset`:
TCP RST."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """When a reader leaves: on receiving `after_tokens` tokens in `decode`; in `prefill`
    `after_seconds` after the first sign that its prompt is being read (`Exchange.next_tokens`
    returned 0), and of a target without one after sending it. Sooner tokens do not matter then."""

    phase: Phase
    how: How
    after_tokens: int = 0
    after_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Request:
    """`at`: seconds after the run's begin at which it is due. `hang_up` None: it is read whole."""

    index: int
    at: float
    messages: list[dict[str, Any]]
    max_tokens: int
    hang_up: HangUp | None = None


class Exchange(Protocol):
    """One request on its way, on a connection of its own."""

    async def next_tokens(self) -> int | None:
        """How many tokens the next piece of the answer holds; None at its natural end.

        0: no token yet, but the server says that it has begun with this request (it left the
        queue, or read a part of the prompt). Only where a server does say so. May be cancelled
        while it waits, and called again. Raises BenchError for anything else than an answer.
        """

    async def hang_up(self, how: How) -> float:
        """Leave; the monotonic moment. Nothing is read any more."""


@dataclass(frozen=True, slots=True)
class Span:
    """One request as its server knows it. Moments are monotonic seconds; `started_at` None: it
    never got a slot. `decoded`: tokens in all, those included that nobody was sent.
    `chunks_after`: pieces of prompt, each by its tokens, that were computed after the server had
    read that the reader left."""

    started_at: float | None
    released_at: float
    decoded: int
    prompt_tokens: int = 0
    chunks_after: tuple[int, ...] = ()


@dataclass(slots=True)
class Account:
    """What a run cost a target, by `source`: its own log, its metrics or its processes' CPU time.

    `decoded_after`, by request index: tokens decoded after the client's hang-up; `prefilled_after`:
    prompt tokens computed after it (by Plait: after its server had read that the reader left).
    None where the target cannot be asked request by request; then `mean_after` is of all that hung
    up, if that much is known. `dead_seconds`: engine time spent on requests whose reader had left;
    `busy_seconds`: engine time in all; `cpu_seconds`: of all the target's processes. `spans`: of a
    target that knows each request's times; `decoded_after`, `prefilled_after` and `dead_seconds`
    are then worked out from them (see `dead`).
    """

    source: str
    decoded_after: dict[int, int] | None = None
    prefilled_after: dict[int, int] | None = None
    mean_after: float | None = None
    dead_seconds: float | None = None
    busy_seconds: float | None = None
    cpu_seconds: float | None = None
    queue_waits: dict[int, float] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)


class Target(Protocol):
    """A server under load. `name` as in the tables: "plait, llama.cpp", "llama-server"."""

    name: str

    def open(self, request: Request) -> AbstractAsyncContextManager[Exchange]:
        """Send the request; leaving the block closes what is left of it."""

    async def begin(self) -> None:
        """Before a run: remember counters."""

    async def account(self) -> Account:
        """After a run, once the server has nothing to do any more."""
