"""Whom a stream answers to: its session, as far as a stream needs to know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plait.engines.base import Released
    from plait.sessions.outbox import Outbox
    from plait.sessions.stopwatch import Stopwatch
    from plait.sessions.stream import Stream
    from plait.wire.messages import Cancelled


class StreamOwner(Protocol):
    """The session, as a stream sees it."""

    outbox: Outbox

    def on_stream_started(self, stream: Stream) -> None: ...

    def on_first_item(self, stream: Stream, seconds: float) -> None:
        """The first item for the client came out of the engine, so long after its open."""

    def on_stream_ended(self, stream: Stream, outcome: str, cancelled: Cancelled | None) -> None:
        """The terminal (the third argument, where it is a `cancelled`) was queued or taken:
        forget the id."""

    def on_stream_released(self, id: int, times: Stopwatch, released: Released) -> None:
        """The engine holds nothing of it any more; its terminal may be out already."""
