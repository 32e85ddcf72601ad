"""Reads a GGUF file's metadata and where its tensors lie.

Written here because the `gguf` package takes seconds for a vocabulary (it maps every string as an
array) and trusts lengths; this one takes milliseconds, checks every length against the file's size
and raises ModelDamaged for anything that is no GGUF. Does NOT know: what any key means, and how
quantized data is decoded.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plait.installation import program_name
from plait.models.errors import ModelDamaged

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9
_DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """`shape` is row-major (numpy order); `kind` is the GGML type number; `offset` is absolute."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, slots=True)
class GgufFile:
    path: Path
    metadata: Mapping[str, Any]
    tensors: tuple[TensorInfo, ...]

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", "unknown"))

    def hyperparameter(self, key: str, default: Any = None) -> Any:
        """`<architecture>.<key>`. Raises ModelDamaged when it is missing and has no default."""
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise damaged(self.path, f"it says nothing about {key}")
        return value


def damaged(path: Path, why: str) -> ModelDamaged:
    return ModelDamaged(
        f"{path.name} is not a usable GGUF file: {why}.",
        f"Fetch it again ({program_name()} models remove NAME, then pull NAME).",
    )


def read_gguf(path: Path) -> GgufFile:
    """Raises ModelDamaged for a file that is truncated, no GGUF, or of an unknown version."""
    if path.stat().st_size < 24:
        raise damaged(path, "it is too short")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _parse(path, _Cursor(data))
        except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
            raise damaged(path, f"it breaks off or is garbled ({error})") from error


class _Cursor:
    """Sequential little-endian reads, each checked against the end of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.position = 0

    def take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self._data):
            raise ValueError(f"{length} bytes are announced beyond its end")
        chunk = self._data[self.position : end]
        self.position = end
        return chunk

    def numbers(self, letter: str, count: int) -> tuple[Any, ...]:
        layout = f"<{count}{letter}"
        size = struct.calcsize(f"<{letter}") * count
        return struct.unpack(layout, self.take(size)) if count else ()

    def number(self, letter: str) -> Any:
        return self.numbers(letter, 1)[0]

    def string(self) -> str:
        return self.take(self.number("Q")).decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise ValueError(f"unknown value type {kind}")
        return self.number(_SCALARS[kind])

    def _array(self) -> list[Any]:
        kind, count = self.number("I"), self.number("Q")
        if kind in _SCALARS:
            size = struct.calcsize(_SCALARS[kind])
            if count * size > len(self._data):  # before it becomes a format string
                raise ValueError(f"an array of {count} values is announced")
            return list(self.numbers(_SCALARS[kind], count))
        if kind != _STRING:
            raise ValueError(f"an array of type {kind}")
        return [self.string() for _ in range(count)]  # stops at the end of the file


def _parse(path: Path, cursor: _Cursor) -> GgufFile:
    if cursor.take(4) != _MAGIC:
        raise damaged(path, "its first bytes are not GGUF")
    version = cursor.number("I")
    if version not in _VERSIONS:
        raise damaged(path, f"its version {version} is not one of {_VERSIONS}")
    tensor_count, pair_count = cursor.number("Q"), cursor.number("Q")
    metadata: dict[str, Any] = {}
    for _ in range(pair_count):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.number("I"))
    tensors = [_tensor(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    start = -(-cursor.position // alignment) * alignment
    return GgufFile(
        path,
        metadata,
        tuple(TensorInfo(t.name, t.shape, t.kind, start + t.offset) for t in tensors),
    )


def _tensor(cursor: _Cursor) -> TensorInfo:
    name = cursor.string()
    dimensions = cursor.number("I")
    if dimensions > 8:
        raise ValueError(f"a tensor of {dimensions} dimensions")
    shape = tuple(reversed(cursor.numbers("Q", dimensions)))
    return TensorInfo(name, shape, cursor.number("I"), cursor.number("Q"))
