"""A WAV file as `transcribe` wants it: what its header says, and its samples piece by piece.

Samples of 8, 24 and 32 bits become PCM16 (what is finer than that is cut), doubles become floats;
PCM16 and 32-bit floats stay as they are. No more than a piece is in memory. A length that was never
filled in, as a pipe leaves it, means until the end. Does NOT know streams; reads are blocking.
"""

from __future__ import annotations

import io
import struct
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from plait.errors import InvalidAudio

PIECE_BYTES = 48 * 1024  # a multiple of every sample's size
MIN_RATE_HZ, MAX_RATE_HZ = 8000, 48000
MAX_CHANNELS = 2

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_FORMAT = struct.Struct("<HHIIHH")
_SUBFORMAT_AT = 24  # in the format chunk of an extensible one
_MAX_FORMAT_BYTES = 1024
_UNFILLED = (0, 0xFFFFFFFF)
_CONVERT = "Convert it, for example: ffmpeg -i FILE -ar 16000 -ac 1 speech.wav"

Source = str | Path | bytes | bytearray | memoryview | BinaryIO


@dataclass(slots=True)
class WavFile:
    """An open file, read up to its samples. `encoding` is of what `read` returns."""

    sample_rate: int
    channels: int
    encoding: str
    _file: BinaryIO
    _is_ours: bool
    _kind: tuple[int, int]  # (format, bits of a sample)
    _left_bytes: int | None  # None: until the end

    @classmethod
    def open(cls, source: Source) -> WavFile:
        """Raises InvalidAudio for what is not such a file, and OSError.

        A file object is read from where it is, and is not closed.
        """
        file, is_ours = _opened(source)
        try:
            kind, channels, rate, left = _read_header(file)
        except BaseException:
            if is_ours:
                file.close()
            raise
        encoding = "pcm_f32le" if kind[0] == _FLOAT else "pcm_s16le"
        return cls(rate, channels, encoding, file, is_ours, kind, left)

    def read(self) -> bytes:
        """The next samples; nothing at the end, also where the file ends too soon."""
        wanted = PIECE_BYTES if self._left_bytes is None else min(PIECE_BYTES, self._left_bytes)
        data = _read_up_to(self._file, wanted)
        if self._left_bytes is not None:
            self._left_bytes -= len(data)
        whole_bytes = len(data) - len(data) % (self._kind[1] // 8)
        return _CONVERSIONS[self._kind](data[:whole_bytes])

    def close(self) -> None:
        if self._is_ours:
            self._file.close()


def _opened(source: Source) -> tuple[BinaryIO, bool]:
    """(file, whether it is ours to close)."""
    if isinstance(source, str | Path):
        return Path(source).open("rb"), True
    if isinstance(source, bytes | bytearray | memoryview):
        return io.BytesIO(source), True
    return source, False


def _read_header(file: BinaryIO) -> tuple[tuple[int, int], int, int, int | None]:
    """(kind, channels, rate, bytes of samples); the file is then at its first sample."""
    riff = _read_up_to(file, 12)
    if riff[:4] != b"RIFF" or riff[8:] != b"WAVE":
        raise InvalidAudio(f"this is no WAV file: it begins with {riff[:4]!r}. {_CONVERT}")
    facts = None
    while len(head := _read_up_to(file, 8)) == 8:
        name, size = head[:4], int.from_bytes(head[4:], "little")
        if name == b"data":
            if facts is None:
                break
            return *facts, None if size in _UNFILLED else size
        size += size % 2  # chunks begin at even places
        if name == b"fmt " and size <= _MAX_FORMAT_BYTES:
            facts = _read_format(_read_up_to(file, size))
        else:
            _skip(file, size)
    raise InvalidAudio(f"this WAV file ends before its samples begin. {_CONVERT}")


def _read_format(chunk: bytes) -> tuple[tuple[int, int], int, int]:
    if len(chunk) < _FORMAT.size:
        raise InvalidAudio(f"the header of this WAV file is cut short. {_CONVERT}")
    format, channels, rate, _, _, bits = _FORMAT.unpack_from(chunk)
    if format == _EXTENSIBLE and len(chunk) >= _SUBFORMAT_AT + 2:
        format = int.from_bytes(chunk[_SUBFORMAT_AT : _SUBFORMAT_AT + 2], "little")
    kind = (format, bits)
    if kind not in _CONVERSIONS:
        raise InvalidAudio(
            f"samples of format {format} with {bits} bits are not read here, only PCM of 8 to 32"
            f" bits and floats. {_CONVERT}"
        )
    if not MIN_RATE_HZ <= rate <= MAX_RATE_HZ:
        raise InvalidAudio(f"{rate} Hz is not within {MIN_RATE_HZ} … {MAX_RATE_HZ}. {_CONVERT}")
    if not 1 <= channels <= MAX_CHANNELS:
        raise InvalidAudio(f"{channels} channels are not 1 or {MAX_CHANNELS}. {_CONVERT}")
    return kind, channels, rate


def _skip(file: BinaryIO, size: int) -> None:
    """By reading: a pipe cannot seek."""
    while size > 0 and (data := file.read(min(size, PIECE_BYTES))):
        size -= len(data)


def _read_up_to(file: BinaryIO, size: int) -> bytes:
    """`size` bytes, or those left: a raw file or a pipe may give fewer at a time."""
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


# --- samples -----------------------------------------------------------------------------------


def _same(data: bytes) -> bytes:
    return data


def _from_8_bits(data: bytes) -> bytes:
    """Unsigned: 128 is silence."""
    samples = bytearray(2 * len(data))
    samples[1::2] = data.translate(_SIGNED)
    return bytes(samples)


def _from_24_bits(data: bytes) -> bytes:
    samples = bytearray(len(data) // 3 * 2)
    samples[0::2], samples[1::2] = data[1::3], data[2::3]
    return bytes(samples)


def _from_32_bits(data: bytes) -> bytes:
    samples = bytearray(len(data) // 2)
    samples[0::2], samples[1::2] = data[2::4], data[3::4]
    return bytes(samples)


def _from_doubles(data: bytes) -> bytes:
    doubles = array("d", data)
    if sys.byteorder == "big":
        doubles.byteswap()
    floats = array("f", doubles)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tobytes()


_SIGNED = bytes((value + 128) % 256 for value in range(256))
_CONVERSIONS: dict[tuple[int, int], Callable[[bytes], bytes]] = {
    (_PCM, 8): _from_8_bits,
    (_PCM, 16): _same,
    (_PCM, 24): _from_24_bits,
    (_PCM, 32): _from_32_bits,
    (_FLOAT, 32): _same,
    (_FLOAT, 64): _from_doubles,
}
