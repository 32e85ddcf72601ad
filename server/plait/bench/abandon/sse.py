"""Server-sent events, taken apart as their bytes come, however they are cut.

Pure. Only what a stream of chat completions has: `data` and, from some servers, `error` lines;
comments (keep-alives) are dropped. Does NOT know JSON nor sockets.
"""

from __future__ import annotations

FIELDS = (b"data", b"error")
LINE_BYTES = 4 * 2**20  # a chunk of an answer is some hundred bytes


class EventLines:
    """Feed bytes, get the payload of each whole event."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Payloads of the events that end in `piece`. Raises ValueError for a line without end."""
        events: list[bytes] = []
        # A lone CR ends a line as well, but one at the very end may be half of a CRLF.
        text = self._rest + piece
        held = text.endswith(b"\r")
        lines = text[:-1].splitlines(keepends=True) if held else text.splitlines(keepends=True)
        self._rest = b""
        if lines and not lines[-1].endswith((b"\n", b"\r")):
            self._rest = lines.pop()
        self._rest += b"\r" if held else b""
        if len(self._rest) > LINE_BYTES:
            raise ValueError(f"a line of more than {LINE_BYTES} bytes")
        for line in lines:
            self._take(line.rstrip(b"\r\n"), events)
        return events

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
            self._data = []
            return
        name, _, value = line.partition(b":")
        if name in FIELDS:
            self._data.append(value.removeprefix(b" "))
