"""A model as it lies in the store, seen by whoever loads, lists or verifies it.

Only what is complete and what this version of Plait can load is shown.
Does NOT know: how a model got there, locks, catalogue names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plait.models import forms
from plait.models.manifest import Manifest
from plait.models.sources import quantization


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """What an engine needs to load a model. `forms` has a path by engine: a GGUF or ggml file, or a
    directory. `context_limit` in tokens: of a chat, or of a text to embed, else 0. `voices_dir`
    holds <voice>.bin for each of `voice_names`, raw float32 [510, 256]; None for a model that does
    not speak. `size_bytes` of all forms; `quantization` of the weights as their file's name has it,
    or empty.
    """

    name: str
    method: str
    directory: Path
    forms: Mapping[str, Path]
    context_limit: int
    licence: str
    size_bytes: int
    quantization: str
    tokenizer_file: Path | None
    voices_dir: Path | None
    voice_names: tuple[str, ...]

    def form(self, engine: str) -> Path | None:
        """What that engine loads, if it is there."""
        return self.forms.get(engine)

    @property
    def gguf(self) -> Path | None:
        return self.form("llamacpp")

    @property
    def mlx(self) -> Path | None:
        return self.form("mlx")

    @property
    def tokenizer(self) -> Path:
        """A chat model's tokenizer.json, with tokenizer_config.json beside it."""
        assert self.tokenizer_file is not None, f"{self.name} does not chat"
        return self.tokenizer_file

    @property
    def form_labels(self) -> tuple[str, ...]:
        """For people: `gguf Q4_1`, `mlx`, `onnx`, `torch`, `ggml Q5_1`."""
        return tuple(forms.label(engine, self.quantization) for engine in self.forms)


def installed_model(directory: Path, manifest: Manifest) -> InstalledModel | None:
    """None when the model is incomplete, or has no form that this version loads."""
    usable = manifest.usable(directory)
    if usable is None:
        return None
    current = {
        engine: directory / path
        for engine, path in usable.forms.items()
        if forms.is_current(engine, path, usable.weights)
    }
    return InstalledModel(
        name=usable.name,
        method=usable.method,
        directory=directory,
        forms=current,
        context_limit=usable.context_limit,
        licence=usable.licence,
        size_bytes=sum(entry.bytes for entry in usable.files),
        quantization=quantization(usable.source),
        tokenizer_file=None if usable.tokenizer is None else directory / usable.tokenizer,
        voices_dir=None if usable.voices is None else directory / usable.voices,
        voice_names=usable.voice_names,
    )
