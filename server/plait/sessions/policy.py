"""A stream's bounds and patience, as values. They decide nothing by themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamPolicy:
    confirm_seconds: float = 0.1  # how long a terminal waits for the engine's release
    slow_seconds: float = 30.0  # without ack progress while blocked
    accepted_interval_seconds: float = 1.0
    max_outbox_bytes: int = 256 * 1024
