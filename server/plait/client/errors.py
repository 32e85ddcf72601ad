"""What can end a client's stream besides the server's own errors (those are `plait.errors` leaves).

Both are PlaitErrors, so one `except PlaitError` sees every way a stream can fail. They are not in
the closed code list: they never travel. Of sockets this module knows only how they close.
"""

from __future__ import annotations

from websockets.exceptions import ConnectionClosed

from plait.errors import ClientError, InternalError
from plait.wire.messages import Cancelled


class ConnectionLost(InternalError):
    """The socket is gone and the stream had no terminal: nobody knows how it ended.

    `close_code` is the WebSocket's, None when there was no close frame.
    """

    code = "connection_lost"

    def __init__(self, message: str, close_code: int | None = None) -> None:
        super().__init__(message)
        self.close_code = close_code


class StreamCancelled(ClientError):
    """The stream was stopped before its end; `cancelled` is the proof, and says by whom.

    It is None where the server had come to the end before our cancel reached it: what the consumer
    had not taken by then is dropped all the same.
    """

    code = "cancelled"

    def __init__(self, cancelled: Cancelled | None) -> None:
        by = "client" if cancelled is None else cancelled.by
        super().__init__(f"the stream was cancelled by: {by}")
        self.cancelled = cancelled


def lost_by(closed: ConnectionClosed) -> ConnectionLost:
    """What a closed socket means to whoever still waited."""
    if closed.rcvd is None:
        return ConnectionLost("the connection broke")
    reason = closed.rcvd.reason or "no reason given"
    return ConnectionLost(f"the server closed: {closed.rcvd.code}, {reason}", closed.rcvd.code)
