"""The forms a model is kept in, one per engine: made once from its weights, then only loaded.

llama.cpp reads the GGUF as it is, and whisper.cpp a ggml file; every other form is built here, a
directory, or for whisper.cpp a file. Where a form is made for one engine alone its name carries a
version, so that a Plait that builds it otherwise builds it anew.
Importing this module imports no numpy; the converters of speech and embedding models run in a
process of their own.
Does NOT know: where weights come from, locks, staging.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal

from plait.installation import engine_missing, install_command, is_importable
from plait.models.conversion import convert_apart
from plait.models.errors import UnsupportedModel
from plait.models.gguf_file import read_gguf
from plait.models.mlx_weights import Dtype, convert
from plait.models.sources import Method

Engine = Literal["llamacpp", "mlx", "kokoro-onnx", "kokoro-torch", "whisper", "onnx"]
Percent = Callable[[float], None]
Converter = Callable[[Path, Path, Percent], None]
"""(weight file, existing empty directory to fill or new file to write, progress in percent)"""

METHOD_OF: Final[Mapping[Engine, Method]] = {
    "llamacpp": "chat",
    "mlx": "chat",
    "kokoro-onnx": "synthesize",
    "kokoro-torch": "synthesize",
    "whisper": "transcribe",
    "onnx": "embed",
}
# Raise the number when the converter writes something else.
_VERSIONED: Final[Mapping[str, str]] = {
    "kokoro-onnx": "onnx-1",
    "kokoro-torch": "torch-1",
    "whisper": "ggml-1.bin",
    "onnx": "embed-1",
}
_FILES: Final = frozenset({"whisper"})
# 82 million float32 and a little, and the larger starters; an MLX form's size depends on the model.
_DISK_BYTES: Final[Mapping[Engine, int]] = {
    "kokoro-onnx": 335_000_000,
    "kokoro-torch": 335_000_000,
    "whisper": 82_000_000,
    "onnx": 92_000_000,
}


def label(engine: str, quantization: str) -> str:
    """How a form is listed: `gguf Q4_1`, `mlx`, `onnx`, `torch`, `ggml Q5_1`."""
    if engine in ("llamacpp", "whisper"):
        return f"{'gguf' if engine == 'llamacpp' else 'ggml'} {quantization}".strip()
    return engine.split("-")[-1]


def default_dtype() -> Dtype:
    """16 bit on Apple Silicon; on a Linux CPU mlx is many times slower with it than with fp32."""
    apple_silicon = sys.platform == "darwin" and platform.machine() == "arm64"
    return "float16" if apple_silicon else "float32"


def path_name(engine: Engine) -> str:
    """Of the form to build: a directory's, or a file's."""
    return _VERSIONED.get(engine) or f"mlx-{default_dtype()}"


def is_current(engine: str, where: str, weights: str | None) -> bool:
    """Whether a form found at `where` is one this version of Plait loads. An MLX form always is:
    its data type may differ from what would be made today; and so are weights loaded as they are.
    """
    return where == weights or _VERSIONED.get(engine, where) == where


def require_converter(engine: Engine) -> None:
    """Raise UnsupportedModel when the package that writes graphs is not installed."""
    if METHOD_OF[engine] not in ("synthesize", "embed") or is_importable("onnx"):
        return
    # It comes, or cannot come, with the engine.
    missing = engine_missing("onnx" if engine == "onnx" else "kokoro-onnx")
    reason = "onnx is not installed" if missing is None else missing.reason
    step = install_command("speech") if missing is None else missing.next_step
    raise UnsupportedModel(f"A model for {engine} cannot be made here: {reason}.", f"Run: {step}")


def disk_bytes(engine: Engine) -> int:
    """Room the form takes, as far as it is known beforehand."""
    return _DISK_BYTES.get(engine, 0)


def _to_mlx(weights: Path, out: Path, progress: Percent) -> None:
    convert(read_gguf(weights), out, default_dtype(), progress)


def _to_ggml(weights: Path, out: Path, progress: Percent) -> None:
    from plait.models.whisper.convert import convert as convert_whisper  # it imports numpy

    convert_whisper(weights, out, progress)


CONVERTERS: Final[Mapping[Engine, Converter]] = {
    "mlx": _to_mlx,
    "kokoro-onnx": partial(convert_apart, "kokoro-onnx"),
    "kokoro-torch": partial(convert_apart, "kokoro-torch"),
    "whisper": _to_ggml,
    "onnx": partial(convert_apart, "onnx"),
}


def build(
    engine: Engine, converter: Converter, directory: Path, weights: Path, out: Path, report: Percent
) -> None:
    """Make a form of `directory`'s model at `out`, where nothing is yet. Raises ModelDamaged or
    UnsupportedModel."""
    if engine in _FILES:
        converter(weights, out, report)
        return
    out.mkdir()
    converter(weights, out, report)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (directory / name).is_file():  # mlx_lm wants a chat model's beside the weights
            shutil.copyfile(directory / name, out / name)
