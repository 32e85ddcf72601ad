"""What Plait's own log says of its streams, read line by line as it is written.

A server at log level `debug` tells of each stream that it started, that it ended and that its
engine has given everything back, late releases included. A connection of the bench carries one
stream, so a session's name stands for its request. Does NOT know requests, and skips what it cannot
read: other lines of the same output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from plait.bench.serving import BenchError

SETTLE_SECONDS = 60.0  # a server that has not said it by then will not


class Line(msgspec.Struct):
    """Any line about a stream."""

    event: str
    session: str


class Cost(msgspec.Struct):
    """`stream.released`. Moments are monotonic seconds."""

    started_at: float | None
    released_at: float
    usage: dict[str, int]
    wasted: int
    wasted_prompt: list[int]


@dataclass(slots=True)
class Entry:
    """Of one session's one stream. `cost` None: not yet, or it never got a slot."""

    started: bool = False
    ended: bool = False
    cost: Cost | None = None

    @property
    def settled(self) -> bool:
        return self.ended and (self.cost is not None or not self.started)


_line = msgspec.json.Decoder(Line)
_cost = msgspec.json.Decoder(Cost)


class PlaitLog:
    """Feed it lines, then wait for the sessions you had."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._changed = asyncio.Event()

    def take(self, line: str) -> None:
        if '"stream.' not in line:
            return
        try:
            read = _line.decode(line)
        except msgspec.DecodeError:
            return
        entry = self._entries.setdefault(read.session, Entry())
        if read.event == "stream.started":
            entry.started = True
        elif read.event == "stream.ended":
            entry.ended = True
        elif read.event == "stream.released":
            entry.cost = _cost.decode(line)
        self._changed.set()

    async def settled(self, sessions: Collection[str]) -> dict[str, Entry]:
        """Once the server has said its last word about each. Raises BenchError if it does not."""
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                while open_ := [name for name in sessions if not self._has_settled(name)]:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise BenchError(
                f"the server's log does not say how {len(open_)} of {len(sessions)} streams "
                "ended; was its engine lost?"
            ) from error
        return {name: self._entries.pop(name) for name in sessions}

    def _has_settled(self, session: str) -> bool:
        entry = self._entries.get(session)
        return entry is not None and entry.settled
