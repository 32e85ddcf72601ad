"""What a hostile client sends: valid, mutated and meaningless frames, whole, in pieces or unframed.

Everything comes from the generator it is given. `Said.fate` is what it may do to the connection:
nothing (a stream fails, or it is ignored: PROTOCOL.md, 6 and 8), perhaps close it, or close it for
certain, as what follows could not be read any more.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from websockets.frames import Opcode

from plait.wire.codec import BinaryKind, encode_binary
from tests.chaos.raw import frame, text
from tests.live.peer import opening

VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2**32, 2**63, 10**400, 0.5, "", "x" * 300, "\ud800", [], {}, [[]], "5"),
    {"a": {"b": {}}},
]
TYPES = ("open", "ack", "input", "end", "cancel", "ping", "welcome", "item", "nope")
FIELDS = ("id", "type", "method", "params", "window", "seq", "priority", "deadline_ms", "text", "n")
MOST_ID = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Said:
    data: bytes
    fate: Literal["stays", "may close", "closes"]


class Fuzz:
    """Of one connection. `opened`: ids of opens that were sent whole and unchanged."""

    def __init__(self, rng: random.Random) -> None:
        self.opened: set[int] = set()
        self._rng = rng
        self._id = 0

    def next(self) -> Said:
        rng = self._rng
        tricks: list[tuple[Callable[[], Said], int]] = [
            (self._honest, 50),
            (self._changed, 20),
            (self._binary, 10),
            (self._in_pieces, 8),
            (self._control, 8),
            (self._garbage_text, 2),
            (self._unframed, 2),
        ]
        return rng.choices([trick for trick, _ in tricks], [weight for _, weight in tricks])[0]()

    def _message(self) -> dict[str, Any]:
        rng = self._rng
        kind = rng.choice(("open", "open", "ack", "input", "end", "cancel", "ping"))
        id = rng.randint(1, max(1, self._id))
        if kind == "open":
            self._id += rng.randint(1, 3)
            return opening(self._id, f"tokens={rng.randint(0, 30)} step_ms=1", window=0)
        extra: dict[str, dict[str, Any]] = {
            "ack": {"seq": 0},
            "input": {"text": "one"},
            "ping": {"n": rng.randint(0, 9)},
        }
        named = {} if kind == "ping" else {"id": id}
        return {"type": kind, **named, **extra.get(kind, {})}

    def _honest(self) -> Said:
        message = self._message()
        if message["type"] == "open":
            self.opened.add(message["id"])
        return Said(text(json.dumps(message)), "stays")

    def _changed(self) -> Said:
        """One field is another thing, one is missing, or a letter of the text is."""
        rng = self._rng
        message = self._message()
        choice = rng.random()
        if choice < 0.6:
            message[rng.choice(FIELDS)] = rng.choice(VALUES)
        elif choice < 0.8:
            message.pop(rng.choice(list(message)))
        elif choice < 0.9:
            message["type"] = rng.choice(TYPES)
        payload = bytearray(json.dumps(message).encode())
        if choice >= 0.9:
            payload[rng.randrange(len(payload))] = rng.randrange(32, 127)
        return Said(text(bytes(payload)), "may close")

    def _binary(self) -> Said:
        rng = self._rng
        payload = rng.randbytes(rng.choice((0, 1, 2, 640)))
        if rng.random() < 0.2:
            return Said(frame(Opcode.BINARY, payload), "may close")
        kind = rng.choice(list(BinaryKind))
        id = rng.choice((0, 1, max(1, self._id), MOST_ID))
        data = bytearray(encode_binary(kind, rng.randrange(65536), id, 0, 0, payload))
        data[0] = rng.choice((1, 1, 1, 0, 255))
        return Said(frame(Opcode.BINARY, bytes(data)), "stays")

    def _in_pieces(self) -> Said:
        """One message over several frames, pings between them."""
        rng = self._rng
        payload = json.dumps({"type": "ping", "n": rng.randint(0, 9)}).encode()
        cuts = sorted(rng.sample(range(1, len(payload)), rng.randint(1, 3)))
        pieces = [payload[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        data = text(pieces[0], fin=False)
        for piece in pieces[1:-1]:
            data += frame(Opcode.PING, b"between") + frame(Opcode.CONT, piece, fin=False)
        return Said(data + frame(Opcode.CONT, pieces[-1]), "stays")

    def _control(self) -> Said:
        rng = self._rng
        opcode = rng.choice((Opcode.PING, Opcode.PONG))
        return Said(frame(opcode, rng.randbytes(rng.randint(0, 125))), "stays")

    def _garbage_text(self) -> Said:
        rng = self._rng
        kinds = (
            b"",
            b"[]",
            b"nope",
            b"\xff\xfe",
            b'{"type":',
            b"[" * 2000,
            b"x" * (1 << 20) + b"y",
        )
        return Said(text(rng.choice(kinds)), "may close")

    def _unframed(self) -> Said:
        """What no WebSocket frame is: unmasked, of an unknown opcode, out of turn, too long."""
        rng = self._rng
        kinds = (
            b"\x81\x02hi",
            b"\x8f\x80\0\0\0\0",
            b"\xf1\x80\0\0\0\0",
            frame(Opcode.CONT, b"out of turn"),
            b"\x89\xfe\x01\x00\0\0\0\0" + b"x" * 256,
            b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",
            b"\x81\xff\x80\0\0\0\0\0\0\0\0\0\0\0",
        )
        return Said(rng.choice(kinds), "closes")
