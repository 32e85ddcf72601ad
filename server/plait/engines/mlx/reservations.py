"""How many cache cells a chat reserves, so that a batch padded on the left never takes more.

A batch has rows x its longest row. Each job pays for itself as long as the longest it met when it
came, and for what it makes shorter ones before it grow by (as many as can be in a batch with it).
So whichever jobs leave, those that stay have reserved what they can take: of any two, the later one
paid for their difference. Pure arithmetic: knows no bytes, no budget and no batch.
"""

from __future__ import annotations

from heapq import nlargest


class Reservations:
    """Of the jobs an engine knows, waiting ones too: any `slots` of them may compute together."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._cells: dict[int, int] = {}
        self._own: dict[int, int] = {}  # what a job has reserved for itself, padding included

    def add(self, job: int, cells: int) -> int:
        """-> cells reserved for a row that takes `cells` by itself."""
        own = max(cells, *self._cells.values()) if self._cells else cells
        shorter = [cells - other for other in self._own.values() if other < cells]
        self._cells[job] = cells
        self._own[job] = own
        return own + sum(nlargest(self._slots - 1, shorter))

    def drop(self, job: int) -> None:
        del self._cells[job], self._own[job]
