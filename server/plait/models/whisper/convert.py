"""A CTranslate2 Whisper model → the ggml file that whisper.cpp loads.

The smallest model stays at float16; larger ones become Q8_0, which takes half the room and a tenth
less time at the same word error rate (measured on Whisper base). Only rows of one tensor are in
memory at a time; the same source gives the same bytes. The result is checked before it counts.
Does NOT know: where models come from and are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import BinaryIO, Final

from plait.models.whisper.ct2_file import damaged, read_ct2
from plait.models.whisper.ct2_names import Arrays, array_of
from plait.models.whisper.ggml_file import MAGIC, GgmlHeader, check
from plait.models.whisper.mel import mel_filters
from plait.models.whisper.packing import packed
from plait.models.whisper.tensors import expected_tensors
from plait.models.whisper.vocabulary import read_vocabulary

TOKENIZER_NAME: Final = "tokenizer.json"

_LARGEST_FLOAT16_STATE = 384
_FILE_TYPE_F16 = 1
_FILE_TYPE_Q8_0 = 2007  # version 2 of ggml's quantizations, number 7
_HEAD_WIDTH = 64
_ROWS_AT_ONCE = 4096


def convert(weights: Path, out: Path, progress: Callable[[float], None]) -> None:
    """Write the new file `out`; tokenizer.json lies beside `weights`. `progress` gets percents.

    Raises ModelDamaged where the source is not a Whisper model, OSError for the disk's errors.
    """
    progress(0.0)
    arrays = read_ct2(weights)
    header = _header(weights, arrays)
    words = read_vocabulary(weights.with_name(TOKENIZER_NAME))
    with out.open("wb") as file:
        _write_front(file, header, words)
        _write_tensors(file, header, weights, arrays, progress)
    check(out)
    progress(100.0)


def _header(weights: Path, arrays: Arrays) -> GgmlHeader:
    try:
        vocabulary, state = arrays["decoder/embeddings/weight"].shape
        return GgmlHeader(
            vocabulary=vocabulary,
            audio_context=arrays["encoder/position_encodings/encodings"].shape[0],
            state=state,
            audio_heads=state // _HEAD_WIDTH,
            audio_layers=_layers(arrays, "encoder"),
            text_context=arrays["decoder/position_encodings/encodings"].shape[0],
            text_state=state,
            text_heads=state // _HEAD_WIDTH,
            text_layers=_layers(arrays, "decoder"),
            mels=arrays["encoder/conv1/weight"].shape[1],
            file_type=_FILE_TYPE_F16 if state <= _LARGEST_FLOAT16_STATE else _FILE_TYPE_Q8_0,
        )
    except (KeyError, ValueError, IndexError) as error:
        raise damaged(weights, f"it has no {error}") from error


def _layers(arrays: Arrays, side: str) -> int:
    return sum(name.startswith(side) and name.endswith("ffn/layer_norm/gamma") for name in arrays)


def _write_front(file: BinaryIO, header: GgmlHeader, words: list[bytes]) -> None:
    filters = mel_filters(header.mels)
    file.write(struct.pack("<12i", MAGIC, *astuple(header)))
    file.write(struct.pack("<2i", *filters.shape))
    file.write(filters.astype("<f4").tobytes())
    file.write(struct.pack("<i", len(words)))
    for word in words:
        file.write(struct.pack("<i", len(word)) + word)


def _write_tensors(
    file: BinaryIO,
    header: GgmlHeader,
    weights: Path,
    arrays: Arrays,
    progress: Callable[[float], None],
) -> None:
    expected = expected_tensors(header)
    total = sum(tensor.bytes for tensor in expected.values())
    done = 0
    for name, tensor in expected.items():
        try:
            array = array_of(name, arrays).reshape(tensor.shape)
        except (KeyError, ValueError) as error:
            raise damaged(weights, f"{name} cannot be made of it ({error})") from error
        text = name.encode()
        dims = tensor.shape[::-1]
        file.write(struct.pack("<3i", len(dims), len(text), tensor.kind.number))
        file.write(struct.pack(f"<{len(dims)}i", *dims) + text)
        for row in range(0, len(array), _ROWS_AT_ONCE):
            file.write(packed(array[row : row + _ROWS_AT_ONCE], tensor.kind))
        done += tensor.bytes
        progress(min(99.0, 100 * done / total))
