"""What one connection was told of each of its streams, and whether that is what §2 promises.

A frame after a terminal, a gap in the seqs, a second terminal or an answer too many is `Broken`
where it is read. An error is an end like any other: whether it was due, others judge. Does NOT
know sockets, nor what a stream asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from plait.wire.codec import decode_binary

TERMINALS = ("done", "cancelled", "error")
OF_NO_STREAM = ("pong", "goaway")


class Broken(Exception):
    """A server said what plait.v1 does not let it say, or kept silent for too long."""


@dataclass(slots=True)
class Life:
    """One stream as its client saw it. `code`: of its error; `released`: of its cancel."""

    method: str
    accepted: bool = False
    rejected: bool = False
    seq: int = 0
    terminal: str | None = None
    code: str | None = None
    released: bool | None = None

    @property
    def over(self) -> bool:
        return self.rejected or self.terminal is not None

    @property
    def end(self) -> str:
        """ "lost": it ended with its connection."""
        return "rejected" if self.rejected else self.terminal or "lost"


@dataclass(slots=True)
class Book:
    """Of one connection, by stream ids."""

    lives: dict[int, Life] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return all(life.over for life in self.lives.values())

    def take(self, frame: str | bytes) -> tuple[int, int] | None:
        """(id, seq) of an item, to be acknowledged. Raises Broken."""
        if isinstance(frame, bytes):
            header = decode_binary(frame)
            return self._take_item(self._life(header.id, "a binary frame"), header.id, header.seq)
        message: dict[str, Any] = msgspec.json.decode(frame)
        kind = message["type"]
        if kind in OF_NO_STREAM:
            return None
        life = self._life(message["id"], kind)
        if kind == "item":
            return self._take_item(life, message["id"], message["seq"])
        if kind == "accepted":
            life.accepted = True
        elif kind == "rejected":
            _hold(not life.accepted, "rejected after accepted", life)
            life.rejected, life.code = True, message["error"]["code"]
        elif kind in TERMINALS:
            self._end(life, message)
        return None

    def _life(self, id: int, kind: str) -> Life:
        life = self.lives.get(id)
        if life is None:
            raise Broken(f"{kind} of stream {id}, which was never opened")
        _hold(not life.over, f"{kind} after the end", life)
        return life

    def _take_item(self, life: Life, id: int, seq: int) -> tuple[int, int]:
        _hold(life.accepted, "an item before accepted", life)
        _hold(seq == life.seq + 1, f"item {seq}", life)
        life.seq = seq
        return id, seq

    def _end(self, life: Life, message: dict[str, Any]) -> None:
        _hold(life.accepted, "a terminal before accepted", life)
        _hold(message["seq"] == life.seq, f"a terminal of seq {message['seq']}", life)
        life.terminal = message["type"]
        if message["type"] == "error":
            life.code = message["error"]["code"]
        elif message["type"] == "cancelled":
            life.released = message["released"]


def _hold(held: bool, what: str, life: Life) -> None:
    if not held:
        raise Broken(f"{what}: {life}")
