"""An embedding model comes into its directory: weights, tokenizer and settings, laid out as
sentence-transformers does; a directory of the operator's own stays where it is.

Like install, which does the same for chat. Of a repository of the hub only the weights that the
form is made from are fetched. What its settings ask for and Plait cannot do is refused here.
Does NOT know: the store's layout, forms made from weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from plait.models import hub
from plait.models.carrier import Progress, fetch_starter
from plait.models.embedding.source_directory import (
    ONNX,
    ONNX_FOLDER,
    SAFETENSORS,
    not_embedding,
    read_directory,
)
from plait.models.install import UNKNOWN_LICENCE, link
from plait.models.manifest import Manifest, describe
from plait.models.sources import HubModel, LocalModel, Source, Starter

_STARTER: Final = "embed_model = 'all-minilm-l6-v2'"
# What says how to use the weights, and those of layers after pooling.
_SETTINGS_FILES: Final = ("*.json", "[0-9]_*/*.json", "[0-9]_*/*.safetensors")
_ONNX_FILES: Final = (f"{ONNX}*", f"{ONNX_FOLDER}/{ONNX}*")


def fetch(
    configured: str, source: Source, staging: Path, directory: Path, progress: Progress
) -> Manifest:
    """Bring the model into `directory` (the operator's own files stay where they are).
    Raises StoreError's leaves."""
    match source:
        case Starter():
            name = ONNX if source.parts[0].member.endswith(".onnx") else SAFETENSORS
            fetch_starter(source, staging, directory / name, progress)
            root = directory
        case HubModel(file=None):
            _fetch_repository(source, directory, progress)
            root = directory
        case LocalModel(path=path) if path.is_dir():
            root = path
        case _:
            raise not_embedding("it is a single file")
    return _describe(configured, source, directory, root)


def _fetch_repository(source: HubModel, directory: Path, progress: Progress) -> None:
    found = read_directory(hub.fetch_repository(source, progress, _SETTINGS_FILES, _STARTER))
    inner = found.transformer.relative_to(found.root)
    patterns = [(inner / SAFETENSORS).as_posix()] if found.drawable else list(_ONNX_FILES)
    wanted = (*_SETTINGS_FILES, *patterns)
    snapshot = hub.fetch_repository(source, progress, wanted, _STARTER)
    found = read_directory(snapshot)
    weights = found.weights()
    for file in (*found.files, *weights.parent.glob(f"{weights.name}*")):
        link(file, directory / file.relative_to(snapshot))


def _describe(configured: str, source: Source, directory: Path, root: Path) -> Manifest:
    found = read_directory(root)
    weights = found.weights()
    others = sorted(weights.parent.glob(f"{weights.name}?*"))
    files = describe(directory, weights, *others, *found.files)
    return Manifest(
        name=source.name,
        configured=configured,
        method="embed",
        source=source.description,
        licence=source.licence if isinstance(source, Starter) else UNKNOWN_LICENCE,
        files=files,
        weights=files[0].path,
        forms={},
        context_limit=found.settings.max_tokens,
    )
