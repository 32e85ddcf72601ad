"""Whether the machine itself runs short of memory, whoever uses it: one reading after another.

Below a floor it does, and goes on to until half as much again is free, so that nothing flickers.
Pure: readings are passed in. Does NOT know where they come from nor what follows.
"""

from __future__ import annotations

from dataclasses import dataclass

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Floor:
    """In bytes left: short below `short_bytes`, no longer from `recover_bytes` on."""

    short_bytes: int = 0
    recover_bytes: int = 0

    @classmethod
    def of(cls, total_bytes: int) -> Floor:
        """3 % of the memory, at least 128 MB and at most 1 GB: what the system needs to breathe."""
        short_bytes = min(1000 * MB, max(128 * MB, total_bytes * 3 // 100))
        return cls(short_bytes, short_bytes * 3 // 2)


class Pressure:
    """`pressed` is what the last readings say."""

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.pressed = False
        self.available_bytes: int | None = None  # None: never read

    def observe(self, available_bytes: int) -> bool:
        """One reading; whether `pressed` changed."""
        self.available_bytes = available_bytes
        before = self.pressed
        bound_bytes = self.floor.recover_bytes if before else self.floor.short_bytes
        self.pressed = available_bytes < bound_bytes
        return self.pressed != before
