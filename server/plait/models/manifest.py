"""manifest.json: what one installed model consists of, and cheap and thorough ways to check it.

`is_intact` looks at sizes only (microseconds, every start); `check_hashes` reads every byte.
A manifest is written last, so a directory without a readable one is not an installed model.
Does NOT know: where models come from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from plait.installation import program_name
from plait.models.errors import ModelDamaged

FILE_NAME: Final = "manifest.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class FileEntry:
    """`path` is relative to the model's directory, or absolute for the operator's own files."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`source` says where the weights came from; `configured` is the name that resolves to it;
    `gguf` and `mlx` are paths like those of FileEntry, None when there is no such form."""

    name: str
    configured: str
    method: str
    source: str
    licence: str
    context_limit: int
    files: tuple[FileEntry, ...]
    gguf: str | None
    mlx: str | None
    tokenizer: str
    format: int = _FORMAT

    def is_intact(self, directory: Path) -> bool:
        return all(_size(directory / entry.path) == entry.bytes for entry in self.files)

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

    def with_mlx(self, mlx: str, files: tuple[FileEntry, ...]) -> Manifest:
        kept = tuple(entry for entry in self.files if not entry.path.startswith(f"{mlx}/"))
        return replace(self, mlx=mlx, files=kept + files)

    def write(self, directory: Path) -> None:
        """Replace the directory's manifest in one step."""
        temporary = directory / f".{FILE_NAME}.{os.getpid()}"
        temporary.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        temporary.replace(directory / FILE_NAME)


def read_manifest(directory: Path) -> Manifest | None:
    """None when there is none, or when it was not written by this version's format."""
    try:
        raw: dict[str, Any] = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
        if raw["format"] != _FORMAT:
            return None
        raw["files"] = tuple(FileEntry(**entry) for entry in raw["files"])
        return Manifest(**raw)
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


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
