"""Close codes of plait.v1 (PROTOCOL.md §6): the faults that end a socket instead of one stream.

Closed list. Everything not listed here is answered on the stream it concerns. This module does
NOT know when a code is due (see `codec`, `connection`) nor how a socket is closed.
"""

from __future__ import annotations

import enum

MAX_REASON_BYTES = 123  # RFC 6455: a close frame's body is 125 bytes, two of them the code


class CloseCode(enum.IntEnum):
    GOING_AWAY = 1001
    INVALID_UTF8 = 1007
    TOO_BIG = 1009
    INTERNAL = 1011
    RESTART = 1012
    UNREADABLE = 4400
    UNAUTHORIZED = 4401
    FLOOD = 4429


def close_reason(text: str) -> str:
    """`text` cut to what a close frame can carry, whole characters only."""
    encoded = text.encode("utf-8", "replace")
    return encoded[:MAX_REASON_BYTES].decode("utf-8", "ignore")
