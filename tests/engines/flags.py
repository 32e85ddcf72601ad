"""Cancels as a test sets them, for the rigs of all adapters."""

from __future__ import annotations


class Flags:
    """`CancelFlags` as the command reader thread would set them."""

    def __init__(self) -> None:
        self.stamps: dict[int, float] = {}

    def stamp(self, job: int) -> float | None:
        return self.stamps.get(job)
