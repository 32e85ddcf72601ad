"""The model store: models/<name>/ below the user's cache directory, or below $PLAIT_HOME.

    models/<name>/model.gguf, tokenizer.json, tokenizer_config.json, mlx-<dtype>/…, manifest.json
    models/<name>/model.onnx, voices/<voice>.bin, onnx-<version>/…, torch-<version>/…, manifest.json
    models/<name>/model.bin, tokenizer.json, ggml-<version>.bin, manifest.json
    models/<name>/model.safetensors or .onnx, tokenizer.json, …, embed-<version>/…, manifest.json
    models/.staging-…      work in progress; renamed into place when complete, else deleted
    models/.locks/<name>   held while a model is changed, so that concurrent pulls wait

Invariants: a model's directory appears complete or not at all; the manifest is written last; an
installed model is recognised by sizes alone, without hashing or importing numpy.
Does NOT know: engines, HTTP. Only configured names come here, never names sent by clients.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from platformdirs import user_cache_dir

from plait.installation import program_name
from plait.models import forms, install, install_embed, install_speech, install_whisper
from plait.models.carrier import Progress, download_disk_bytes
from plait.models.catalogue import STARTERS, resolve
from plait.models.errors import StoreError, UnknownModel, disk_errors, disk_full
from plait.models.fitting import require_possible
from plait.models.forms import CONVERTERS, METHOD_OF, Converter, Engine as Engine
from plait.models.installed import InstalledModel as InstalledModel, installed_model
from plait.models.manifest import Manifest, describe, read_manifest
from plait.models.sources import Source, Starter

_FETCH: Final = {
    "chat": install.fetch,
    "synthesize": install_speech.fetch,
    "transcribe": install_whisper.fetch,
    "embed": install_embed.fetch,
}


def default_root() -> Path:
    home = os.environ.get("PLAIT_HOME")
    return Path(home).expanduser() if home else Path(user_cache_dir("plait"))


def silent(phase: str, percent: float) -> None:
    """The progress callable that shows nothing."""


class ModelStore:
    """Installs, finds, verifies and removes models. Safe to use from several processes."""

    def __init__(
        self,
        root: Path | None = None,
        starters: Mapping[str, Starter] = STARTERS,
        converters: Mapping[Engine, Converter] = CONVERTERS,
    ) -> None:
        self._models = (root or default_root()) / "models"
        self._starters = starters
        self._converters = converters

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
        found = (installed_model(directory, manifest) for directory, manifest in self._manifests())
        return sorted((model for model in found if model), key=lambda model: model.name)

    def find(self, name: str) -> InstalledModel | None:
        """The complete model of that short or configured name, if it is installed."""
        found = (installed_model(directory, manifest) for directory, manifest in self._named(name))
        return next(filter(None, found), None)

    def verify(self, name: str, progress: Progress = silent) -> InstalledModel:
        """Read every byte again. Raises ModelDamaged, or UnknownModel when not installed."""
        pull = f"Run `{program_name()} models pull {name}`." if name in self._starters else None
        directory, manifest = self._find(name, pull)
        manifest.check_hashes(directory, lambda percent: progress("verify", percent))
        model = installed_model(directory, manifest)
        assert model is not None, "every byte is there"
        return model

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
        model = None if manifest is None else installed_model(directory, manifest)
        return model if model is not None and model.form(engine) is not None else None

    def _install(self, name: str, source: Source, engine: Engine, progress: Progress) -> None:
        require_possible(source, engine)  # before gigabytes are fetched in vain
        forms.require_converter(engine)
        directory = self._models / source.directory_name
        manifest = _usable(directory)
        with self._staging(source.directory_name) as staging:
            if manifest is not None and manifest.method == METHOD_OF[engine]:
                self._require_room(forms.disk_bytes(engine))
                self._add_form(directory, manifest, engine, staging, progress)
                return
            download_bytes = download_disk_bytes(source) if isinstance(source, Starter) else 0
            self._require_room(download_bytes + forms.disk_bytes(engine))
            complete = staging / "model"
            complete.mkdir()
            manifest = _FETCH[METHOD_OF[engine]](name, source, staging, complete, progress)
            if engine not in manifest.forms:
                manifest = self._build(complete, manifest, engine, complete, progress)
            manifest.write(complete)
            self._discard(directory, directory.name)
            complete.rename(directory)

    def _add_form(
        self,
        directory: Path,
        manifest: Manifest,
        engine: Engine,
        staging: Path,
        progress: Progress,
    ) -> None:
        before = directory / manifest.forms.get(engine, forms.path_name(engine))
        manifest = self._build(directory, manifest, engine, staging, progress)
        where = manifest.forms[engine]
        # There is one of an earlier version, an incomplete one, or one whose maker was killed
        # before it wrote its manifest.
        for obsolete in {before, directory / where}:
            self._discard(obsolete, directory.name)
        (staging / where).rename(directory / where)
        manifest.write(directory)

    def _build(
        self, directory: Path, manifest: Manifest, engine: Engine, into: Path, progress: Progress
    ) -> Manifest:
        """Make a form in `into`, which is the model's directory or will be moved there."""
        assert manifest.weights is not None
        out = into / forms.path_name(engine)
        forms.build(
            engine,
            self._converters[engine],
            directory,
            directory / manifest.weights,
            out,
            lambda percent: progress("convert", percent),
        )
        return manifest.with_form(engine, out.name, describe(into, out))

    def _require_room(self, required_bytes: int) -> None:
        if shutil.disk_usage(self._models).free < required_bytes:
            raise disk_full(self._models.parent, required_bytes)

    def _discard(self, path: Path, model: str) -> None:
        """Take a directory out of sight in one step, then delete it."""
        if path.exists():
            trash = Path(tempfile.mkdtemp(prefix=_staging_prefix(model), dir=self._models))
            path.rename(trash / path.name)
            shutil.rmtree(trash)

    @contextmanager
    def _staging(self, directory_name: str) -> Iterator[Path]:
        self._sweep(directory_name)
        staging = Path(tempfile.mkdtemp(prefix=_staging_prefix(directory_name), dir=self._models))
        try:
            yield staging
        finally:
            self._sweep(directory_name)

    def _sweep(self, directory_name: str) -> None:
        """We hold the lock, so the owner of whatever else is there was killed. A program that it
        had started may still be writing and leave something for the next sweep."""
        for staging in self._models.glob(f"{_staging_prefix(directory_name)}*"):
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


def _usable(directory: Path) -> Manifest | None:
    manifest = read_manifest(directory)
    return None if manifest is None else manifest.usable(directory)
