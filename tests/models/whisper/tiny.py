"""A Whisper small enough for a test: one layer each, 64 wide, but with all of its words.

whisper.cpp knows special tokens by number, so the vocabulary cannot be smaller; only the last
weights of a CTranslate2 file, the embeddings, are big, and all zeros. A ggml file written here has
zeros for all its weights, as holes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.models.whisper.ggml_file import MAGIC, GgmlHeader
from plait.models.whisper.mel import mel_filters
from plait.models.whisper.tensors import TensorShape, expected_tensors

Arrays = dict[str, NDArray[Any]]

VOCABULARY, STATE = 51_864, 64
ENGLISH = GgmlHeader(VOCABULARY, 1500, STATE, 1, 1, 448, STATE, 1, 1, 80, 1)
MULTILINGUAL = GgmlHeader(51_865, 1500, STATE, 1, 1, 448, STATE, 1, 2, 80, 2007)
LARGE_V3 = GgmlHeader(51_866, 1500, 256, 4, 1, 448, 256, 4, 1, 128, 2014)

# Letters of a tokenizer.json that are other bytes, and what they stand for.
ODD_WORDS = {"Ġ": b" ", "Ġ-": b" -", "Ġ'": b" '", "Ċé¡": b"\n\xe9\xa1", "ł": b"\xa0", "Ń": b"\xad"}


def ct2_arrays() -> Arrays:
    """By CTranslate2's names, each with values of its own."""
    random = np.random.default_rng(4)
    arrays: Arrays = {
        "decoder/embeddings/weight": np.zeros((VOCABULARY, STATE), np.float16),
        "decoder/num_heads": np.array(1, np.int16),
        "decoder/pre_norm": np.array(1, np.int8),
    }

    def add(name: str, *shape: int) -> None:
        arrays[name] = random.normal(0, 0.1, shape).astype(np.float16)

    for side, context in (("encoder", 1500), ("decoder", 448)):
        add(f"{side}/position_encodings/encodings", context, STATE)
        for part in ("gamma", "beta"):
            add(f"{side}/layer_norm/{part}", STATE)
            for module in ("self_attention", "ffn") + ("attention",) * (side == "decoder"):
                add(f"{side}/layer_0/{module}/layer_norm/{part}", STATE)
    rows = {"self_attention": (3, 1), "attention": (1, 2, 1), "ffn": (4, 1)}
    for side, module in (
        ("encoder", "self_attention"),
        ("encoder", "ffn"),
        ("decoder", "self_attention"),
        ("decoder", "attention"),
        ("decoder", "ffn"),
    ):
        for index, count in enumerate(rows[module]):
            columns = 4 * STATE if (module, index) == ("ffn", 1) else STATE
            add(f"{side}/layer_0/{module}/linear_{index}/weight", count * STATE, columns)
            add(f"{side}/layer_0/{module}/linear_{index}/bias", count * STATE)
    for number, width in ((1, 80), (2, STATE)):
        add(f"encoder/conv{number}/weight", STATE, width, 3)
        add(f"encoder/conv{number}/bias", STATE)
    return arrays


def write_ct2(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    specification: str = "WhisperSpec",
    version: int = 6,
    aliases: Mapping[str, str] | None = None,
) -> Path:
    """The embeddings come last, so that a file's front has all that is interesting."""
    kinds = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
    ordered = sorted(arrays.items(), key=lambda item: item[1].nbytes)
    with path.open("wb") as file:
        file.write(struct.pack("<I", version) + _string(specification))
        file.write(struct.pack("<2I", 3, len(arrays)))
        for name, array in ordered:
            file.write(_string(name) + struct.pack("<B", array.ndim))
            file.write(struct.pack(f"<{array.ndim}I", *array.shape))
            file.write(struct.pack("<BI", kinds[array.dtype.name], array.nbytes) + array.tobytes())
        file.write(struct.pack("<I", len(aliases or {})))
        for alias, target in (aliases or {}).items():
            file.write(_string(alias) + _string(target))
    return path


def _string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"


def write_tokenizer(path: Path) -> Path:
    words = [*ODD_WORDS, *(f"w{number}" for number in range(50_256 - len(ODD_WORDS)))]
    vocabulary = {text: number for number, text in enumerate(words)} | {"<|endoftext|>": 50_256}
    content = {
        "added_tokens": [
            {"id": 50_256, "content": "<|endoftext|>"},
            {"id": 50_257, "content": "<|startoftranscript|>"},
        ],
        "model": {"vocab": vocabulary},
    }
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def write_model(directory: Path) -> Path:
    """model.bin, with tokenizer.json beside it."""
    write_tokenizer(directory / "tokenizer.json")
    return write_ct2(directory / "model.bin", ct2_arrays())


def write_ggml(
    path: Path,
    header: GgmlHeader,
    tensors: Mapping[str, TensorShape] | None = None,
    words: list[bytes] | None = None,
) -> Path:
    """All of a file's structure; the weights are holes."""
    filters = mel_filters(header.mels)
    spelled = words if words is not None else _words(header)
    with path.open("wb") as file:
        file.write(struct.pack("<12i", MAGIC, *astuple(header)))
        file.write(struct.pack("<2i", *filters.shape) + filters.tobytes())
        file.write(struct.pack("<i", len(spelled)))
        file.write(b"".join(struct.pack("<i", len(word)) + word for word in spelled))
        for name, tensor in (tensors or expected_tensors(header)).items():
            dims = tensor.shape[::-1]
            file.write(struct.pack("<3i", len(dims), len(name), tensor.kind.number))
            file.write(struct.pack(f"<{len(dims)}i", *dims) + name.encode())
            file.seek(tensor.bytes, 1)
        file.truncate(file.tell())
    return path


def front_bytes(path: Path) -> int:
    """Where the first tensor is described."""
    return path.read_bytes().index(b"encoder.positional_embedding") - 20


def _words(header: GgmlHeader) -> list[bytes]:
    rest = header.end_of_text - len(ODD_WORDS)
    return [*ODD_WORDS.values(), *(b"w%d" % number for number in range(rest))]
