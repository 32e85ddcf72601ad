"""manifest.json: what one installed model consists of, and cheap and thorough ways to check it.

`usable` looks at sizes only (microseconds, every start); `check_hashes` reads every byte.
A manifest is written last, so a directory without a readable one is not an installed model.
Format 1, from before speech, is still read.
Does NOT know: where models come from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from plait.installation import program_name
from plait.models.errors import ModelDamaged

FILE_NAME: Final = "manifest.json"
_FORMAT: Final = 2


@dataclass(frozen=True, slots=True)
class FileEntry:
    """`path` is relative to the model's directory, or absolute for the operator's own files."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`source` says where the weights came from; `configured` is the name that resolves to it.

    Paths are like those of FileEntry: `weights` is the file that forms are made from (None where
    the model came as a form), `forms` has a file or directory by engine, `voices` is the directory
    of a model that speaks, `tokenizer` a chat model's, which has a `context_limit` in tokens too,
    as one that embeds.
    """

    name: str
    configured: str
    method: str
    source: str
    licence: str
    files: tuple[FileEntry, ...]
    weights: str | None
    forms: Mapping[str, str]
    context_limit: int = 0
    tokenizer: str | None = None
    voices: str | None = None
    format: int = _FORMAT

    @property
    def voice_names(self) -> tuple[str, ...]:
        names = (e.path.removeprefix(f"{self.voices}/") for e in self.files if self._is_voice(e))
        return tuple(sorted(name.removesuffix(".bin") for name in names))

    def usable(self, directory: Path) -> Manifest | None:
        """The model as far as its files are there: without a form that is incomplete, and None
        when anything that forms are made from is."""
        broken = [e for e in self.files if _size(directory / e.path) != e.bytes]
        lost = [engine for engine in self.forms if any(self._is_of(engine, e) for e in broken)]
        if any(not self._is_form_only(e, lost) for e in broken):
            return None
        manifest = self
        for engine in lost:
            manifest = manifest.without_form(engine)
        return manifest if manifest.weights or manifest.forms else None

    def check_hashes(self, directory: Path, progress: Callable[[float], None]) -> None:
        """Raises ModelDamaged naming the first file whose bytes are not what they were."""
        total = sum(entry.bytes for entry in self.files) or 1
        done = 0
        for entry in self.files:
            path = directory / entry.path
            actual = sha256_of(path) if path.is_file() else "missing"
            if actual != entry.sha256:
                raise ModelDamaged(
                    f"{entry.path} of {self.name} is damaged: SHA-256 {actual}, expected"
                    f" {entry.sha256}.",
                    f"Run `{program_name()} models remove {self.configured}`, then"
                    f" `{program_name()} models pull {self.configured}`.",
                )
            done += entry.bytes
            progress(100 * done / total)

    def with_form(self, engine: str, path: str, files: tuple[FileEntry, ...]) -> Manifest:
        without = self.without_form(engine)
        forms = {**without.forms, engine: path}
        return replace(without, forms=forms, files=without.files + files)

    def without_form(self, engine: str) -> Manifest:
        """The weights themselves stay, also where an engine loads them as they are."""
        kept = tuple(e for e in self.files if not self._is_form_only(e, [engine]))
        forms = {other: path for other, path in self.forms.items() if other != engine}
        return replace(self, forms=forms, files=kept)

    def _is_of(self, engine: str, entry: FileEntry) -> bool:
        path = self.forms.get(engine)
        return path is not None and (entry.path == path or entry.path.startswith(f"{path}/"))

    def _is_form_only(self, entry: FileEntry, engines: list[str]) -> bool:
        return entry.path != self.weights and any(self._is_of(e, entry) for e in engines)

    def _is_voice(self, entry: FileEntry) -> bool:
        return self.voices is not None and entry.path.startswith(f"{self.voices}/")

    def write(self, directory: Path) -> None:
        """Replace the directory's manifest in one step."""
        temporary = directory / f".{FILE_NAME}.{os.getpid()}"
        temporary.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        temporary.replace(directory / FILE_NAME)


def read_manifest(directory: Path) -> Manifest | None:
    """None when there is none, or when it is not of a format this version reads."""
    try:
        raw: dict[str, Any] = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
        raw = _from_format_1(raw) if raw["format"] == 1 else raw
        if raw["format"] != _FORMAT:
            return None
        raw["forms"] = dict(raw["forms"])
        raw["files"] = tuple(FileEntry(**entry) for entry in raw["files"])
        return Manifest(**raw)
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _from_format_1(raw: dict[str, Any]) -> dict[str, Any]:
    """It knew chat models only, and their two forms by name."""
    gguf, mlx = raw.pop("gguf"), raw.pop("mlx")
    forms = {engine: path for engine, path in (("llamacpp", gguf), ("mlx", mlx)) if path}
    return raw | {"weights": gguf, "forms": forms, "format": _FORMAT}


def describe(directory: Path, *paths: Path) -> tuple[FileEntry, ...]:
    """Entries (with hashes) for files; a directory stands for all files in it."""
    entries: list[FileEntry] = []
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            inside = file.is_relative_to(directory)
            name = file.relative_to(directory).as_posix() if inside else str(file)
            entries.append(FileEntry(name, file.stat().st_size, sha256_of(file)))
    return tuple(entries)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return -1
