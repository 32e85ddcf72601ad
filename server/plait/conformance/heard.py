"""One stream as a client hears it: every message with its id, in order, and what it asks of us.

Does NOT judge (see `checker`) and knows no socket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plait.conformance.fields import TERMINALS
from plait.conformance.media import Frame

Message = dict[str, Any]


@dataclass(slots=True)
class Item:
    """`data` of a JSON item, or the `frame` of a binary one."""

    seq: int
    data: Message = field(default_factory=dict)
    frame: Frame | None = None


@dataclass(slots=True)
class Heard:
    """`acks`: whether each item is acknowledged as it comes."""

    id: int
    method: str
    acks: bool = True
    accepted: list[Message] = field(default_factory=list)
    rejections: list[Message] = field(default_factory=list)
    started: Message | None = None
    items: list[Item] = field(default_factory=list)
    input_acks: list[Message] = field(default_factory=list)
    terminal: Message | None = None

    def take(self, message: Message) -> None:
        kind = message["type"]
        if kind == "accepted":
            self.accepted.append(message)
        elif kind == "rejected":
            self.rejections.append(message)
        elif kind == "started":
            self.started = message
        elif kind == "item":
            self.items.append(Item(message.get("seq", 0), message.get("data", {})))
        elif kind == "input_ack":
            self.input_acks.append(message)
        elif kind in TERMINALS and self.terminal is None:
            self.terminal = message

    def take_frame(self, frame: Frame) -> None:
        self.items.append(Item(frame.seq, frame=frame))

    @property
    def seq(self) -> int:
        """Of the last item."""
        return self.items[-1].seq if self.items else 0

    @property
    def ended(self) -> str:
        """`rejected`, the type of its terminal, or nothing yet."""
        if self.terminal is not None:
            return str(self.terminal["type"])
        return "rejected" if self.rejections and not self.accepted else ""

    @property
    def answered(self) -> bool:
        return bool(self.accepted or self.rejections)

    @property
    def error(self) -> Message:
        """Of its terminal or refusal; empty without one."""
        source = self.terminal or (self.rejections[0] if self.rejections else {})
        found: Message = source.get("error") or {}
        return found

    @property
    def text(self) -> str:
        """A chat's answer so far."""
        return "".join(item.data.get("content") or "" for item in self.items)

    @property
    def audio(self) -> bytes:
        return b"".join(item.frame.payload for item in self.items if item.frame is not None)

    def __str__(self) -> str:
        state = self.ended or ("started" if self.started else "pending")
        code = f" {self.error['code']}" if self.error.get("code") else ""
        by = f" by {self.terminal['by']}" if self.ended == "cancelled" and self.terminal else ""
        return f"stream {self.id} {state}{code}{by} after {len(self.items)} items"
