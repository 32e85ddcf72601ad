"""Small words for wire tests: limits, frames as a client writes them."""

from __future__ import annotations

import json
from typing import Any

from plait.wire.codec import BinaryKind, encode_binary
from plait.wire.connection import Connection
from plait.wire.messages import Limits

NOW = 1000.0


def limits(**changes: Any) -> Limits:
    values: dict[str, Any] = {
        "max_streams": 8,
        "max_queued": 64,
        "max_text_bytes": 1 << 20,
        "max_binary_bytes": 1 << 18,
        "window": 64,
        "opens_per_second": 100.0,
        "ping_seconds": 10,
    }
    return Limits(**{**values, **changes})


def text(type: str, **fields: Any) -> str:
    return json.dumps({"type": type, **fields})


def open_chat(id: int, **fields: Any) -> str:
    params = {"messages": [{"role": "user", "content": "Hi"}]}
    return text("open", id=id, method="chat", **{"params": params, **fields})


def open_method(id: int, method: str, **params: Any) -> str:
    return text("open", id=id, method=method, params=params)


def audio(id: int, payload: bytes = b"\0\0") -> bytes:
    return encode_binary(BinaryKind.AUDIO_IN, 0, id, 0, 0, payload)


def connection_with(*opens: str, **changes: Any) -> Connection:
    connection = Connection(limits(**changes))
    for frame in opens:
        connection.receive_text(frame, NOW)
    return connection
