"""Binary frames (PROTOCOL.md §4): a 16-byte little-endian header, then the payload.

`u8 version=1 | u8 kind | u16 flags | u32 stream id | u32 seq | u32 aux`; the payload stays aligned
for typed-array views. Decoding copies nothing: the payload is a view into the received frame.
This module does NOT know which kinds are legal in which direction (see `connection`) nor what a
payload means.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

from plait.wire.close import CloseCode, close_reason

VERSION = 1
HEADER = struct.Struct("<BBHIII")
HEADER_BYTES = HEADER.size
MAX_SERVER_FRAME_BYTES = 64 * 1024
MAX_AUDIO_FRAME_BYTES = 16 * 1024
MAX_ROWS_BYTES = MAX_SERVER_FRAME_BYTES - HEADER_BYTES  # of a frame's payload


class BinaryKind(enum.IntEnum):
    AUDIO_OUT = 1  # aux: offset of the first sample
    AUDIO_IN = 2  # seq and aux: 0, ignored
    ROWS = 3  # float32 rows; aux: index of the first row


class BinaryFlags(enum.IntFlag):
    NONE = 0
    LAST_OF_SENTENCE = 1
    DISCONTINUITY = 2
    TRUNCATED = 4  # rows of texts that were cut


class Undecodable(Exception):
    """A frame that names no stream to answer on: the socket closes with `code` and `reason`."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = close_reason(reason)


@dataclass(frozen=True, slots=True)
class BinaryFrame:
    """Header fields as read (`kind` may be one we do not know) and a view of the payload."""

    version: int
    kind: int
    flags: int
    id: int
    seq: int
    aux: int
    payload: memoryview


def encode_binary(
    kind: int, flags: int, id: int, seq: int, aux: int, payload: bytes | memoryview
) -> bytes:
    """One binary frame. `payload` is copied once, behind the header."""
    return b"".join((HEADER.pack(VERSION, kind, flags, id, seq, aux), payload))


def decode_binary(frame: bytes | memoryview) -> BinaryFrame:
    """Read the header; any version and kind pass. Raises Undecodable under 16 bytes."""
    if len(frame) < HEADER_BYTES:
        raise Undecodable(
            CloseCode.UNREADABLE,
            f"binary frame of {len(frame)} bytes: the header alone takes {HEADER_BYTES}",
        )
    version, kind, flags, id, seq, aux = HEADER.unpack_from(frame)
    return BinaryFrame(version, kind, flags, id, seq, aux, memoryview(frame)[HEADER_BYTES:])
