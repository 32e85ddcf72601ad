"""What adapter, zygote and children of the whisper worker say to each other.

Frames as everywhere (`engines/ipc`): u32 length, then one MessagePack value, here one message or,
from a child, a list. Between adapter and zygote a job is a number; a child has one job and knows
no number. Times are `time.monotonic()` seconds, shared by all. Does NOT know who does what with it.
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

import msgspec

from plait.engines.base import Fault
from plait.engines.ipc import FrameError, FrameReader

T = TypeVar("T")

# A feed holds at most the client's upload window: ten seconds at 48 kHz, stereo, float32.
MAX_FRAME_BYTES = 16 * 1024 * 1024
RECEIVE_BYTES = 256 * 1024

# --- adapter -> zygote ---------------------------------------------------------------------------


class Load(msgspec.Struct, tag="load", array_like=True):
    """First. `ears`: "module:name" of what makes ears (see `ears`). `spares`: processes to keep
    while no stream needs them, where they are costly to start."""

    weights: str
    ears: str
    isolation: str
    spares: int = 1


class Open(msgspec.Struct, tag="open", array_like=True):
    """A process for `job`; the child's end of its socket comes along (SCM_RIGHTS)."""

    job: int


class Kill(msgspec.Struct, tag="kill", array_like=True):
    """Answered by `Gone`, unless that was sent already."""

    job: int


class Stop(msgspec.Struct, tag="stop", array_like=True):
    """The process rests in memory, with whatever it is doing."""

    job: int


class Go(msgspec.Struct, tag="go", array_like=True):
    """It goes on where it was."""

    job: int


ToZygote = Load | Open | Kill | Stop | Go

# --- zygote -> adapter ---------------------------------------------------------------------------


class Loading(msgspec.Struct, tag="loading", array_like=True):
    phase: str


class Loaded(msgspec.Struct, tag="loaded", array_like=True):
    multilingual: bool


class LoadRefused(msgspec.Struct, tag="load_refused", array_like=True):
    fault: Fault


class Gone(msgspec.Struct, tag="gone", array_like=True):
    """Nothing computes for `job` any more, confirmed. One per `Open`.

    `status`: exit status, or the signal as a negative number. None: there was no process to give.
    """

    job: int
    status: int | None


FromZygote = Loading | Loaded | LoadRefused | Gone

# --- zygote -> spawned process, after `Load` -----------------------------------------------------


class Serve(msgspec.Struct, tag="serve", array_like=True):
    """A stream; the child's end of its socket comes along (SCM_RIGHTS)."""


class Abort(msgspec.Struct, tag="abort", array_like=True):
    """Leave the stream, if there still is one."""


ToSpawned = Load | Serve | Abort

# --- spawned process -> zygote -------------------------------------------------------------------


class Free(msgspec.Struct, tag="free", array_like=True):
    """The stream is over, the process can serve another. One per `Serve`."""


FromSpawned = Loaded | LoadRefused | Free

# --- adapter -> child ----------------------------------------------------------------------------


class Listen(msgspec.Struct, tag="listen", array_like=True):
    """First. `params`: TranscribeParams as a plain dict, defaults left out."""

    params: dict[str, Any]


class Measure(msgspec.Struct, tag="measure", array_like=True):
    """First, instead of `Listen`: decode a window of that length and say what it cost."""

    seconds: float


class Audio(msgspec.Struct, tag="audio", array_like=True):
    """`at`: when the server received it. `data`, decoded, is a view into the frame."""

    data: memoryview
    at: float


class End(msgspec.Struct, tag="end", array_like=True):
    """No more audio."""


class Grant(msgspec.Struct, tag="grant", array_like=True):
    """A permit: decode once, then give it back."""


ToChild = Listen | Measure | Audio | End | Grant

# --- child -> adapter ----------------------------------------------------------------------------


class Said(msgspec.Struct, tag="said", array_like=True):
    """An item: the JSON of its `data` member, which unsent one it replaces (0: none), its units."""

    data: bytes
    revises: int
    units: int


class Took(msgspec.Struct, tag="took", array_like=True):
    """That many bytes of audio were listened to."""

    bytes: int


class Ask(msgspec.Struct, tag="ask", array_like=True):
    """For a permit. Again with `closing`, when the wish has become urgent."""

    closing: bool


class GiveBack(msgspec.Struct, tag="give_back", array_like=True):
    """The permit."""


class Resting(msgspec.Struct, tag="resting", array_like=True):
    """Nothing to do until input comes; `inputs`: how many `Audio` it has had."""

    inputs: int


class Ended(msgspec.Struct, tag="ended", array_like=True):
    """All is final and said. The process ends, or is free for another job."""


class Broken(msgspec.Struct, tag="broken", array_like=True):
    """It cannot go on with this job."""

    fault: Fault


class Measured(msgspec.Struct, tag="measured", array_like=True):
    """CPU seconds of the decode."""

    seconds: float


FromChild = Said | Took | Ask | GiveBack | Resting | Ended | Broken | Measured

# --- frames --------------------------------------------------------------------------------------

Message = ToZygote | FromZygote | ToSpawned | FromSpawned | ToChild

_LENGTH = struct.Struct("<I")
_encoder = msgspec.msgpack.Encoder()
_to_zygote = msgspec.msgpack.Decoder(ToZygote)
_from_zygote = msgspec.msgpack.Decoder(FromZygote)
_to_spawned = msgspec.msgpack.Decoder(ToSpawned)
_from_spawned = msgspec.msgpack.Decoder(FromSpawned)
_to_child = msgspec.msgpack.Decoder(ToChild)
_from_child = msgspec.msgpack.Decoder(list[FromChild])


def frame(message: Message | list[FromChild]) -> bytearray:
    """One whole frame. Audio is copied once."""
    buffer = bytearray(_LENGTH.size)
    _encoder.encode_into(message, buffer, _LENGTH.size)
    _LENGTH.pack_into(buffer, 0, len(buffer) - _LENGTH.size)
    return buffer


def decode_to_zygote(payload: bytes) -> ToZygote:
    """Raises FrameError, as the others do."""
    return _decode(_to_zygote, payload)


def decode_from_zygote(payload: bytes) -> FromZygote:
    return _decode(_from_zygote, payload)


def decode_to_spawned(payload: bytes) -> ToSpawned:
    return _decode(_to_spawned, payload)


def decode_from_spawned(payload: bytes) -> FromSpawned:
    return _decode(_from_spawned, payload)


def decode_to_child(payload: bytes) -> ToChild:
    return _decode(_to_child, payload)


def decode_from_child(payload: bytes) -> list[FromChild]:
    return _decode(_from_child, payload)


def _decode(decoder: msgspec.msgpack.Decoder[T], payload: bytes) -> T:
    try:
        return decoder.decode(payload)
    except msgspec.DecodeError as error:
        raise FrameError(f"not a message of this side: {error}") from error


def reader() -> FrameReader:
    return FrameReader(MAX_FRAME_BYTES)
