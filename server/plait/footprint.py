"""What a loaded model will take of the machine's memory, guessed before it was ever loaded.

Weights as they lie on the disk, what the engine makes of them, preallocated KV, and the process
with its libraries. A loaded worker is measured instead (`EngineInfo.loaded_bytes`): the guess only
decides whether a model is loaded at all, so it errs towards too much. Does NOT know budgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plait.engines.base import LoadSpec
from plait.models.errors import StoreError
from plait.models.gguf_facts import ModelFacts
from plait.models.gguf_file import read_gguf

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Growth:
    """An idle worker takes `times` its weights and `base_bytes`."""

    times: float
    base_bytes: int


# Measured on Linux with the starter models, rounded up: 599 MB of resident memory for 98 MB of
# GGUF and 377 of KV, 863 for 540 of mlx weights, 1391 for 326 of speech, 218 for 82 of Whisper.
GROWTH: Final[dict[str, Growth]] = {
    "llamacpp": Growth(1.0, 150 * MB),
    "mlx": Growth(1.0, 350 * MB),
    "kokoro-onnx": Growth(3.0, 450 * MB),
    "kokoro-torch": Growth(2.0, 1000 * MB),
    "whisper": Growth(1.0, 150 * MB),
    "onnx": Growth(2.0, 150 * MB),
    "scripted": Growth(0.0, 40 * MB),
}


def footprint_bytes(spec: LoadSpec) -> int:
    """Of a worker that has loaded `spec` and holds no job."""
    growth = GROWTH[spec.engine]
    weights_bytes = _size_bytes(Path(spec.weights)) if spec.weights else 0
    return round(growth.times * weights_bytes) + growth.base_bytes + _kv_bytes(spec)


def _size_bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _kv_bytes(spec: LoadSpec) -> int:
    """Allocated with the model: llama.cpp's alone. The others take it as streams run."""
    if spec.engine != "llamacpp":
        return 0
    try:
        facts = ModelFacts.of(read_gguf(Path(spec.weights)))
    except (StoreError, TypeError, ValueError):
        return 0  # it will not load, and says why better than we could
    context_tokens = min(spec.context_tokens, facts.context_tokens)
    whole_bytes = spec.slots * context_tokens * facts.kv_bytes_per_token
    return min(spec.kv_budget_bytes or whole_bytes, whole_bytes)
