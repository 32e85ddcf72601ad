"""What a connection makes of received frames: the values its session acts on.

Frozen, and complete: nobody needs to look at a frame again. They name ids of live streams only,
but for `OpenRejected`, which may name any. This module does NOT know when which one is due.
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.errors import PlaitError
from plait.wire.close import CloseCode
from plait.wire.messages import Params, Priority


@dataclass(frozen=True, slots=True)
class OpenReceived:
    """A valid open. The id is live until `Connection.forget`, also if the session rejects it."""

    id: int
    method: str
    params: Params
    window: int
    priority: Priority
    deadline_ms: int | None


@dataclass(frozen=True, slots=True)
class OpenRejected:
    """Answer `rejected`. Says nothing about a live stream of that id; forget nothing.

    `method` is one of ours, or "other": the open named none that exists, or was too broken to say.
    """

    id: int
    error: PlaitError
    method: str = "other"


@dataclass(frozen=True, slots=True)
class AckReceived:
    id: int
    seq: int
    window: int | None


@dataclass(frozen=True, slots=True)
class InputReceived:
    """Text input: `text` for synthesize, `texts` for embed; the other one is None."""

    id: int
    text: str | None
    texts: list[str] | None


@dataclass(frozen=True, slots=True)
class AudioReceived:
    """`payload` is a view into the received frame; `flags` as in `BinaryFlags`."""

    id: int
    payload: memoryview
    flags: int


@dataclass(frozen=True, slots=True)
class EndReceived:
    """No more input. At most once per stream, and only where input was possible."""

    id: int


@dataclass(frozen=True, slots=True)
class CancelReceived:
    """May repeat while the stream is live; the first one decides."""

    id: int
    heard_ms: float | None


@dataclass(frozen=True, slots=True)
class PingReceived:
    n: int


@dataclass(frozen=True, slots=True)
class StreamFaulted:
    """A client's mistake on a live stream: end it with `error`. At most once per stream."""

    id: int
    error: PlaitError


@dataclass(frozen=True, slots=True)
class CloseRequired:
    """Close the socket; the connection ignores everything from here on."""

    code: CloseCode
    reason: str


ConnectionEvent = (
    OpenReceived
    | OpenRejected
    | AckReceived
    | InputReceived
    | AudioReceived
    | EndReceived
    | CancelReceived
    | PingReceived
    | StreamFaulted
    | CloseRequired
)
