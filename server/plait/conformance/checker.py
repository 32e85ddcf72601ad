"""Every frame of one connection passes through here: what plait.v1 rules out is a fault.

Pure and without a clock, so it is tested on lists of frames. It knows nothing of cases: whatever
else a case asks for, these rules hold throughout it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plait.conformance.fields import FIELDS, field_faults
from plait.conformance.media import AUDIO_OUT, MAX_FRAME_BYTES, ROWS, Contents, Fault, read_frame
from plait.conformance.stream_rules import StreamRules

DEFAULT_WINDOW = 64


@dataclass(slots=True)
class Checker:
    """`faults`: (section, expected, seen), in the order they came up."""

    faults: list[Fault] = field(default_factory=list)
    window: int = DEFAULT_WINDOW
    streams: dict[int, StreamRules] = field(default_factory=dict)
    _welcomed: bool = False
    _pings: dict[int, list[set[int]]] = field(default_factory=dict)
    _cancelled: set[int] = field(default_factory=set)
    _reserved: set[int] = field(default_factory=set)

    # --- what was sent ---------------------------------------------------------------------------

    def sent(self, message: Mapping[str, Any]) -> None:
        """A text message of ours, right or wrong."""
        kind, id = message.get("type"), message.get("id")
        if kind == "open" and isinstance(id, int):
            self._opened(id, message)
        elif kind == "cancel" and isinstance(id, int) and id in self.streams:
            self._cancelled.add(id)
        elif kind == "ping" and isinstance(message.get("n"), int):
            self._pings.setdefault(message["n"], []).append(set(self._cancelled))
        elif kind == "ack" and isinstance(id, int) and id in self.streams:
            seq, window = message.get("seq"), message.get("window")
            if isinstance(seq, int):
                self.streams[id].sent_ack(seq, window if isinstance(window, int) else None)

    def reserve(self, id: int) -> None:
        """An open with this id is coming in a text that may be beyond reading."""
        self._reserved.add(id)
        self.streams[id] = StreamRules(id, Contents("", {}), self.window)

    def _opened(self, id: int, message: Mapping[str, Any]) -> None:
        if id in self._reserved:
            self._reserved.discard(id)
        elif id in self.streams:
            self.streams[id].refusable += 1
            return
        params, window = message.get("params"), message.get("window", self.window)
        contents = Contents(str(message.get("method")), params if isinstance(params, dict) else {})
        self.streams[id] = StreamRules(id, contents, window if isinstance(window, int) else 256)

    # --- what came -------------------------------------------------------------------------------

    def received(self, frame: str | bytes) -> dict[str, Any] | None:
        """The message in a text frame that could be read."""
        if isinstance(frame, bytes):
            self._binary(frame)
            return None
        try:
            message = json.loads(frame)
        except ValueError as error:
            self.faults.append(("§1", "text frames hold JSON", f"{error}: {frame[:100]}"))
            return None
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            self.faults.append(("§1", "one JSON object with a `type`", frame[:100]))
            return None
        self._text(message)
        return message

    def _text(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if (kind == "welcome") == self._welcomed:
            self.faults.append(("§1", "`welcome` first, and once", kind))
        self._welcomed = True
        if kind == "welcome" and not field_faults(message):
            self.window = message["limits"]["window"]
        if kind not in FIELDS:
            return  # a client ignores it (§8)
        wrong = field_faults(message)
        self.faults += wrong
        if wrong and kind not in ("done", "cancelled", "error", "accepted", "rejected"):
            return
        if kind == "pong":
            self._pong(message["n"])
        elif "id" in FIELDS[kind]:
            self._stream(message)

    def _pong(self, n: int) -> None:
        """What was sent before the ping has been read."""
        waiting = self._pings.get(n)
        if not waiting:
            self.faults.append(("§1", "a pong for a ping", f"n {n} without one"))
            return
        for id in waiting.pop(0):
            if id in self.streams:
                self.streams[id].fenced = True

    def _stream(self, message: dict[str, Any]) -> None:
        stream = self.streams.get(message.get("id", 0))
        if stream is None:
            seen = f"{message['type']} of id {message.get('id')}"
            self.faults.append(("§2", "only ids that were opened", seen))
            return
        self.faults += stream.receive(message)

    def _binary(self, data: bytes) -> None:
        try:
            frame = read_frame(data)
        except struct.error:
            self.faults.append(("§4", "a 16-byte header", f"{len(data)} bytes"))
            return
        if len(data) > MAX_FRAME_BYTES:
            self.faults.append(("§4", "frames of at most 64 KiB", f"{len(data)} bytes"))
        if frame.kind not in (AUDIO_OUT, ROWS):
            return  # a client ignores it (§8)
        stream = self.streams.get(frame.id)
        if stream is None:
            self.faults.append(("§2", "only ids that were opened", f"a frame of id {frame.id}"))
            return
        self.faults += stream.receive_item(frame.seq) + stream.contents.frame(frame)

    # --- at the end ------------------------------------------------------------------------------

    def unended(self) -> list[int]:
        """Ids that were accepted, or not answered, and have no terminal."""
        return [
            id for id, stream in self.streams.items() if not stream.ended and not stream.refused
        ]
