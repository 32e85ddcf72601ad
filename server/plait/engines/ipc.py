"""Frames between gateway and worker: u32 little-endian length, then one MessagePack value.

A command frame holds one `Command` (the very first one a `LoadSpec`), an event frame a list of
`Event`. Length 0 and lengths above `MAX_FRAME_BYTES` break the framing for good: the reader raises
and the link must be given up. Sans-I/O: knows no socket, no thread, no event loop.
"""

from __future__ import annotations

import struct

import msgspec

from plait.engines.base import Command, Event, LoadSpec

# A Prepare carries one client text frame (at most 64 MiB by configuration) in a denser encoding.
MAX_FRAME_BYTES = 128 * 1024 * 1024

_LENGTH = struct.Struct("<I")

_encoder = msgspec.msgpack.Encoder()
_command_decoder = msgspec.msgpack.Decoder(Command)
_event_decoder = msgspec.msgpack.Decoder(list[Event])
_spec_decoder = msgspec.msgpack.Decoder(LoadSpec)


class FrameError(ValueError):
    """The byte stream is no sequence of frames, or a frame holds something else than agreed."""


def encode_frame(payload: bytes) -> bytes:
    """Raises FrameError for an empty payload or one above `MAX_FRAME_BYTES`."""
    _check_length(len(payload), MAX_FRAME_BYTES)
    return _LENGTH.pack(len(payload)) + payload


def encode_command(command: Command | LoadSpec) -> bytes:
    """One whole frame."""
    return encode_frame(_encoder.encode(command))


def encode_events(events: list[Event]) -> bytes:
    """One whole frame for the batch, in order."""
    return encode_frame(_encoder.encode(events))


def decode_command(payload: bytes) -> Command:
    """Raises FrameError."""
    try:
        return _command_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise FrameError(f"not a command: {error}") from error


def decode_events(payload: bytes) -> list[Event]:
    """Raises FrameError."""
    try:
        return _event_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise FrameError(f"not a list of events: {error}") from error


def decode_spec(payload: bytes) -> LoadSpec:
    """Raises FrameError."""
    try:
        return _spec_decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise FrameError(f"not a load spec: {error}") from error


class FrameReader:
    """Cuts a byte stream into frame payloads, holding at most one unfinished frame.

    Each byte is copied a constant number of times however the stream is cut up: bytes pile up in
    one growing buffer that is looked at only once the frame they belong to is complete.
    """

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._needed_bytes = _LENGTH.size

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Payloads that `data` completes, in order.

        Raises FrameError on a bad length, which is final: feed no more.
        """
        buffer = self._buffer
        buffer += data
        if len(buffer) < self._needed_bytes:
            return []
        frames: list[bytes] = []
        start = 0
        with memoryview(buffer) as view:
            while len(buffer) - start >= self._needed_bytes:
                length = self._length_at(start)
                end = start + _LENGTH.size + length
                if end > len(buffer):
                    self._needed_bytes = _LENGTH.size + length
                    break
                frames.append(bytes(view[start + _LENGTH.size : end]))
                start = end
                self._needed_bytes = _LENGTH.size
        del buffer[:start]
        return frames

    @property
    def unfinished(self) -> bool:
        """Bytes of an incomplete frame are held: an end of stream now cuts a frame in two."""
        return bool(self._buffer)

    def _length_at(self, start: int) -> int:
        (length,) = _LENGTH.unpack_from(self._buffer, start)
        _check_length(length, self._max_frame_bytes)
        return int(length)


def _check_length(length: int, limit: int) -> None:
    if not 0 < length <= limit:
        raise FrameError(f"a frame of {length} bytes; 1 to {limit} are allowed")
