"""Cancels on their way to the engine's *released*: how long each takes, and when patience ends.

A cancelled ticket keeps what it held until the worker confirms; one that never does costs the
worker its life after `kill_after_seconds`. Does NOT free anything (see `scheduler`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from plait.scheduling.model_metrics import ModelMetrics
from plait.scheduling.policy import SchedulerPolicy
from plait.scheduling.ticket import Ticket, TicketState


class Stops:
    """Owned by one scheduler; `kill` ends its worker, with a reason shown to peers."""

    def __init__(
        self, policy: SchedulerPolicy, metrics: ModelMetrics, kill: Callable[[str], None]
    ) -> None:
        self._policy = policy
        self._metrics = metrics
        self._kill = kill

    def begin(self, ticket: Ticket, stamp: float) -> None:
        """`stamp` is when the cancel was read."""
        ticket.state = TicketState.CANCELLING
        ticket.cancel_stamp = stamp
        ticket.stop_timer()
        ticket.timer = asyncio.get_running_loop().call_later(
            self._policy.kill_after_seconds, self._lose_patience, ticket
        )

    def confirm(self, ticket: Ticket, at: float, wasted: int) -> None:
        """The job is over, at `at`; counts only where a cancel had been read."""
        if ticket.cancel_stamp is not None:
            took = max(0.0, at - ticket.cancel_stamp)
            late = took > self._policy.release_bound_seconds
            self._metrics.cancel_released(took, wasted, late=late)

    def _lose_patience(self, ticket: Ticket) -> None:
        ticket.timer = None
        seconds = self._policy.kill_after_seconds
        self._kill(f"job {ticket.job} was not released {seconds:.0f} s after its cancel")
