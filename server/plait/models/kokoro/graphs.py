"""The joined Kokoro file made ready for onnxruntime: three graphs and the norms' style weights.

Without torch: dequantize, cut, and draw anew what takes the time. The same source gives the same
bytes. What lies in the directory afterwards is what `plait.engines.kokoro.onnx_backend` loads:
text.onnx, acoustic.onnx, generator.onnx, norm_style.npz.
Does NOT download, hash or install; a file that is not the known model is a `ModelDamaged`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from plait.models.kokoro.acoustic import redraw_wide_convolutions
from plait.models.kokoro.cut import cut_acoustic, cut_text
from plait.models.kokoro.dequantize import damaged, dequantize
from plait.models.kokoro.generator import build_generator
from plait.models.kokoro.generator_weights import GeneratorWeights, norm_style

GRAPHS = ("text.onnx", "acoustic.onnx", "generator.onnx")
NORM_STYLE = "norm_style.npz"

_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_graphs(source_onnx: Path, out_dir: Path, progress: Callable[[float], None]) -> None:
    """Write the four files into `out_dir` (which exists), about 330 MB. `progress` gets percents.

    Raises ModelDamaged where the source is not the known model, OSError for the disk's errors.
    """
    progress(0.0)
    try:
        model = onnx.load(source_onnx)
    except DecodeError as error:
        raise damaged("it is not an ONNX file") from error
    progress(20.0)
    dequantize(model)
    progress(50.0)
    weights = GeneratorWeights(model)
    _write(out_dir / "text.onnx", cut_text(model))
    progress(60.0)
    acoustic = cut_acoustic(model)
    redraw_wide_convolutions(acoustic)
    _write(out_dir / "acoustic.onnx", acoustic)
    progress(75.0)
    _write(out_dir / "generator.onnx", build_generator(weights))
    progress(90.0)
    _write_arrays(out_dir / NORM_STYLE, norm_style(weights))
    progress(100.0)


def _write(path: Path, model: onnx.ModelProto) -> None:
    path.write_bytes(model.SerializeToString(deterministic=True))


def _write_arrays(path: Path, arrays: dict[str, NDArray[np.float32]]) -> None:
    """An .npz as numpy writes it, but with a fixed date: the same arrays give the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _EPOCH), "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
