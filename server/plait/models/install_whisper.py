"""A Whisper model comes into its directory: CTranslate2's weights and tokenizer from a starter's
packages, or a ggml file, which whisper.cpp loads as it is.

Like install, which does the same for chat. A ggml file is walked before it counts as a model.
Does NOT know: the store's layout, forms made from weights.
"""

from __future__ import annotations

from pathlib import Path

from plait.models import hub
from plait.models.carrier import Progress, fetch_starter
from plait.models.errors import UnsupportedModel
from plait.models.install import UNKNOWN_LICENCE, link
from plait.models.manifest import Manifest, describe
from plait.models.sources import HubModel, LocalModel, Source, Starter
from plait.models.whisper.ggml_file import check

WEIGHTS_NAME = "model.bin"
GGML_NAME = "ggml.bin"


def fetch(
    configured: str, source: Source, staging: Path, directory: Path, progress: Progress
) -> Manifest:
    """Bring the model into `directory` (the operator's own file stays where it is).
    Raises StoreError's leaves."""
    match source:
        case Starter():
            weights = directory / WEIGHTS_NAME
            fetch_starter(source, staging, weights, progress)
            beside = [weights.with_name(file.path) for file in source.beside]
            return _describe(configured, source, directory, weights, *beside)
        case HubModel():
            ggml = directory / GGML_NAME
            link(hub.fetch_file(source, progress), ggml)
        case LocalModel(path=path) if path.is_dir():
            raise not_whisper(source)
        case LocalModel(path=path):
            ggml = path
    check(ggml)
    return _describe(configured, source, directory, ggml)


def not_whisper(source: Source) -> UnsupportedModel:
    return UnsupportedModel(
        f"{source.description} is no model for transcribe: it is not a ggml file of Whisper.",
        "Set transcribe_model = 'whisper-tiny.en', or name such a file (./ggml-base.bin, or"
        " hf:ggerganov/whisper.cpp/ggml-base.bin).",
    )


def _describe(configured: str, source: Source, directory: Path, *paths: Path) -> Manifest:
    """Of `paths` the first is the weights, which are a form where they are a ggml file."""
    files = describe(directory, *paths)
    weights = files[0].path
    from_packages = isinstance(source, Starter)
    return Manifest(
        name=source.name,
        configured=configured,
        method="transcribe",
        source=source.description,
        licence=source.licence if isinstance(source, Starter) else UNKNOWN_LICENCE,
        files=files,
        weights=weights,
        forms={} if from_packages else {"whisper": weights},
    )
