"""What the adapter keeps of one stream: its socket, what waits for it, what it was told and said.

Writes never block: what the socket does not take waits here, which the client's upload credit
bounds (`MAX_UNREAD_BYTES` is for a gateway that does not keep to it). Does NOT know permits,
processes or the other streams.
"""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

from plait.engines.base import Usage
from plait.engines.ipc import FrameReader
from plait.engines.whisper.messages import (
    RECEIVE_BYTES,
    Audio,
    End,
    FromChild,
    Listen,
    ToChild,
    decode_from_child,
    frame,
    reader,
)
from plait.errors import InputOverflow
from plait.wire.params import TranscribeParams

MAX_UNREAD_BYTES = 16 * 1024 * 1024


class Permit(Enum):
    """What a stream has of the cores. `HELD` survives a pause, in which it counts for nothing."""

    NONE = auto()
    WANTED = auto()
    WANTED_TO_CLOSE = auto()
    HELD = auto()


@dataclass(eq=False, slots=True)
class StreamJob:
    """`sock` is None before the start, and once it is closed."""

    id: int
    params: dict[str, object]
    format: TranscribeParams
    sock: socket.socket | None = None
    started: bool = False
    paused: bool = False
    stopped: bool = False  # as its process is, or was told to be
    input_ended: bool = False
    over: bool = False  # its end was told, or is not to be told
    permit: Permit = Permit.NONE
    inputs: int = 0
    fed_bytes: int = 0
    taken_bytes: int = 0
    _unsent: deque[memoryview] = field(default_factory=deque)
    _reader: FrameReader = field(default_factory=reader)

    @property
    def usage(self) -> Usage:
        """Of the audio that was listened to."""
        frames = self.taken_bytes // self.format.frame_bytes
        return {"audio_ms": frames * 1000 // self.format.sample_rate}

    def begin(self, sock: socket.socket) -> None:
        self.sock = sock
        self.started = True
        self._unsent.appendleft(memoryview(frame(Listen(self.params))))

    def feed(self, audio: bytes, now: float) -> None:
        """Raises InputOverflow."""
        unread_bytes = self.fed_bytes - self.taken_bytes + len(audio)
        if unread_bytes > MAX_UNREAD_BYTES:
            raise InputOverflow(
                f"{unread_bytes} bytes of audio wait to be listened to, and there is room for "
                f"{MAX_UNREAD_BYTES}. Wait for input_ack before sending more.",
                data={"received_bytes": unread_bytes, "credit_bytes": MAX_UNREAD_BYTES},
            )
        self.fed_bytes += len(audio)
        self.inputs += 1
        self.say(Audio(memoryview(audio), now))

    def finish_input(self) -> None:
        self.input_ended = True
        self.say(End())

    def say(self, message: ToChild) -> None:
        """Written by `flush`."""
        self._unsent.append(memoryview(frame(message)))

    def flush(self) -> bool:
        """Write what the socket takes; whether that is all. A dead reader takes everything."""
        try:
            while self.sock is not None and self._unsent:
                sent = self.sock.send(self._unsent[0])
                self._unsent[0] = self._unsent[0][sent:]
                if not self._unsent[0]:
                    self._unsent.popleft()
        except BlockingIOError:
            return False
        except (BrokenPipeError, ConnectionResetError):
            self._unsent.clear()  # its end is told by the zygote
        return True

    def receive(self) -> list[FromChild] | None:
        """What it said and was not read yet; None at its end.

        Raises BlockingIOError when there is nothing to read now, and FrameError.
        """
        assert self.sock is not None
        try:
            data = self.sock.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            return None
        if not data:
            return None
        return [said for one in self._reader.feed(data) for said in decode_from_child(one)]
