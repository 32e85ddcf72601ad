"""How many prompt tokens one step may take, learned from how long steps took.

A cancel waits for the running step, so a prefill chunk aims at `TARGET_SECONDS`: small on a CPU
(where one forward pass has a floor of its own and `LEAST_TOKENS` keeps prompts moving), large on a
GPU. Pure arithmetic: knows no model and reads no clock.
"""

from __future__ import annotations

TARGET_SECONDS = 0.05
LEAST_TOKENS = 16
MOST_TOKENS = 2048
FIRST_TOKENS = 32
SMOOTHING = 0.3  # weight of the newest measurement


class StepPace:
    """`chunk_tokens` is the next prefill chunk's size, `decode_seconds` what a decode step takes.

    `decode_seconds` is None until one was measured.
    """

    def __init__(self) -> None:
        self.chunk_tokens = FIRST_TOKENS
        self.decode_seconds: float | None = None
        self._seconds_per_token: float | None = None

    def observe_decode(self, seconds: float) -> None:
        self.decode_seconds = _smooth(self.decode_seconds, seconds)

    def observe_prefill(self, seconds: float, tokens: int, *, decoding: bool) -> None:
        """`seconds`: the whole step, with the decode step of the running rows if `decoding`."""
        if tokens == 0:
            return
        if decoding:
            # Part of every step is the chunk's own, however wrong the decode estimate may be.
            seconds = max(seconds - (self.decode_seconds or 0.0), seconds / 4)
        self._seconds_per_token = _smooth(self._seconds_per_token, seconds / tokens)
        wanted = int(TARGET_SECONDS / max(self._seconds_per_token, 1e-9))
        # A bigger chunk costs less per token, so growth is found in doublings, not in one leap.
        bounded = min(wanted, 2 * self.chunk_tokens, MOST_TOKENS)
        self.chunk_tokens = max(bounded, LEAST_TOKENS)


def _smooth(average: float | None, value: float) -> float:
    return value if average is None else average + SMOOTHING * (value - average)
