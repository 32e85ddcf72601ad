"""What llama.cpp computed of a forced answer while its reader rested.

The library cannot begin in the middle of a grammar, so such a request is not dropped on a pause, as
others are: it goes on to its end, which its token bound sets, and what it yields waits here, at
most a chunk a token. A cancel stops it within a step like any other. Knows no threads and no seats.
"""

from __future__ import annotations

from collections import deque

from plait.engines.llamacpp.request import Gone
from plait.engines.llamacpp.wire import Chunk

CHUNKS_A_STEP = 16  # so that a new pause takes effect in the middle of what was computed before


class Ahead:
    """Of one job. `gone`: the request ended, and its seat is free, but not all was handed over."""

    def __init__(self) -> None:
        self.gone: Gone | None = None
        self._chunks: deque[Chunk] = deque()

    def __bool__(self) -> bool:
        return bool(self._chunks) or self.gone is not None

    def keep(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def take(self) -> list[Chunk]:
        """The next ones, for one step."""
        count = min(CHUNKS_A_STEP, len(self._chunks))
        return [self._chunks.popleft() for _ in range(count)]

    @property
    def handed_over(self) -> bool:
        return not self._chunks
