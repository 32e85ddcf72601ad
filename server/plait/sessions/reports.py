"""What an operator sees of a session: its metrics and its log lines. It decides nothing."""

from __future__ import annotations

import structlog

from plait.engines.base import Released
from plait.errors import PlaitError, RateLimited
from plait.metrics import Metrics
from plait.sessions.stopwatch import Stopwatch
from plait.wire.messages import Cancelled

CANCEL_FACTS = ("by", "released", "stop_ms", "wasted")  # of a `cancelled`, worth a log line

log = structlog.get_logger("plait.session")


class Reports:
    """Of one session, by its name and its app's. Methods come from a fixed set: they are metric
    labels."""

    def __init__(self, session: str, metrics: Metrics, app: str | None) -> None:
        self._metrics = metrics
        self._log = log.bind(session=session) if app is None else log.bind(session=session, app=app)

    def session_opened(self) -> None:
        self._metrics.connections.inc()
        self._log.info("session.opened")

    def session_closed(self) -> None:
        self._metrics.connections.dec()
        self._log.info("session.closed")

    def rejected(self, id: int, method: str, error: PlaitError) -> None:
        self._metrics.streams_total.labels(method, "rejected").inc()
        # What a peer does wrong it can do thousands of times a second: counted, not written down.
        peers_fault = error.error_class == "client" or isinstance(error, RateLimited)
        log_line = self._log.debug if peers_fault else self._log.info
        log_line("stream.rejected", stream=id, method=method, code=error.code)

    def opened(self, id: int, method: str) -> None:
        self._metrics.streams_queued.labels(method).inc()
        self._log.debug("stream.opened", stream=id, method=method)

    def started(self, id: int, method: str) -> None:
        self._metrics.streams_queued.labels(method).dec()
        self._metrics.streams_active.labels(method).inc()
        self._log.debug("stream.started", stream=id, method=method)

    def first_item(self, method: str, seconds: float) -> None:
        self._metrics.first_item.labels(method).observe(seconds)

    def ended(
        self, id: int, method: str, started: bool, outcome: str, cancelled: Cancelled | None
    ) -> None:
        gauge = self._metrics.streams_active if started else self._metrics.streams_queued
        gauge.labels(method).dec()
        self._metrics.streams_total.labels(method, outcome).inc()
        facts: dict[str, object] = {}
        if cancelled is not None:
            self._metrics.cancelled_total.labels(cancelled.by).inc()
            facts = {name: getattr(cancelled, name) for name in CANCEL_FACTS}
        self._log.info("stream.ended", stream=id, outcome=outcome, **facts)

    def released(self, id: int, times: Stopwatch, released: Released) -> None:
        """Its engine's last word, also of one that came too late for the terminal. Moments are
        monotonic seconds."""
        self._log.debug(
            "stream.released",
            stream=id,
            opened_at=times.opened,
            started_at=times.started_at,
            released_at=released.at,
            usage=released.usage,
            wasted=released.wasted,
            wasted_prompt=released.wasted_prompt,
        )
