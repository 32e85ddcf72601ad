"""A token bucket without a clock: the caller passes the time, in seconds of a monotonic clock.

Used for opens and for floods (see `connection`). It does NOT know what a token pays for.
"""

from __future__ import annotations


class TokenBucket:
    """Holds up to `burst` tokens, refilled at `per_second`; starts full."""

    def __init__(self, per_second: float, burst: float) -> None:
        assert per_second > 0
        assert burst >= 1
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._updated: float | None = None

    def take(self, now: float, tokens: float = 1) -> bool:
        """Take `tokens`, at most a whole burst; False, taking nothing, when there are fewer."""
        tokens = min(tokens, self._burst)
        if self._updated is not None:
            elapsed = max(0.0, now - self._updated)
            self._tokens = min(self._burst, self._tokens + elapsed * self._per_second)
        self._updated = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    @property
    def wait_seconds(self) -> float:
        """After a refused `take`: how long until the next token."""
        return max(0.0, (1 - self._tokens) / self._per_second)
