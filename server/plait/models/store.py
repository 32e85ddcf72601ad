"""The model store: models/<name>/ below the user's cache directory, or below $PLAIT_HOME.

    models/<name>/model.gguf, tokenizer.json, tokenizer_config.json, mlx-<dtype>/…, manifest.json
    models/.staging-…      work in progress; renamed into place when complete, else deleted
    models/.locks/<name>   held while a model is changed, so that concurrent pulls wait

Invariants: a model's directory appears complete or not at all; the manifest is written last; an
installed model is recognised by sizes alone, without hashing or importing numpy.
Does NOT know: engines, HTTP. Only configured names come here, never names sent by clients.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_dir

from plait.installation import program_name
from plait.models import install
from plait.models.carrier import Progress
from plait.models.catalogue import (
    STARTERS,
    HubModel,
    LocalModel,
    Source,
    Starter,
    quantization,
    resolve,
)
from plait.models.errors import StoreError, UnknownModel, UnsupportedModel, disk_errors
from plait.models.manifest import Manifest, read_manifest
from plait.models.mlx_weights import Dtype

Engine = Literal["llamacpp", "mlx"]


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """What an engine needs to load a model. `gguf` is a file, `mlx` a directory that mlx_lm loads,
    `tokenizer` a tokenizer.json with tokenizer_config.json beside it. `context_limit` in tokens.
    `size_bytes` of all forms; `quantization` of the GGUF as its file name has it, or empty."""

    name: str
    method: str
    directory: Path
    gguf: Path | None
    mlx: Path | None
    tokenizer: Path
    context_limit: int
    licence: str
    size_bytes: int
    quantization: str


def default_root() -> Path:
    home = os.environ.get("PLAIT_HOME")
    return Path(home).expanduser() if home else Path(user_cache_dir("plait"))


def default_dtype() -> Dtype:
    """16 bit on Apple Silicon; on a Linux CPU mlx is many times slower with it than with fp32."""
    apple_silicon = sys.platform == "darwin" and platform.machine() == "arm64"
    return "float16" if apple_silicon else "float32"


def silent(phase: str, percent: float) -> None:
    """The progress callable that shows nothing."""


class ModelStore:
    """Installs, finds, verifies and removes models. Safe to use from several processes."""

    def __init__(
        self, root: Path | None = None, starters: Mapping[str, Starter] = STARTERS
    ) -> None:
        self._models = (root or default_root()) / "models"
        self._starters = starters

    def ensure(self, name: str, engine: Engine, progress: Progress = silent) -> InstalledModel:
        """Return the model in the form `engine` loads, fetching and converting what is missing.

        `name` as in the configuration (see catalogue). `progress(phase, percent)` is called with
        phase download, unpack, convert or wait (another process is installing it).
        Raises StoreError's leaves.
        """
        source = resolve(name, self._starters)
        ready = self._ready(source, engine)
        if ready is None:
            with disk_errors(self._models.parent), self._locked(source.directory_name, progress):
                ready = self._ready(source, engine)  # another process may have done it
                if ready is None:
                    self._install(name, source, engine, progress)
                    ready = self._ready(source, engine)
        assert ready is not None, "an install that raised nothing is complete"
        return ready

    def installed(self) -> list[InstalledModel]:
        """Every complete model of the store, by name."""
        complete = (
            _installed(directory, manifest)
            for directory, manifest in self._manifests()
            if manifest.is_intact(directory)
        )
        return sorted(complete, key=lambda model: model.name)

    def find(self, name: str) -> InstalledModel | None:
        """The complete model of that short or configured name, if it is installed."""
        for directory, manifest in self._named(name):
            if manifest.is_intact(directory):
                return _installed(directory, manifest)
        return None

    def verify(self, name: str, progress: Progress = silent) -> InstalledModel:
        """Read every byte again. Raises ModelDamaged, or UnknownModel when not installed."""
        pull = f"Run `{program_name()} models pull {name}`." if name in self._starters else None
        directory, manifest = self._find(name, pull)
        manifest.check_hashes(directory, lambda percent: progress("verify", percent))
        return _installed(directory, manifest)

    def remove(self, name: str) -> int:
        """Delete an installed model; returns the bytes freed. The operator's own files stay.
        Raises UnknownModel."""
        directory, _ = self._find(name)
        with disk_errors(self._models.parent), self._locked(directory.name, silent):
            freed = sum(p.stat().st_size for p in directory.rglob("*") if p.is_file())
            self._discard(directory, directory.name)
        return freed

    def _manifests(self) -> list[tuple[Path, Manifest]]:
        directories = sorted(self._models.glob("[!.]*")) if self._models.is_dir() else []
        found = [(directory, read_manifest(directory)) for directory in directories]
        return [(directory, manifest) for directory, manifest in found if manifest is not None]

    def _named(self, name: str) -> list[tuple[Path, Manifest]]:
        """By the short name, or as configured: a relative path means another file elsewhere."""
        with suppress(StoreError):
            configured = resolve(name, self._starters).directory_name
            return [pair for pair in self._manifests() if pair[0].name == configured]
        return [pair for pair in self._manifests() if pair[1].name == name]

    def _find(self, name: str, next_step: str | None = None) -> tuple[Path, Manifest]:
        for directory, manifest in self._named(name):
            return directory, manifest
        known = ", ".join(manifest.name for _, manifest in self._manifests()) or "none"
        raise UnknownModel(
            f"The model {name!r} is not installed (installed: {known}).",
            next_step or f"`{program_name()} models list` shows what there is.",
        )

    def _ready(self, source: Source, engine: Engine) -> InstalledModel | None:
        directory = self._models / source.directory_name
        manifest = read_manifest(directory)
        if manifest is None or not manifest.is_intact(directory):
            return None
        model = _installed(directory, manifest)
        return model if _form(model, engine) is not None else None

    def _install(self, name: str, source: Source, engine: Engine, progress: Progress) -> None:
        _require_possible(source, engine)  # before gigabytes are fetched in vain
        directory = self._models / source.directory_name
        manifest = read_manifest(directory)
        with self._staging(source.directory_name) as staging:
            if manifest is not None and manifest.is_intact(directory):
                self._add_mlx(directory, manifest, staging, progress)
                return
            complete = staging / "model"
            complete.mkdir()
            manifest = install.fetch(name, source, staging, complete, progress)
            if engine == "mlx" and manifest.mlx is None:
                manifest = install.add_mlx(complete, manifest, complete, default_dtype(), progress)
            manifest.write(complete)
            self._discard(directory, directory.name)
            complete.rename(directory)

    def _add_mlx(
        self, directory: Path, manifest: Manifest, staging: Path, progress: Progress
    ) -> None:
        manifest = install.add_mlx(directory, manifest, staging, default_dtype(), progress)
        assert manifest.mlx is not None
        # It is there when a process was killed before it wrote its manifest.
        self._discard(directory / manifest.mlx, directory.name)
        (staging / manifest.mlx).rename(directory / manifest.mlx)
        manifest.write(directory)

    def _discard(self, path: Path, model: str) -> None:
        """Take a directory out of sight in one step, then delete it."""
        if path.exists():
            trash = Path(tempfile.mkdtemp(prefix=_staging_prefix(model), dir=self._models))
            path.rename(trash / path.name)
            shutil.rmtree(trash)

    @contextmanager
    def _staging(self, directory_name: str) -> Iterator[Path]:
        prefix = _staging_prefix(directory_name)
        for left_over in self._models.glob(f"{prefix}*"):  # we hold the lock: its owner is dead
            shutil.rmtree(left_over)
        staging = Path(tempfile.mkdtemp(prefix=prefix, dir=self._models))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    @contextmanager
    def _locked(self, directory_name: str, progress: Progress) -> Iterator[None]:
        """Hold the model's lock; the kernel drops it when its holder dies."""
        locks = self._models / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / directory_name).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress("wait", 0)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _staging_prefix(directory_name: str) -> str:
    # "@" occurs in no directory name, so "a" never sweeps the staging of "a-b".
    return f".staging-{directory_name}@"


def _installed(directory: Path, manifest: Manifest) -> InstalledModel:
    return InstalledModel(
        name=manifest.name,
        method=manifest.method,
        directory=directory,
        gguf=None if manifest.gguf is None else directory / manifest.gguf,
        mlx=None if manifest.mlx is None else directory / manifest.mlx,
        tokenizer=directory / manifest.tokenizer,
        context_limit=manifest.context_limit,
        licence=manifest.licence,
        size_bytes=sum(entry.bytes for entry in manifest.files),
        quantization=quantization(manifest.source),
    )


def _form(model: InstalledModel, engine: Engine) -> Path | None:
    return model.gguf if engine == "llamacpp" else model.mlx


def _require_possible(source: Source, engine: Engine) -> None:
    """Raise UnsupportedModel for MLX weights under llama.cpp; all else can be made to fit."""
    is_mlx = (isinstance(source, HubModel) and source.file is None) or (
        isinstance(source, LocalModel) and source.path.is_dir()
    )
    if is_mlx and engine == "llamacpp":
        raise UnsupportedModel(
            f"{source.description} holds MLX weights, which llama.cpp cannot load.",
            "Use --chat-engine mlx, or name a GGUF file (hf:org/name/file.gguf).",
        )
