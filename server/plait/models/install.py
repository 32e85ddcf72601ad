"""A chat model comes into its directory: obtain the weights, derive the tokenizer, describe.

It writes below the directories it is given and returns the manifest of what is there now; locking,
staging and renaming are the store's. Does NOT know: the store's layout, forms made from weights,
other methods (see install_speech and install_whisper).
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from plait.models import hub
from plait.models.carrier import Progress, fetch_starter
from plait.models.errors import ModelDamaged
from plait.models.gguf_file import read_gguf
from plait.models.manifest import FileEntry, Manifest, describe
from plait.models.sources import HubModel, LocalModel, Source, Starter
from plait.models.tokenizer import tokenizer_files

GGUF_NAME = "model.gguf"
UNKNOWN_LICENCE = "unknown"


def fetch(
    configured: str, source: Source, staging: Path, directory: Path, progress: Progress
) -> Manifest:
    """Bring the chat model into `directory` (the operator's own files stay where they are).
    Raises StoreError's leaves."""
    match source:
        case Starter():
            gguf = directory / GGUF_NAME
            fetch_starter(source, staging, gguf, progress)
        case HubModel(file=None):
            snapshot = hub.fetch_repository(source, progress)
            mlx = directory / "mlx"
            mlx.mkdir()
            for file in sorted(p for p in snapshot.rglob("*") if p.is_file()):
                link(file, mlx / file.relative_to(snapshot))
            return _from_mlx(configured, source, directory, mlx)
        case HubModel():
            gguf = directory / GGUF_NAME
            link(hub.fetch_file(source, progress), gguf)
        case LocalModel(path=path) if path.is_dir():
            return _from_mlx(configured, source, directory, path)
        case LocalModel(path=path):
            gguf = path
    return _from_gguf(configured, source, directory, gguf)


def _from_gguf(configured: str, source: Source, directory: Path, gguf: Path) -> Manifest:
    content = read_gguf(gguf)
    for name, text in tokenizer_files(content).items():
        (directory / name).write_text(text, encoding="utf-8")
    files = describe(
        directory, gguf, directory / "tokenizer.json", directory / "tokenizer_config.json"
    )
    return Manifest(
        name=source.name,
        configured=configured,
        method="chat",
        source=source.description,
        licence=_licence(source, content.metadata.get("general.license")),
        context_limit=content.hyperparameter("context_length"),
        files=files,
        weights=files[0].path,
        forms={"llamacpp": files[0].path},
        tokenizer="tokenizer.json",
    )


def _from_mlx(configured: str, source: Source, directory: Path, mlx: Path) -> Manifest:
    try:
        config = json.loads((mlx / "config.json").read_text(encoding="utf-8"))
        context_limit = int(config.get("max_position_embeddings", 4096))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise _no_mlx(source, "it has no readable config.json") from error
    if not (mlx / "tokenizer.json").is_file():
        raise _no_mlx(source, "it has no tokenizer.json")
    files: tuple[FileEntry, ...] = describe(directory, mlx)
    where = mlx.relative_to(directory).as_posix() if mlx.is_relative_to(directory) else str(mlx)
    return Manifest(
        name=source.name,
        configured=configured,
        method="chat",
        source=source.description,
        licence=UNKNOWN_LICENCE,
        context_limit=context_limit,
        files=files,
        weights=None,
        forms={"mlx": where},
        tokenizer=f"{where}/tokenizer.json",
    )


def _no_mlx(source: Source, why: str) -> ModelDamaged:
    return ModelDamaged(
        f"{source.description} is no MLX model: {why}.",
        "For a GGUF repository name the file: hf:org/name/file.gguf.",
    )


def _licence(source: Source, declared: object) -> str:
    if isinstance(source, Starter):
        return source.licence
    return declared if isinstance(declared, str) else UNKNOWN_LICENCE


def link(file: Path, target: Path) -> None:
    """Share the hub cache's bytes where the file system allows it, else copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file.resolve(), target)
    except OSError:
        shutil.copyfile(file, target)
