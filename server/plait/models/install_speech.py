"""A model that speaks comes into its directory: one weight file, model.onnx, and its voices.

Like install, which does the same for chat. A model of the operator's own is read where it is, so
that voices can be added to the known weights; they are checked by name and size only, and whether
the weights are the known ones shows when a form is built.
Does NOT know: the store's layout, forms made from weights.
"""

from __future__ import annotations

import re
from pathlib import Path

from plait.models.carrier import VOICES_NAME, Progress, fetch_starter
from plait.models.catalogue import VOICE_BYTES
from plait.models.errors import ModelDamaged, UnsupportedModel
from plait.models.install import UNKNOWN_LICENCE
from plait.models.manifest import Manifest, describe
from plait.models.sources import HubModel, LocalModel, Source, Starter

WEIGHTS_NAME = "model.onnx"

_VOICE_NAME = re.compile(r"[a-z]{2}_[a-z0-9]+")


def fetch(
    configured: str, source: Source, staging: Path, directory: Path, progress: Progress
) -> Manifest:
    """Bring weights and voices into `directory` (the operator's own files stay where they are).
    Raises StoreError's leaves."""
    weights, voices = directory / WEIGHTS_NAME, directory / VOICES_NAME
    match source:
        case Starter():
            fetch_starter(source, staging, weights, progress)
        case LocalModel(path=path) if path.is_dir():
            weights, voices = _weights_in(source, path), path / VOICES_NAME
            _voices_in(source, path)
        case HubModel():
            # Exports there differ in names and precision; the converters know one of them.
            raise _not_speech(source, "Plait cannot convert what is on the hub")
        case _:
            raise _not_speech(source, "it is a single file")
    return _describe(configured, source, directory, weights, voices)


def _describe(
    configured: str, source: Source, directory: Path, weights: Path, voices: Path
) -> Manifest:
    files = describe(directory, weights, *_voices_in(source, voices.parent))
    inside = voices.is_relative_to(directory)
    return Manifest(
        name=source.name,
        configured=configured,
        method="synthesize",
        source=source.description,
        licence=source.licence if isinstance(source, Starter) else UNKNOWN_LICENCE,
        files=files,
        weights=files[0].path,
        forms={},
        voices=voices.relative_to(directory).as_posix() if inside else str(voices),
    )


def _weights_in(source: Source, root: Path) -> Path:
    if not (root / WEIGHTS_NAME).is_file():
        raise _not_speech(source, f"it has no {WEIGHTS_NAME}")
    return root / WEIGHTS_NAME


def _voices_in(source: Source, root: Path) -> list[Path]:
    files = sorted((root / VOICES_NAME).glob("*.bin"))
    if not files:
        raise _not_speech(source, f"it has no {VOICES_NAME}/<voice>.bin")
    for file in files:
        size = file.stat().st_size
        if size != VOICE_BYTES or not _VOICE_NAME.fullmatch(file.stem):
            raise ModelDamaged(
                f"{VOICES_NAME}/{file.name} of {source.description} is no voice: it has {size}"
                f" bytes, and a voice like af_heart.bin has {VOICE_BYTES}.",
                "Remove or replace it, or set speech_model = 'kokoro-82m'.",
            )
    return files


def _not_speech(source: Source, why: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"{source.description} is no model for synthesize: {why}.",
        f"Set speech_model = 'kokoro-82m', or name a directory with {WEIGHTS_NAME} (the int8 export"
        f" of Kokoro-82M) and {VOICES_NAME}/.",
    )
