"""Reads model.bin of CTranslate2: the named arrays of a Whisper model, mapped, not copied.

The layout is that of its binary version 6 (model_spec.py of CTranslate2): a header, then for each
array its name, shape, type and bytes, then names that are other arrays'. Quantized ones are not
read: no carrier has them. Does NOT know: what the arrays mean.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.models.errors import ModelDamaged

_VERSION: Final = 6
_SPECIFICATION: Final = "WhisperSpec"
_TYPES: Final[Mapping[int, type[np.generic]]] = {
    0: np.float32,
    1: np.int8,
    2: np.int16,
    3: np.int32,
    4: np.float16,
}


def read_ct2(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays by name. Raises ModelDamaged for a file that breaks off or is another kind."""
    try:
        return _parse(_Cursor(np.memmap(path, dtype=np.uint8, mode="r")))
    except (ValueError, KeyError, struct.error) as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, why: str) -> ModelDamaged:
    return ModelDamaged(
        f"{path.name} is not a usable CTranslate2 model: {why}.",
        "Fetch it again, or set transcribe_model = 'whisper-tiny.en'.",
    )


class _Cursor:
    """Sequential little-endian reads, each checked against the end of the file."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data
        self._position = 0

    def take(self, length: int) -> NDArray[np.uint8]:
        end = self._position + length
        if end > len(self._data):
            raise ValueError(f"{length} bytes are announced beyond its end")
        chunk = self._data[self._position : end]
        self._position = end
        return chunk

    def number(self, letter: str) -> int:
        layout = f"<{letter}"
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())[0]
        return value

    def string(self) -> str:
        """Its length counts the zero byte behind it."""
        return self.take(self.number("H")).tobytes().rstrip(b"\0").decode()


def _parse(cursor: _Cursor) -> dict[str, NDArray[Any]]:
    version = cursor.number("I")
    if version != _VERSION:
        raise ValueError(f"its version is {version}, not {_VERSION}")
    specification, _revision = cursor.string(), cursor.number("I")
    if specification != _SPECIFICATION:
        raise ValueError(f"it holds a {specification}")
    arrays = dict(_array(cursor) for _ in range(cursor.number("I")))
    for _ in range(cursor.number("I")):
        alias, target = cursor.string(), cursor.string()
        arrays[alias] = arrays[target]
    return arrays


def _array(cursor: _Cursor) -> tuple[str, NDArray[Any]]:
    name, rank = cursor.string(), cursor.number("B")
    shape = tuple(cursor.number("I") for _ in range(rank))
    kind, size = cursor.number("B"), cursor.number("I")
    if kind not in _TYPES:
        raise ValueError(f"{name} has the unknown type {kind}")
    dtype = np.dtype(_TYPES[kind]).newbyteorder("<")
    if math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} of {shape} has {size} bytes")
    return name, cursor.take(size).view(dtype).reshape(shape)
