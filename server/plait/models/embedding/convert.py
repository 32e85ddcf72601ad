"""The form `onnx` of an embedding model: a directory with all that its engine loads.

    model.onnx       drawn here (weights.bin beside it), or the source's own file
    tokenizer.json   the source's
    embedding.json   pooling, normalisation, longest text (see settings)
    dense.npz        layers after pooling, where there are any

Does NOT know: where the source came from, the store.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from plait.models.embedding.families import (
    Floats,
    Shape,
    Weights,
    read_tensors,
    to_float32,
)
from plait.models.embedding.settings import DENSE_NAME, TOKENIZER_NAME
from plait.models.embedding.source_directory import (
    ONNX,
    SAFETENSORS,
    SourceDirectory,
    read_directory,
    root_of,
)
from plait.models.embedding.transformer import draw
from plait.models.errors import ModelDamaged
from plait.models.install import link


def convert(weights: Path, form: Path, progress: Callable[[float], None]) -> None:
    """`weights` as `SourceDirectory.weights` gave them; `form` is an existing directory.

    Raises ModelDamaged, UnsupportedModel, OSError for the disk's errors.
    """
    progress(0.0)
    source = read_directory(root_of(weights))
    if weights.name == ONNX:
        _take_over(weights, form)
    else:
        _draw(source, weights, form, progress)
    shutil.copyfile(source.transformer / TOKENIZER_NAME, form / TOKENIZER_NAME)
    if source.dense:
        arrays: dict[str, Any] = _dense(source)
        np.savez(form / DENSE_NAME, **arrays)
    source.settings.write(form)
    progress(100.0)


def _take_over(weights: Path, form: Path) -> None:
    """The file as it is, with those that hold its weights, if any."""
    for file in weights.parent.glob(f"{ONNX}*"):
        link(file, form / file.name)


def _draw(
    source: SourceDirectory, weights: Path, form: Path, progress: Callable[[float], None]
) -> None:
    try:
        shape = Shape.of(source.config)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelDamaged(
            f"config.json of this embedding model cannot be read ({error}).",
            "Fetch it anew, or choose another model.",
        ) from error
    draw(shape, Weights(weights, shape.family), source.settings.max_tokens, form, progress)


def _dense(source: SourceDirectory) -> dict[str, Floats]:
    arrays: dict[str, Floats] = {}
    for number, layer in enumerate(source.dense):
        try:
            found = read_tensors(layer.folder / SAFETENSORS)
            arrays[f"weight{number}"] = to_float32(found["linear.weight"])
            bias = found.get("linear.bias")
        except (OSError, KeyError, safetensors.SafetensorError) as error:
            raise ModelDamaged(
                f"{SAFETENSORS} of a dense layer of this embedding model cannot be read.",
                "Fetch it anew, or choose another model.",
            ) from error
        rows = len(arrays[f"weight{number}"])
        arrays[f"bias{number}"] = np.zeros(rows, np.float32) if bias is None else to_float32(bias)
    return arrays
