"""Whose connection it is: what it may do, and with whom its streams share turns and limits.

All connections of an app share one `AppAccount`; a connection that belongs to no declared app has
an account of its own, without limits, and takes its turns alone. Rights never change while a
connection lives: when a token loses them, its connections are closed.
Does NOT know: tokens, how a caller was recognised, memory (the ledger charges `owner`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from plait import __version__
from plait.errors import RateLimited, TooManyStreams
from plait.metrics import OUTCOMES as OUTCOMES
from plait.scheduling.routing import Models
from plait.wire.connection import OPEN_BURST_SECONDS
from plait.wire.messages import Limits, Welcome
from plait.wire.rate import TokenBucket


class AppAccount:
    """Counts one app's connections and streams, and says when there are too many.

    `max_streams` and `opens_per_second` 0: no bound. Times are of a monotonic clock, in seconds.
    """

    def __init__(self, max_streams: int = 0, opens_per_second: float = 0.0) -> None:
        self.connections = 0
        self.queued = 0
        self.active = 0
        self.outcomes: Counter[str] = Counter()  # of streams that are over; keys are OUTCOMES
        self._max_streams = max_streams
        self._opens_per_second = opens_per_second
        self._opens: TokenBucket | None = None
        if opens_per_second:
            burst = max(1.0, opens_per_second * OPEN_BURST_SECONDS)
            self._opens = TokenBucket(opens_per_second, burst)

    def __repr__(self) -> str:
        return (
            f"<AppAccount {self.connections} connections, {self.queued} queued,"
            f" {self.active} active>"
        )

    def admit(self, now: float) -> None:
        """One more open. Raises RateLimited or TooManyStreams (data: limit)."""
        if self._opens is not None and not self._opens.take(now):
            raise RateLimited(
                f"more than {self._opens_per_second:g} opens per second of this app, all its"
                " connections together. Wait retry_after_ms.",
                retry_after_ms=max(1, math.ceil(self._opens.wait_seconds * 1000)),
            )
        live = self.queued + self.active
        if self._max_streams and live >= self._max_streams:
            raise TooManyStreams(
                f"{live} streams of this app live on its connections, and {self._max_streams} is"
                " its limit. Wait for one to end, or cancel one.",
                data={"limit": self._max_streams},
            )

    def stream_opened(self) -> None:
        self.queued += 1

    def stream_started(self) -> None:
        self.queued -= 1
        self.active += 1

    def stream_rejected(self) -> None:
        """It never was one of the app's streams."""
        self.outcomes["rejected"] += 1

    def stream_ended(self, outcome: str, *, started: bool) -> None:
        self.outcomes[outcome] += 1
        if started:
            self.active -= 1
        else:
            self.queued -= 1
        assert self.queued >= 0, self
        assert self.active >= 0, self


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """`owner` is in whose name streams wait and hold memory and kept prefixes: the app, or without
    declared apps the connection. `models` are those it may use."""

    owner: str
    models: Models
    capabilities: tuple[str, ...]
    account: AppAccount
    app: str | None = None

    @classmethod
    def anonymous(
        cls, connection: str, models: Models, also: Iterable[str] = ("metrics", "admin")
    ) -> Caller:
        """Of no declared app: everything this server offers, and its own turn in the queue."""
        return cls(connection, models, (*models.describe(), *also), AppAccount())

    def welcome(self, session: str, limits: Limits) -> Welcome:
        return Welcome(
            protocol="plait.v1",
            session=session,
            server=f"plait/{__version__}",
            limits=limits,
            methods=self.models.describe(),
            capabilities=list(self.capabilities),
            app=self.app,
        )
