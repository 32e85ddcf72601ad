"""Reads and checks a ggml file of Whisper, as whisper.cpp loads it.

whisper.cpp trusts such a file: one that breaks off or lies about a length ends its process. So the
whole of it is walked first: sizes that are Whisper's, every word, and every tensor there once, of
the right shape and type, with its bytes inside the file and nothing behind the last. What changes
no length (a flipped bit in a word or the weights) shows in hashes, not here.
Imports no numpy and reads no weights: some 20 ms for any size.
Does NOT know: where models are kept, how one is made.
"""

from __future__ import annotations

import math
import os
import stat
import struct
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import BinaryIO, Final

from plait.installation import program_name
from plait.models.errors import ModelDamaged, UnsupportedModel
from plait.models.whisper.tensors import F16, KINDS, TensorKind, TensorShape, expected_tensors

MAGIC: Final = 0x67676D6C
AUDIO_CONTEXT: Final = 1500  # 30 s, the window Whisper was trained on
TEXT_CONTEXT: Final = 448
MEL_BINS: Final = 201  # half a transform of 400 samples, and one

_ENGLISH_ONLY_VOCABULARY = 51_864
_MULTILINGUAL_VOCABULARIES = (51_865, 51_866)  # the latter since large-v3
_HEAD_WIDTH = 64
_LARGEST_STATE = 1280
_MOST_LAYERS = 32
_LARGEST_VOCABULARY_BYTES = 2 << 20  # Whisper's take a quarter of it
_LONGEST_NAME_BYTES = 128
_QUANTIZATION_VERSIONS = (1, 2)
_LENGTH = struct.Struct("<I")
_LOOKED_UP = (b" ", b" -", b" '")  # whisper.cpp takes these words for granted


@dataclass(frozen=True, slots=True)
class GgmlHeader:
    """The hyperparameters in the file's order. `state` is the width of the encoder, `text_state`
    the decoder's; `mels` are the bands of its spectrogram; `file_type` says how weights are kept.
    """

    vocabulary: int
    audio_context: int
    state: int
    audio_heads: int
    audio_layers: int
    text_context: int
    text_state: int
    text_heads: int
    text_layers: int
    mels: int
    file_type: int

    @property
    def multilingual(self) -> bool:
        return self.vocabulary > _ENGLISH_ONLY_VOCABULARY

    @property
    def language_count(self) -> int:
        """What a model for English alone knows is one; the others know 99, large-v3 100."""
        return self.vocabulary - 51_766 if self.multilingual else 1

    @property
    def kind(self) -> TensorKind:
        """How the big tensors are kept: float16, or a quantization."""
        return KINDS[self.file_type % 1000]

    @property
    def end_of_text(self) -> int:
        """The first token that is no text: the file must spell all before it."""
        return 50_257 if self.multilingual else 50_256


def read_header(path: Path) -> GgmlHeader:
    """The first 48 bytes. Raises ModelDamaged when they are not a Whisper model's (or cannot be
    read), UnsupportedModel for weights that whisper.cpp cannot run."""
    with _opened(path) as file:
        return _header(path, _Reader(file))


def check(path: Path) -> GgmlHeader:
    """Walk the whole file. Raises ModelDamaged for anything that whisper.cpp would stumble over,
    UnsupportedModel for weights that it cannot run."""
    with _opened(path) as file:
        reader = _Reader(file)
        header = _header(path, reader)
        try:
            _walk_filters(reader, header)
            _walk_vocabulary(reader, header)
            _walk_tensors(reader, expected_tensors(header))
        except (ValueError, struct.error) as error:
            raise damaged(path, str(error)) from error
        return header


def damaged(path: Path, why: str) -> ModelDamaged:
    return ModelDamaged(f"{path.name} is not a usable Whisper model: {why}.", _next_step())


def _unsupported(path: Path, why: str) -> UnsupportedModel:
    return UnsupportedModel(f"{path.name} cannot be run: {why}.", _next_step())


def _next_step() -> str:
    return (
        f"Fetch it again ({program_name()} models remove NAME, then pull NAME), or set"
        " transcribe_model = 'whisper-tiny.en'."
    )


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Raises ModelDamaged for what cannot be read; a pipe is not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise damaged(path, "it is not a file")
            yield file
    except OSError as error:
        raise damaged(path, f"it cannot be read ({error.strerror})") from error


class _Reader:
    """Sequential little-endian reads; every length is checked against what is left of the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.left = os.fstat(file.fileno()).st_size

    def integers(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}i", self.take(4 * count, "a number"))

    def integer(self) -> int:
        return self.integers(1)[0]

    def take(self, length: int, what: str) -> bytes:
        self._use(length, what)
        return self._file.read(length)  # what another process cuts off is a struct.error

    def ahead(self, most: int) -> bytes:
        """What comes next, without going there."""
        position = self._file.tell()
        block = self._file.read(min(most, self.left))
        self._file.seek(position)
        return block

    def skip(self, length: int, what: str) -> None:
        self._use(length, what)
        self._file.seek(length, os.SEEK_CUR)

    def _use(self, length: int, what: str) -> None:
        if not 0 <= length <= self.left:
            raise ValueError(f"{what} of {length} bytes is announced where {self.left} are left")
        self.left -= length


def _header(path: Path, reader: _Reader) -> GgmlHeader:
    try:
        magic, *sizes = reader.integers(12)
    except (ValueError, struct.error) as error:
        raise damaged(path, "it is too short") from error
    if magic != MAGIC:
        raise damaged(path, "its first bytes are not those of a ggml file (ggml-….bin)")
    header = GgmlHeader(*sizes)
    if not _is_whisper(header):
        raise damaged(path, f"its sizes {astuple(header)[:-1]} are not those of a Whisper model")
    _check_file_type(path, header)
    return header


def _is_whisper(header: GgmlHeader) -> bool:
    return all(
        (
            header.vocabulary in (_ENGLISH_ONLY_VOCABULARY, *_MULTILINGUAL_VOCABULARIES),
            header.audio_context == AUDIO_CONTEXT,
            header.text_context == TEXT_CONTEXT,
            _HEAD_WIDTH <= header.state <= _LARGEST_STATE,
            header.text_state == header.state,
            header.audio_heads == header.text_heads,
            header.audio_heads * _HEAD_WIDTH == header.state,
            1 <= header.audio_layers <= _MOST_LAYERS,
            1 <= header.text_layers <= _MOST_LAYERS,
            header.mels in (80, 128),
        )
    )


def _check_file_type(path: Path, header: GgmlHeader) -> None:
    version, number = divmod(header.file_type, 1000)
    if number == 0 and version == 0:  # whisper.cpp aborts where it mixes them with 16 bit
        raise _unsupported(path, "its weights are 32 bit")
    if number not in KINDS:
        raise damaged(path, f"its file type {header.file_type} is unknown")
    versions = (0, *_QUANTIZATION_VERSIONS) if header.kind is F16 else _QUANTIZATION_VERSIONS
    if version not in versions:
        raise _unsupported(path, f"it was quantized by another ggml (version {version})")
    if header.state % header.kind.block:
        raise damaged(path, f"rows of {header.state} cannot be kept as {header.kind.name}")


def _walk_filters(reader: _Reader, header: GgmlHeader) -> None:
    shape = reader.integers(2)
    if shape != (header.mels, MEL_BINS):
        raise ValueError(f"its filters are {shape}, not {(header.mels, MEL_BINS)}")
    filters = array("f", reader.take(4 * header.mels * MEL_BINS, "filters"))
    if sys.byteorder == "big":
        filters.byteswap()
    in_range = min(filters) >= 0 and max(filters) <= 1
    if not (in_range and math.isfinite(sum(filters))):  # NaN would cost half a minute of CPU
        raise ValueError("its filters are not those of a spectrum")


def _walk_vocabulary(reader: _Reader, header: GgmlHeader) -> None:
    count = reader.integer()
    if not header.end_of_text <= count <= header.vocabulary:
        raise ValueError(f"it spells {count} of {header.vocabulary} words")
    wanted = set(_LOOKED_UP)
    words = reader.ahead(_LARGEST_VOCABULARY_BYTES)
    end, padded, position = len(words), words + b"\0" * _LENGTH.size, 0
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(padded, position)
        start = position + _LENGTH.size
        position = start + length
        if position > end:
            raise ValueError(f"it breaks off in its words, or one of {length} bytes is announced")
        if length <= 2:
            wanted.discard(words[start:position])
    reader.skip(position, "a vocabulary")
    if wanted:
        raise ValueError(f"its vocabulary has no {' and no '.join(map(repr, sorted(wanted)))}")


def _walk_tensors(reader: _Reader, missing: dict[str, TensorShape]) -> None:
    """Takes out of `missing` what it finds."""
    while reader.left:
        rank, length, kind = reader.integers(3)
        if not (1 <= rank <= 4 and 1 <= length <= _LONGEST_NAME_BYTES):
            raise ValueError(f"a tensor of {rank} dimensions and {length} letters is announced")
        shape = reader.integers(rank)[::-1]
        name = reader.take(length, "a name").decode("ascii", "backslashreplace")
        expected = missing.pop(name, None)
        if expected is None:
            raise ValueError(f"tensor {name} is unknown, or there twice")
        if (shape, kind) != (expected.shape, expected.kind.number):
            raise ValueError(
                f"tensor {name} is {shape} of type {kind}, not {expected.shape} of type"
                f" {expected.kind.number}"
            )
        reader.skip(expected.bytes, f"tensor {name}")
    if missing:
        raise ValueError(f"{len(missing)} tensors are missing, {next(iter(missing))} among them")
