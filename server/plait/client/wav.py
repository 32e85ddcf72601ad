"""A WAV file of PCM16 samples, with lengths that are right because all samples are there."""

from __future__ import annotations

import struct

MAX_DATA_BYTES = 2**32 - 1 - 36  # what a RIFF header can count

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")


def wav(audio: bytes, sample_rate: int, channels: int = 1) -> bytes:
    """`audio`: interleaved little-endian 16-bit samples. Raises ValueError beyond 4 GiB."""
    if len(audio) > MAX_DATA_BYTES:
        raise ValueError(f"{len(audio)} bytes of audio: a WAV file holds {MAX_DATA_BYTES}")
    frame_bytes = 2 * channels
    header = _HEADER.pack(
        b"RIFF",
        36 + len(audio),
        b"WAVE",
        b"fmt ",
        16,
        1,  # PCM
        channels,
        sample_rate,
        sample_rate * frame_bytes,
        frame_bytes,
        16,
        b"data",
        len(audio),
    )
    return header + audio
